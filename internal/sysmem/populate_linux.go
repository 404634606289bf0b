package sysmem

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Populate makes the system give mem its memory now, as writing to every page would, and leaves what it holds as it is. Others may read
// and write it meanwhile. It takes as long as clearing that memory does. The error is errors.ErrUnsupported where the system cannot.
func Populate(mem []byte) error {
	page := os.Getpagesize()
	skip := int(uintptr(unsafe.Pointer(unsafe.SliceData(mem))) % uintptr(page))
	if len(mem) == 0 {
		return nil
	}
	mem = unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(mem)), -skip)), skip+len(mem)) // of whole pages
	switch err := unix.Madvise(mem, unix.MADV_POPULATE_WRITE); err {
	case nil:
		return nil
	case unix.EINVAL: // a kernel before 5.14, or memory that cannot be written
		return fmt.Errorf("sysmem: populating %d bytes: %w (%v)", len(mem), errors.ErrUnsupported, err)
	default:
		return fmt.Errorf("sysmem: populating %d bytes: %w", len(mem), err)
	}
}

// yieldNice is the priority of a thread that gives way: with the others at 0 it gets a tenth of a busy core. No lower: while it has
// the kernel map pages, others that would change the process's mappings wait for it.
const yieldNice = 10

// YieldThread lets the calling thread give way to others from now on, which cannot be taken back: the goroutine must be locked to the thread and end
// with it.
func YieldThread() error {
	const top = 20 // the call returns top less the niceness
	if now, err := unix.Getpriority(unix.PRIO_PROCESS, unix.Gettid()); err == nil && top-now >= yieldNice {
		return nil // the whole program gives way already
	}
	if err := unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), yieldNice); err != nil {
		return fmt.Errorf("sysmem: lowering a thread's priority: %w", err)
	}
	return nil
}
