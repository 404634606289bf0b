package expertfile

import "golang.org/x/sys/unix"

// setDirect sets or clears F_NOCACHE of an open file: what is read does not stay in the page cache.
func setDirect(fd uintptr, on bool) error {
	arg := 0
	if on {
		arg = 1
	}
	_, err := unix.FcntlInt(fd, unix.F_NOCACHE, arg)
	return err
}
