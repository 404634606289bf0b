package sysmem

import "golang.org/x/sys/unix"

// discardAdvice takes the pages away at once.
const discardAdvice = unix.MADV_DONTNEED
