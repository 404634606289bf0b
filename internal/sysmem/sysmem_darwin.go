//go:build darwin

package sysmem

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Monitor reads the figures repeatedly.
type Monitor struct{}

// NewMonitor returns a monitor, which must be closed.
func NewMonitor() (*Monitor, error) { return &Monitor{}, nil }

// Read returns the present figures. Without cgo the system does not say what is available; Read
// assumes half of the memory.
func (*Monitor) Read() (Info, error) {
	total, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return Info{}, fmt.Errorf("sysmem: hw.memsize: %w", err)
	}
	return Info{Total: int64(total), Available: int64(total / 2)}, nil
}

// Close does nothing.
func (*Monitor) Close() {}
