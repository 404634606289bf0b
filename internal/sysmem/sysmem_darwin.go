//go:build darwin

package sysmem

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Monitor reads the figures again and again.
type Monitor struct{}

// NewMonitor returns a monitor, which must be closed.
func NewMonitor() (*Monitor, error) { return &Monitor{}, nil }

// Read returns the figures of this moment. The system does not tell what is available without cgo;
// half of its memory is assumed.
func (*Monitor) Read() (Info, error) {
	total, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return Info{}, fmt.Errorf("sysmem: hw.memsize: %w", err)
	}
	return Info{Total: int64(total), Available: int64(total / 2)}, nil
}

// Close does nothing.
func (*Monitor) Close() {}
