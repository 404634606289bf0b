package gpu

// Discrete is a Device with memory of its own, which the host cannot address: its buffers have no
// Bytes, and memory that is wrapped is read over a bus, many times slower. So weights are copied to
// it once, and expert slots are filled in pinned memory and uploaded on a queue of their own, which
// runs beside the one that computes.
type Discrete interface {
	Device
	// Memory returns how many bytes of the device's memory are free, and how many it has.
	Memory() (free, total int64, err error)
	// NewPinned returns a buffer of n bytes of host memory that the system keeps in place: it has
	// Bytes, aligned to a page and not cleared, and uploads from it take no detour and keep nobody
	// waiting. It may be an operand, too, which the device reads over the bus. Where there is no
	// such memory the error wraps ErrOutOfMemory.
	NewPinned(n int) (Buffer, error)
}
