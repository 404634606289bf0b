package diskbw

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// open opens a file in a mode. Only trying shows whether a file system supports direct reads.
func open(path string, mode Mode) (*os.File, error) {
	flags := os.O_RDONLY
	if mode == Direct {
		flags |= unix.O_DIRECT
	}
	f, err := os.OpenFile(path, flags, 0)
	switch {
	case mode == Direct && errors.Is(err, unix.EINVAL):
		return nil, &UnsupportedError{Mode: mode, Path: path, Err: err}
	case err != nil:
		return nil, fmt.Errorf("diskbw: %w", err)
	}
	return f, nil
}

// forget drops what the page cache holds of a file. Pages that a process has mapped stay.
func forget(f *os.File) error {
	return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
}
