//go:build amx && amd64 && !noasm

package host

import (
	"sync"

	"golang.org/x/sys/unix"
)

// mayUseTiles asks the kernel to let this process use the matrix unit, once, and reports whether it
// may. Threads get memory for their tiles when they first use them. Signals interrupt a thread on
// a stack of 32 KiB, which has room for tiles: the kernel checks that.
var mayUseTiles = sync.OnceValue(func() bool {
	const (
		requestPermission = 0x1023 // ARCH_REQ_XCOMP_PERM
		tileData          = 18
	)
	_, _, err := unix.RawSyscall(unix.SYS_ARCH_PRCTL, requestPermission, tileData, 0)
	return err == 0
})
