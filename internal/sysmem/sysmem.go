// Package sysmem reports how much memory this process may use, by the machine and by its cgroups,
// and how much it uses.
package sysmem

import (
	"errors"
	"time"
)

// Info holds sizes in bytes.
type Info struct {
	Total int64 // of the machine, or of the cgroup if that is less
	// what can be allocated without swapping; page cache counts as free, even this process's mapped
	// files
	Available int64
	// Stalled is how long tasks have waited for memory since some time in the past: those of the
	// cgroup, if the kernel measures them, else all. 0 if unknown.
	Stalled time.Duration
}

// Resident is the part of a process that is in memory, in bytes.
type Resident struct {
	All int64
	Own int64 // without mapped files and memory shared with other processes
}

// ErrUnknown reports a figure that the system does not provide.
var ErrUnknown = errors.New("sysmem: not provided by this system")

// Read returns the present figures.
func Read() (Info, error) {
	m, err := NewMonitor()
	if err != nil {
		return Info{}, err
	}
	defer m.Close()
	return m.Read()
}
