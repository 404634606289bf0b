// Package sysmem tells how much memory this process may use, which is the machine's or less if a
// cgroup says so, and how much it uses.
package sysmem

import (
	"errors"
	"time"
)

// Info is in bytes.
type Info struct {
	Total int64 // of the machine, or of the cgroup if that is less
	// that can be taken without swapping, page cache counted as free, this process's mapped files
	// too
	Available int64
	// Stalled is how long tasks have waited for memory since some time in the past; 0 where the
	// system does not tell. It is of the cgroup where that is known.
	Stalled time.Duration
}

// Resident is what of a process is in memory, in bytes.
type Resident struct {
	All int64
	Own int64 // without mapped files and what it shares with other processes
}

// ErrUnknown is the error where the system does not tell.
var ErrUnknown = errors.New("sysmem: this system does not tell")

// Read returns the figures of this moment.
func Read() (Info, error) {
	m, err := NewMonitor()
	if err != nil {
		return Info{}, err
	}
	defer m.Close()
	return m.Read()
}
