package membw

import "golang.org/x/sys/unix"

// preferHugePages asks for huge pages. A kernel that has none, or is told to give none, reads with
// small ones: that is what its programs get.
func preferHugePages(mem []byte) { _ = unix.Madvise(mem, unix.MADV_HUGEPAGE) }
