//go:build !linux

package membw

// preferHugePages does nothing where the system chooses the pages' size itself.
func preferHugePages([]byte) {}
