package gpu

// Unified is a Device that computes in the host's memory but should use only a part of it.
type Unified interface {
	Device
	// WorkingSet returns how many bytes all buffers together may have before the device slows down,
	// or 0 if that is not known.
	WorkingSet() int64
}
