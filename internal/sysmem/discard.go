//go:build linux || darwin

package sysmem

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Discard gives the system back the pages that lie wholly in mem, which is private memory of a
// mapping without a file. What they hold until they are written again is undefined.
func Discard(mem []byte) error {
	page := uintptr(os.Getpagesize())
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(mem))) % page)
	if skip >= len(mem) {
		return nil
	}
	mem = mem[skip:]
	if mem = mem[:len(mem)-len(mem)%int(page)]; len(mem) == 0 {
		return nil
	}
	if err := unix.Madvise(mem, discardAdvice); err != nil {
		return fmt.Errorf("sysmem: giving back %d bytes: %w", len(mem), err)
	}
	return nil
}
