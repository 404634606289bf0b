package durable

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// FS is what a writer needs of a file system. Tests put others in the place of OS, which fail or
// keep account.
type FS interface {
	// Create makes a file, which must not exist. The umask is taken from perm.
	Create(path string, perm fs.FileMode) (File, error)
	// Edit opens a file to write in any place of it, and makes it if there is none. The umask is
	// taken from perm.
	Edit(path string, perm fs.FileMode) (Edited, error)
	// Rename gives a file another name, atomically replacing the file that has it.
	Rename(from, to string) error
	Remove(path string) error
	// SyncDir makes durable what was created, renamed and removed in a folder.
	SyncDir(dir string) error
}

// File is a file that is being written.
type File interface {
	io.Writer
	Chmod(perm fs.FileMode) error
	// Sync makes the content durable.
	Sync() error
	io.Closer
}

// Edited is a file that is written here and there until it is whole.
type Edited interface {
	io.WriterAt
	// Truncate sets the size. What was never written reads as zeros.
	Truncate(size int64) error
	// Sync makes the content durable.
	Sync() error
	io.Closer
}

// OS is the operating system's file system.
type OS struct{}

var _ FS = OS{}

// Create makes a file, which must not exist.
func (OS) Create(path string, perm fs.FileMode) (File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return nil, err // not a *os.File that is nil
	}
	return f, nil
}

// Edit opens a file to write in any place of it, and makes it if there is none. A link is not
// followed.
func (OS) Edit(path string, perm fs.FileMode) (Edited, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, perm)
	if err != nil {
		return nil, err // not a *os.File that is nil
	}
	return f, nil
}

// Rename is os.Rename.
func (OS) Rename(from, to string) error { return os.Rename(from, to) }

// Remove is os.Remove.
func (OS) Remove(path string) error { return os.Remove(path) }

// SyncDir is the function of the same name.
func (OS) SyncDir(dir string) error { return SyncDir(dir) }

// SyncDir makes creations and renames in a folder durable, where the file system can.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOTSUP) {
		return err
	}
	return nil
}

// FreeSpace returns how many bytes this user may still write on the file system of dir.
func FreeSpace(dir string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return uint64(s.Bavail) * uint64(s.Bsize), nil
}
