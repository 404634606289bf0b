//go:build !linux

package membw

// preferHugePages does nothing: the system chooses the size of pages.
func preferHugePages([]byte) {}
