// Package sysmem tells how much memory this process may use: the machine's, and less if a cgroup says so.
package sysmem

// Info is in bytes.
type Info struct {
	Total     int64 // of the machine, or of the cgroup if that is less
	Available int64 // that can be taken without swapping, page cache counted as free
}
