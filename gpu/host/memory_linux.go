package host

import "golang.org/x/sys/unix"

// adviseHuge asks for pages of 2 MiB, with which reading weights at memory speed needs few
// look-ups. It is only advice: the kernel may refuse.
func adviseHuge(mem []byte) { _ = unix.Madvise(mem, unix.MADV_HUGEPAGE) }
