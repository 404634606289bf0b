//go:build linux && (amd64 || arm64)

package cuda

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
)

// libm is a library that every system has that can open one.
const libm = "libm.so.6"

// Without a driver the error says which library was looked for where, and what can be done.
func TestNoLibrary(t *testing.T) {
	folder := t.TempDir()
	s := search{
		what: "the driver", variable: "THE_VARIABLE", names: []string{"libnowhere.so.1"}, folders: []string{folder, "/no/such/folder*"}, patterns: []string{"libnowhere.so.1"},
	}
	broken := filepath.Join(folder, "libnowhere.so.1")
	if err := os.WriteFile(broken, []byte("not a library"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := s.open()
	if e := (*LibraryError)(nil); !errors.As(err, &e) || len(e.Tried) != 3 {
		t.Fatalf("%v, want three places", err)
	}
	for _, want := range []string{"cuda: the driver was not found; tried libnowhere.so.1: ", broken + ": ", "libnowhere.so.1 in /no/such/folder*", "set THE_VARIABLE to its path"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not tell %q", err, want)
		}
	}
	s.file = "/no/such/file"
	if _, err := s.open(); err == nil || !strings.Contains(err.Error(), "tried /no/such/file: ") || strings.Contains(err.Error(), folder) {
		t.Errorf("a file that was named is not there: %v", err)
	}
	if _, err := Open(Config{Driver: "/no/such/file"}); err == nil || !strings.Contains(err.Error(), "/no/such/file") || !strings.Contains(err.Error(), DriverVariable) {
		t.Errorf("Open: %v", err)
	}
}

// What the dynamic linker does not know is found in the folders, the latest version first.
func TestFoundInFolders(t *testing.T) {
	real := realFile(t, libm)
	top := t.TempDir()
	for _, version := range []string{"cuda-9.2", "cuda-12.8", "cuda-13.0"} {
		dir := filepath.Join(top, version)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(real, filepath.Join(dir, "libsome.so.1")); err != nil {
			t.Fatal(err)
		}
	}
	s := search{names: []string{"libsome.so.1"}, folders: []string{filepath.Join(top, "nothing"), filepath.Join(top, "cuda-*")}, patterns: []string{"libsome.so.1"}}
	lib, err := s.open()
	if want := filepath.Join(top, "cuda-13.0", "libsome.so.1"); err != nil || lib.path != want {
		t.Errorf("found %q, %v; want %q", lib.path, err, want)
	}
	s.file = filepath.Join(top, "cuda-9.2", "libsome.so.1")
	if lib, err = s.open(); err != nil || lib.path != s.file {
		t.Errorf("found %q, %v; want the file that was named", lib.path, err)
	}
	if _, err := openDriver(Config{Driver: s.file}); err == nil || !strings.Contains(err.Error(), s.file+" has no function cuInit") {
		t.Errorf("a library that is no driver: %v", err)
	}
}

// realFile finds a library's file.
func realFile(t *testing.T, name string) string {
	t.Helper()
	for _, pattern := range []string{"/lib/*-linux-gnu/", "/lib64/", "/usr/lib/*-linux-gnu/", "/usr/lib64/"} {
		if found, _ := filepath.Glob(pattern + name); len(found) > 0 {
			return found[0]
		}
	}
	t.Fatalf("%s lies in none of the usual folders", name)
	return ""
}

// The compiler is of the driver's generation or an earlier one.
func TestCompilerGenerations(t *testing.T) {
	for major, want := range map[int]string{
		13: "libnvrtc.so.13 libnvrtc.so.12 libnvrtc.so.11.2", 12: "libnvrtc.so.12 libnvrtc.so.11.2", 11: "libnvrtc.so.11.2",
	} {
		s := compilerSearch(Config{Folders: []string{"/mine"}}, major)
		if got := strings.Join(s.names, " "); got != want || s.folders[0] != "/mine" {
			t.Errorf("for a driver of CUDA %d: %s in %s first, want %s in /mine", major, got, s.folders[0], want)
		}
	}
}

func TestLaterFirst(t *testing.T) {
	paths := []string{"/a/cuda/lib", "/a/cuda-9.2/lib", "/a/cuda-12.10/lib", "/a/cuda-12.8/lib", "/a/cuda-13.0/lib"}
	slices.SortFunc(paths, laterFirst)
	if got, want := strings.Join(paths, " "), "/a/cuda/lib /a/cuda-13.0/lib /a/cuda-12.10/lib /a/cuda-12.8/lib /a/cuda-9.2/lib"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Calls of C functions give back what they return, cut to an int or whole, and quick ones allocate
// nothing.
func TestCall(t *testing.T) {
	h, err := purego.Dlopen("libc.so.6", purego.RTLD_NOW)
	if err != nil {
		t.Fatal(err)
	}
	s := &symbols{lib: library{h, "libc.so.6"}}
	abs, chr := s.proc("abs"), s.proc("strchr")
	if s.err != nil {
		t.Fatal(s.err)
	}
	minus := -5
	if r := abs.call(uintptr(minus)); r != 5 {
		t.Errorf("abs(-5) is %d", r)
	}
	text := zeroTerminated("moeflux")
	if got := cString(chr.pointer(uintptr(unsafe.Pointer(&text[0])), 'f')); got != "flux" {
		t.Errorf("strchr finds %q", got)
	}
	copies := s.quick("memcpy")
	from, to := []byte("four bytes"), make([]byte, 10)
	if n := testing.AllocsPerRun(100, func() {
		copies.call(uintptr(unsafe.Pointer(&to[0])), uintptr(unsafe.Pointer(&from[0])), 4, 0)
	}); n != 0 {
		t.Errorf("a quick call allocates %v times", n)
	}
	if string(to[:6]) != "four\x00\x00" {
		t.Errorf("memcpy copies %q", to)
	}
	if s.optional("no_such_function") != 0 || s.optional("abs") != abs || s.err != nil {
		t.Errorf("functions that may be missing: %v", s.err)
	}
	s.proc("no_such_function")
	if s.err == nil || !strings.Contains(s.err.Error(), "libc.so.6 has no function no_such_function") {
		t.Errorf("a function that is missing: %v", s.err)
	}
}
