// Package durable holds what the writers of model directories ask of a file system: how much room there is, and that a rename
// is on the disk.
package durable

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// FreeSpace returns the bytes that this user may write on the file system of dir.
func FreeSpace(dir string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return uint64(s.Bavail) * uint64(s.Bsize), nil
}

// SyncDir makes creations and renames in a directory durable, where the file system can.
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
