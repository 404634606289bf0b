package convert_test

import "golang.org/x/sys/unix"

// mountSmall mounts a memory file system of 1 MiB on dir. It needs a privileged user.
func mountSmall(dir string) error { return unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m") }
