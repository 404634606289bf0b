package gpu

// Unified is a Device that computes in the host's memory, but should be given only so much of it.
type Unified interface {
	Device
	// WorkingSet returns how many bytes all buffers together may have before the device slows down;
	// 0 if it does not say.
	WorkingSet() int64
}
