// Package durable is the one place that makes files which must be there whole or not at all:
// models, profiles, compiled kernels, states, reports. A file is written under a temporary name in
// its folder, synced, renamed, and the folder is synced. So a reader sees the old content or the
// new, and what was reported as written survives a loss of power. It also says how much space is
// free.
//
// [Shared] and [Private] say who may read what is written, for the whole program. docs/state.md
// tells users.
package durable

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// Access says who may read a file.
type Access int

const (
	// Shared is for what users name, and for what holds nothing of them: models, profiles, compiled
	// kernels. The umask alone decides who may read it.
	Shared Access = iota
	// Private is for what the program keeps of texts on its own: only this user may read it.
	Private
)

// File is the mode to make a file with; the system takes the umask from it.
func (a Access) File() fs.FileMode {
	if a == Private {
		return 0o600
	}
	return 0o666
}

// Dir is the mode to make a folder with; the system takes the umask from it.
func (a Access) Dir() fs.FileMode {
	if a == Private {
		return 0o700
	}
	return 0o777
}

// Replace makes the file at path of what write writes, or replaces it, whole or not at all. If it
// fails, or write panics, the old file stays and the new one is removed. A replaced file keeps its
// permissions, as far as a allows them, and a link goes on leading to it. What is not a regular
// file is refused.
func Replace(path string, a Access, write func(io.Writer) error) error {
	return ReplaceIn(OS{}, path, a, write)
}

// ReplaceIn is Replace in another file system.
func ReplaceIn(files FS, path string, a Access, write func(io.Writer) error) (err error) {
	path, kept, err := target(path)
	if err != nil {
		return err
	}
	temp, f, err := create(files, path, a)
	if err != nil {
		return err
	}
	whole := false
	defer func() {
		if whole {
			return
		}
		if left := files.Remove(temp); left != nil && !errors.Is(left, fs.ErrNotExist) {
			err = errors.Join(err, left)
		}
	}()
	if kept != nil {
		err = f.Chmod(*kept & a.File())
	}
	if err = errors.Join(err, fill(f, write)); err != nil {
		return err
	}
	if err := files.Rename(temp, path); err != nil {
		return err
	}
	whole = true
	return files.SyncDir(filepath.Dir(path))
}

// target follows links to the file that is replaced, and returns its permissions if it exists.
func target(path string) (string, *fs.FileMode, error) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return path, nil, nil
	case err != nil:
		return "", nil, err
	case !info.Mode().IsRegular():
		return "", nil, fmt.Errorf("%s is not a regular file", path)
	}
	perm := info.Mode().Perm()
	return path, &perm, nil
}

// create makes a file beside path, under a name that is free.
func create(files FS, path string, a Access) (temp string, f File, err error) {
	dir, name := filepath.Split(path)
	for range 1000 {
		temp = filepath.Join(dir, "."+name+"."+strconv.FormatUint(rand.Uint64(), 36)+".tmp")
		if f, err = files.Create(temp, a.File()); !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	return temp, f, err
}

// fill writes a file, makes its content durable and closes it.
func fill(f File, write func(io.Writer) error) (err error) {
	defer func() { err = errors.Join(err, f.Close()) }()
	b := bufio.NewWriterSize(f, 64<<10)
	if err := write(b); err != nil {
		return err
	}
	if err := b.Flush(); err != nil {
		return err
	}
	return f.Sync()
}

// WriteFile is Replace with content that is there already.
func WriteFile(path string, a Access, content []byte) error {
	return Replace(path, a, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

// Create is Replace of a file that must not exist; otherwise the error is fs.ErrExist. A process
// that dies may leave an empty file.
func Create(path string, a Access, write func(io.Writer) error) error {
	f, err := OS{}.Create(path, a.File()) // the name is ours from here on
	if err != nil {
		return err
	}
	if err = f.Close(); err == nil {
		err = Replace(path, a, write)
	}
	if err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

// Rename gives a file or folder, whose content is durable, another name, durably. An empty folder
// of that name is replaced.
func Rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	if err := SyncDir(filepath.Dir(to)); err != nil || filepath.Dir(from) == filepath.Dir(to) {
		return err
	}
	return SyncDir(filepath.Dir(from))
}

// MkdirAll makes a folder and those above it, durably.
func MkdirAll(path string, a Access) error {
	switch info, err := os.Stat(path); {
	case err == nil && !info.IsDir():
		return &fs.PathError{Op: "mkdir", Path: path, Err: syscall.ENOTDIR}
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	parent := filepath.Dir(path)
	if err := MkdirAll(parent, a); err != nil {
		return err
	}
	if err := os.Mkdir(path, a.Dir()); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return SyncDir(parent)
}
