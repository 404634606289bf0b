package sysmem

// Limit returns false: this system has no limits of memory for groups of processes.
func Limit() (bytes int64, ok bool) { return 0, false }
