package mapfault

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestGuard cuts a mapped file short.
func TestGuard(t *testing.T) {
	page := os.Getpagesize()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, make([]byte, 2*page), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	mem, err := unix.Mmap(int(f.Fd()), 0, 2*page, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(mem)
	if err := os.Truncate(path, int64(page)); err != nil {
		t.Fatal(err)
	}
	sum := byte(0)
	read := func(at int) error {
		return Guard(func() error { sum += mem[at]; return nil })
	}
	if err := read(page - 1); err != nil {
		t.Errorf("what is left of the file: %v", err)
	}
	var fault *Fault
	if err := read(page); !errors.As(err, &fault) || fault.Addr == 0 {
		t.Errorf("what is lost of the file: %v, want a *Fault", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("a nil pointer became an error")
		}
	}()
	var p *[1]byte
	Guard(func() error { sum += p[0]; return nil })
}
