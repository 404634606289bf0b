//go:build !linux

package host

// adviseHuge does nothing: the system chooses the page size.
func adviseHuge([]byte) {}
