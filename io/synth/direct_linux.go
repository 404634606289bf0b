package synth

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// directFlag opens files past the page cache.
const directFlag = unix.O_DIRECT

// clearDirect clears directFlag of an open file.
func clearDirect(f *os.File) error {
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	if err != nil {
		return err
	}
	_, err = unix.FcntlInt(f.Fd(), unix.F_SETFL, flags&^unix.O_DIRECT)
	return err
}

// reserve gives a new file its size, and its space on disk in one piece if the file system can.
func reserve(f *os.File, size int64) error {
	if size == 0 {
		return nil
	}
	err := unix.Fallocate(int(f.Fd()), 0, 0, size)
	if errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.ENOSYS) {
		return f.Truncate(size)
	}
	return err
}
