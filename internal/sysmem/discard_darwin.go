package sysmem

import "golang.org/x/sys/unix"

// discardAdvice lets the system take the pages when it needs them.
const discardAdvice = unix.MADV_FREE
