package parking

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/moeflux/moeflux-actor/stages"
)

// A place has a folder for each engine that uses it, with a file that the engine has locked for as
// long as it is open. The system takes the lock from a process that dies, however it dies: so a
// leftover is told from a folder in use. A lock on the place itself is held while folders are
// looked at and made.
const (
	placeLock    = "parked.lock"
	folderPrefix = "parked-"
	folderLock   = "lock"
)

// folder is an engine's own.
type folder struct {
	path   string
	locked *os.File
}

// file is a parked state's.
type file struct{ path string }

// openFolder makes a folder in a place, which it makes if need be, and removes what processes that
// died have left there.
func openFolder(ctx context.Context, place string) (*folder, error) {
	f, err := makeFolder(ctx, place)
	if err != nil {
		return nil, fmt.Errorf("the folder for parked states (Config.StateDir): %w", err)
	}
	return f, nil
}

func makeFolder(ctx context.Context, place string) (*folder, error) {
	if err := os.MkdirAll(place, 0o700); err != nil {
		return nil, err
	}
	all, err := lockPlace(ctx, filepath.Join(place, placeLock))
	if err != nil {
		return nil, err
	}
	defer all.Close()
	if err := sweep(place); err != nil {
		return nil, err
	}
	path, err := os.MkdirTemp(place, folderPrefix) // states are private: for this user alone
	if err != nil {
		return nil, err
	}
	locked, err := tryLock(filepath.Join(path, folderLock))
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(path))
	}
	return &folder{path, locked}, nil
}

// sweep removes the folders that nobody has locked.
func sweep(place string) error {
	entries, err := os.ReadDir(place)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), folderPrefix) {
			continue
		}
		path := filepath.Join(place, e.Name())
		lock, err := tryLock(filepath.Join(path, folderLock))
		if errors.Is(err, unix.EWOULDBLOCK) {
			continue
		}
		if err == nil {
			err = errors.Join(os.RemoveAll(path), lock.Close())
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) { // its engine may be closing
			return err
		}
	}
	return nil
}

// lockPlace waits for a lock.
func lockPlace(ctx context.Context, path string) (*os.File, error) {
	for {
		f, err := tryLock(path)
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return f, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%s is locked: %w", path, context.Cause(ctx))
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// tryLock locks a file, which it makes if need be, until it is closed. The error is EWOULDBLOCK if
// somebody else has locked it.
func tryLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != unix.EINTR {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	return f, nil
}

// write makes a file. It need not outlive the process, so it is not synced.
func (d *folder) write(id stages.ParkID, write func(io.Writer) error) (*file, error) {
	f, err := os.OpenFile(filepath.Join(d.path, fmt.Sprintf("%d.state", id)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	done := &file{f.Name()}
	if err = errors.Join(write(f), f.Close()); err != nil {
		return nil, errors.Join(err, done.remove())
	}
	return done, nil
}

func (f *file) open() (*os.File, error) { return os.Open(f.path) }

func (f *file) remove() error { return os.Remove(f.path) }

// close removes the folder with all that is in it.
func (d *folder) close() error {
	return errors.Join(os.RemoveAll(d.path), d.locked.Close())
}
