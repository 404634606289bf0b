//go:build !linux

package host

// adviseHuge does nothing: the system chooses the size of pages itself.
func adviseHuge([]byte) {}
