package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/moeflux/moeflux-actor/internal/durable"
)

// dir is a folder of the operating system.
type dir struct{ path string }

var _ FS = dir{}

// Dir returns a folder of the operating system as an FS. If it does not exist Dir makes it, for
// this user alone: sessions are private.
func Dir(path string) (FS, error) {
	path, err := filepath.Abs(path)
	if err == nil {
		err = durable.MkdirAll(path, durable.Private)
	}
	if err != nil {
		return nil, &Error{Op: "make the folder", Path: path, Kind: ErrFolder, Err: err}
	}
	return dir{path}, nil
}

func (d dir) in(name string) string { return filepath.Join(d.path, name) }

func (d dir) Path() string { return d.path }

func (d dir) List() ([]FileInfo, error) {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return nil, err
	}
	var all []FileInfo
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed meanwhile
		}
		if err != nil {
			return nil, err
		}
		all = append(all, fileInfo(e.Name(), info))
	}
	return all, nil
}

func fileInfo(name string, info fs.FileInfo) FileInfo {
	f := FileInfo{Name: name, Bytes: info.Size(), Used: info.ModTime()}
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		f.ID = s.Ino
	}
	return f
}

func (d dir) Create(name string) (WriteFile, error) {
	return os.OpenFile(d.in(name), os.O_RDWR|os.O_CREATE|os.O_EXCL, durable.Private.File())
}

// Open does not follow a link, nor wait at a pipe for a writer.
func (d dir) Open(name string) (ReadFile, error) {
	f, err := os.OpenFile(d.in(name), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", f.Name())
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return dirFile{f, name}, nil
}

func (d dir) Rename(from, to string) error { return durable.OS{}.Rename(d.in(from), d.in(to)) }
func (d dir) Remove(name string) error     { return os.Remove(d.in(name)) }
func (d dir) Sync() error                  { return durable.SyncDir(d.path) }

// TryLock uses flock, whose locks belong to an open file and end with it.
func (d dir) TryLock(name string) (release func(), err error) {
	f, err := os.OpenFile(d.in(name), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, durable.Private.File())
	if err != nil {
		return nil, err
	}
	for {
		if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != unix.EINTR {
			break
		}
	}
	switch {
	case err == nil:
		return func() { _ = f.Close() }, nil // closing cannot fail in a way that keeps the lock
	case errors.Is(err, unix.EWOULDBLOCK):
		err = ErrLocked
	default:
		err = fmt.Errorf("the file system has no locks; choose a folder on another one: flock: %w", err)
	}
	return nil, errors.Join(err, f.Close())
}

// dirFile is an open file of a folder.
type dirFile struct {
	*os.File
	name string
}

func (f dirFile) Info() (FileInfo, error) {
	info, err := f.Stat()
	if err != nil {
		return FileInfo{}, err
	}
	return fileInfo(f.name, info), nil
}

// Touch goes by the path: if the file there is a newer one, touching that does just as well.
func (f dirFile) Touch() error { return unix.Utimes(f.Name(), nil) }
