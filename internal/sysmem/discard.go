//go:build linux || darwin

package sysmem

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Discard returns to the system the pages that lie entirely in mem, which must belong to a private
// mapping without a file. Their content is undefined until they are written again.
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
		return fmt.Errorf("sysmem: discarding %d bytes: %w", len(mem), err)
	}
	return nil
}
