//go:build linux && (amd64 || arm64)

package cuda

import (
	"syscall"
	"unsafe"
)

// sigaction is the kernel's struct of that name, of amd64 and arm64.
type sigaction struct {
	handler  uintptr
	flags    uint64
	restorer uintptr
	mask     uint64
}

const (
	onStack    = 0x08000000 // SA_ONSTACK
	numSignals = 64
)

// keepSignalStacks gives every signal handler the alternate stack again that Go's handlers must
// run on, and returns the signals that had lost it. NVIDIA's libraries put handlers of their own in
// place while they work, and put Go's back without that flag. Without it a signal that reaches a
// thread inside Go code, such as Ctrl-C, ends the program with "non-Go code set up signal handler
// without SA_ONSTACK flag". The flag is safe for handlers of others, too: the runtime itself sets
// it for those that it finds at the start.
//
// Beside a library that works, as the compiler does in the background, the handler that is found
// may be one that it takes away in a moment: written back, it would stay. So only handlers among
// those of known are touched, if that is not nil.
func keepSignalStacks(known map[uintptr]bool) (mended []syscall.Signal) {
	for sig := syscall.Signal(1); sig <= numSignals; sig++ {
		var a sigaction
		if !action(sig, nil, &a) || a.handler <= 1 || a.flags&onStack != 0 { // 0 and 1: default, ignored
			continue
		}
		if known != nil && !known[a.handler] {
			continue
		}
		a.flags |= onStack
		if action(sig, &a, nil) {
			mended = append(mended, sig)
		}
	}
	return mended
}

// signalHandlers returns the addresses of all handlers there are.
func signalHandlers() map[uintptr]bool {
	all := map[uintptr]bool{}
	for sig := syscall.Signal(1); sig <= numSignals; sig++ {
		var a sigaction
		if action(sig, nil, &a) && a.handler > 1 {
			all[a.handler] = true
		}
	}
	return all
}

// action sets what a signal does, or tells it, or both; nil leaves out that part.
func action(sig syscall.Signal, set, old *sigaction) bool {
	_, _, errno := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(sig),
		uintptr(unsafe.Pointer(set)), uintptr(unsafe.Pointer(old)), unsafe.Sizeof(set.mask), 0, 0)
	return errno == 0
}
