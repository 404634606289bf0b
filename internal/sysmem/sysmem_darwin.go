//go:build darwin

package sysmem

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Read returns the figures of this moment. Where the system does not tell what is available, half of its memory is assumed.
func Read() (Info, error) {
	total, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return Info{}, fmt.Errorf("sysmem: hw.memsize: %w", err)
	}
	return Info{Total: int64(total), Available: int64(total / 2)}, nil
}
