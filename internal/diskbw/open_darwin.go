package diskbw

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// open opens a file in a mode. Buffered reads are refused: this system cannot drop what the cache
// holds of a file, so they would show the speed of memory.
func open(path string, mode Mode) (*os.File, error) {
	if mode == Buffered {
		return nil, &UnsupportedError{Mode: mode, Path: path, Err: errors.New("this system cannot drop cached pages")}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("diskbw: %w", err)
	}
	if _, err := unix.FcntlInt(f.Fd(), unix.F_NOCACHE, 1); err != nil {
		f.Close()
		return nil, &UnsupportedError{Mode: mode, Path: path, Err: err}
	}
	return f, nil
}

func forget(*os.File) error { return nil }
