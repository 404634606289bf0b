package durable

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"
)

func TestDurable(t *testing.T) {
	dir := t.TempDir()
	if n, err := FreeSpace(dir); err != nil || n == 0 {
		t.Errorf("free space of %s: %d, %v", dir, n, err)
	}
	if err := SyncDir(dir); err != nil {
		t.Errorf("syncing %s: %v", dir, err)
	}
	missing := filepath.Join(dir, "missing")
	if _, err := FreeSpace(missing); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("free space of a missing directory: %v", err)
	}
	if err := SyncDir(missing); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("syncing a missing directory: %v", err)
	}
}
