package durable

import (
	"errors"
	"io"
	"io/fs"
	"os"
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

func TestReplace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	broken := errors.New("broken on purpose")
	for _, c := range []struct {
		text string
		err  error
		want string
	}{{"first", nil, "first"}, {"half of the sec", broken, "first"}, {"third", nil, "third"}} {
		err := Replace(path, func(w io.Writer) error {
			_, err := io.WriteString(w, c.text)
			return errors.Join(err, c.err)
		})
		got, readErr := os.ReadFile(path)
		if !errors.Is(err, c.err) || readErr != nil || string(got) != c.want {
			t.Errorf("%q: %v; the file has %q, %v, want %q", c.text, err, got, readErr, c.want)
		}
		if files, err := os.ReadDir(filepath.Dir(path)); err != nil || len(files) != 1 {
			t.Errorf("%q: the folder holds %v, %v", c.text, files, err)
		}
	}
	if err := Replace(filepath.Join(path, "below a file"), func(io.Writer) error { return nil }); err == nil {
		t.Error("a file was made below a file")
	}
}
