// Package userdirs finds the folders in which this user's programs keep things.
package userdirs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Program names the folders of this project.
const Program = "moeflux-actor"

// Where says where to look; tests give their own.
type Where struct {
	Cache func() (string, error) // the user's cache folder, as os.UserCacheDir has it
	Temp  string                 // the folder of temporary files
}

// System is where the operating system says.
func System() Where { return Where{Cache: os.UserCacheDir, Temp: os.TempDir()} }

// CacheDir returns the project's folder among the user's cached files. It need not exist. Without a
// home it is a folder for this user among the temporary files, which is made, and note says so.
func (w Where) CacheDir() (dir, note string, err error) {
	cache, err := w.Cache()
	if err == nil {
		return filepath.Join(cache, Program), "", nil
	}
	dir = filepath.Join(w.Temp, fmt.Sprintf("%s-%d", Program, os.Getuid()))
	note = fmt.Sprintf("this user has no cache folder (%v), using %s", err, dir)
	if err := makePrivate(dir); err != nil {
		return "", "", &UnusableError{Note: note, Err: err}
	}
	return dir, note, nil
}

// StateDir returns where programs keep what this user can do without and would rather not lose:
// XDG_STATE_HOME, or .local/state in the user's home.
func StateDir() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return dir, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(home, ".local", "state"), nil
}

// UnusableError reports that there is no folder to keep anything in.
type UnusableError struct {
	Note string // what was tried
	Err  error
}

func (e *UnusableError) Error() string {
	return fmt.Sprintf("%s; that cannot be used: %v", e.Note, e.Err)
}
func (e *UnusableError) Unwrap() error { return e.Err }

// makePrivate makes dir, or makes sure that it belongs to this user alone: among the temporary
// files anybody could have put it there.
func makePrivate(dir string) error {
	if err := os.Mkdir(dir, 0o700); err == nil || !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || info.Mode().Perm()&0o022 != 0 || !ok || int(owner.Uid) != os.Getuid() {
		return fmt.Errorf("%s exists and is not a folder that only this user can write", dir)
	}
	return nil
}
