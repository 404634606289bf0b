package sysmem

import (
	"io/fs"
	"os"
)

// Limit returns the memory that a cgroup allows this process and all others in it, in bytes; false if that is no less than the machine has.
// File pages that they read count against it.
func Limit() (bytes int64, ok bool) { return limit(os.DirFS("/")) }

func limit(root fs.FS) (int64, bool) {
	machine, err := meminfo(root)
	if err != nil {
		return 0, false
	}
	l, _, ok := cgroup(root)
	if !ok || l >= machine.Total {
		return 0, false
	}
	return l, true
}
