package sysmem

// Limit returns false: this system does not limit the memory of groups of processes.
func Limit() (bytes int64, ok bool) { return 0, false }
