package host

import "golang.org/x/sys/unix"

// adviseHuge asks for pages of 2 MiB, of which reading weights at memory speed needs few look-ups.
// A kernel that has none to give refuses, and nothing is lost.
func adviseHuge(mem []byte) { _ = unix.Madvise(mem, unix.MADV_HUGEPAGE) }
