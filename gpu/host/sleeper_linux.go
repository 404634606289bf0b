package host

import (
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sleeper puts one thread to sleep until it is woken. A wake that comes first is kept; several
// count as one. The zero value is ready for use. The thread waits in the kernel, so that it needs
// no other thread to be scheduled again.
type sleeper struct{ woken atomic.Uint32 }

const (
	futexWaitPrivate = 0 | 128
	futexWakePrivate = 1 | 128
)

// sleep returns after a wake.
func (s *sleeper) sleep() {
	for !s.woken.CompareAndSwap(1, 0) {
		unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&s.woken)), futexWaitPrivate, 0, 0, 0, 0)
	}
}

// wake ends a sleep, the present one or the next.
func (s *sleeper) wake() {
	if s.woken.Swap(1) == 0 {
		unix.RawSyscall(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&s.woken)), futexWakePrivate, 1)
	}
}
