package membw

import "golang.org/x/sys/unix"

// preferHugePages asks for huge pages. Where the kernel refuses, programs read with small ones, and
// so does a measurement.
func preferHugePages(mem []byte) { _ = unix.Madvise(mem, unix.MADV_HUGEPAGE) }
