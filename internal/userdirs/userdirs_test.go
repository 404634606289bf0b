package userdirs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCacheDir(t *testing.T) {
	home, none := t.TempDir(), errors.New("no home")
	of := func(dir string, err error) func() (string, error) { return func() (string, error) { return dir, err } }
	dir, note, err := Where{Cache: of(home, nil)}.CacheDir()
	if err != nil || note != "" || dir != filepath.Join(home, Program) {
		t.Errorf("with a home: %q, %q, %v", dir, note, err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the folder is made before it is needed")
	}
	homeless := Where{Cache: of("", none), Temp: t.TempDir()}
	for range 2 { // the second time it is there
		dir, note, err = homeless.CacheDir()
		if err != nil || !strings.Contains(note, none.Error()) || filepath.Dir(dir) != homeless.Temp {
			t.Errorf("without a home: %q, %q, %v", dir, note, err)
		}
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%v, %v; want a private folder", info, err)
		}
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	_, _, err = homeless.CacheDir()
	if e, ok := errors.AsType[*UnusableError](err); !ok || !strings.Contains(e.Note, dir) {
		t.Errorf("a folder that all can write: %v", err)
	}
}
