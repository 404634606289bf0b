// Package sysmem tells how much memory this process may use, the machine's or less if a cgroup says so, and how much it has.
package sysmem

import "errors"

// Info is in bytes.
type Info struct {
	Total     int64 // of the machine, or of the cgroup if that is less
	Available int64 // that can be taken without swapping, page cache counted as free
}

// Resident is what of a process is in memory, in bytes.
type Resident struct {
	All int64
	Own int64 // without mapped files and what it shares with other processes
}

// ErrUnknown is the error where the system does not tell.
var ErrUnknown = errors.New("sysmem: this system does not tell")
