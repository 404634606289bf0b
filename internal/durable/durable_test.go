package durable

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error { _, err := io.WriteString(w, s); return err }
}

// content returns what a folder holds: names, and what is in files.
func content(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, e := range entries {
		b, _ := os.ReadFile(filepath.Join(dir, e.Name()))
		all[e.Name()] = string(b)
	}
	return all
}

// holds fails the test unless a folder has that file alone, or nothing if it is "".
func holds(t *testing.T, dir, want string) {
	t.Helper()
	all := map[string]string{}
	if want != "" {
		all["file"] = want
	}
	if got := content(t, dir); fmt.Sprint(got) != fmt.Sprint(all) {
		t.Errorf("the folder holds %q, want %q", got, all)
	}
}

// recorder notes calls, and fails the one that it is told to.
type recorder struct {
	OS
	calls []string
	fail  string // a call
	err   error
}

func (r *recorder) call(name string) error {
	r.calls = append(r.calls, name)
	if name == r.fail {
		return r.err
	}
	return nil
}

func (r *recorder) Create(path string, perm fs.FileMode) (File, error) {
	if err := r.call("create"); err != nil {
		return nil, err
	}
	f, err := r.OS.Create(path, perm)
	return &recordedFile{f, r}, err
}

func (r *recorder) Rename(from, to string) error {
	if err := r.call("rename"); err != nil {
		return err
	}
	return r.OS.Rename(from, to)
}

func (r *recorder) SyncDir(dir string) error {
	return errors.Join(r.call("sync folder "+filepath.Base(dir)), r.OS.SyncDir(dir))
}

type recordedFile struct {
	File
	r *recorder
}

func (f *recordedFile) Write(p []byte) (int, error) {
	if err := f.r.call("write"); err != nil {
		n, _ := f.File.Write(p[:len(p)/2])
		return n, err
	}
	return f.File.Write(p)
}
func (f *recordedFile) Sync() error  { return errors.Join(f.r.call("sync"), f.File.Sync()) }
func (f *recordedFile) Close() error { return errors.Join(f.File.Close(), f.r.call("close")) }

// What makes a file durable happens, and in this order.
func TestOrder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "folder")
	r := &recorder{}
	err := errors.Join(os.Mkdir(dir, 0o700), ReplaceIn(r, filepath.Join(dir, "file"), Shared, text("content")))
	if want := []string{"create", "write", "sync", "close", "rename", "sync folder folder"}; err != nil || !slices.Equal(r.calls, want) {
		t.Errorf("calls %q, %v; want %q", r.calls, err, want)
	}
	holds(t, dir, "content")
}

// Whatever fails, the old file stays and nothing is left beside it. When the folder cannot be
// synced, the new file is in place and the error says that it may not last.
func TestFailures(t *testing.T) {
	for _, call := range []string{"create", "write", "sync", "close", "rename", "sync folder folder"} {
		for _, old := range []string{"", "old"} {
			t.Run(call+"/"+old, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "folder")
				path := filepath.Join(dir, "file")
				if err := os.Mkdir(dir, 0o700); err != nil {
					t.Fatal(err)
				}
				if old != "" {
					if err := WriteFile(path, Shared, []byte(old)); err != nil {
						t.Fatal(err)
					}
				}
				r := &recorder{fail: call, err: syscall.ENOSPC}
				if err := ReplaceIn(r, path, Shared, text("new")); !errors.Is(err, syscall.ENOSPC) {
					t.Errorf("got %v, want ENOSPC", err)
				}
				if call == "sync folder folder" {
					old = "new"
				}
				holds(t, dir, old)
			})
		}
	}
}

// A writer that gives up, because its context ended or otherwise, leaves nothing; one that panics
// neither.
func TestWriterFails(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	broken := errors.New("broken on purpose")
	fails := func(w io.Writer) error { return errors.Join(text(strings.Repeat("x", 1<<20))(w), broken) }
	panics := func(w io.Writer) error { panic(broken) }
	for _, old := range []string{"", "old"} {
		if old != "" {
			if err := WriteFile(path, Shared, []byte(old)); err != nil {
				t.Fatal(err)
			}
		}
		if err := Replace(path, Shared, fails); !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
		holds(t, dir, old)
		func() {
			defer func() {
				if got := recover(); got != broken {
					t.Errorf("recovered %v", got)
				}
			}()
			_ = Replace(path, Shared, panics)
		}()
		holds(t, dir, old)
	}
}

// dying in the environment makes the test binary a process that dies while it writes a file;
// writing, one that makes some files and folders there under a umask.
const dying, writing, mask = "DURABLE_TEST_DYING", "DURABLE_TEST_WRITING", "DURABLE_TEST_UMASK"

func TestMain(m *testing.M) {
	if path := os.Getenv(dying); path != "" {
		err := Replace(path, Shared, func(w io.Writer) error {
			return errors.Join(text(strings.Repeat("new", 1<<20))(w), syscall.Kill(os.Getpid(), syscall.SIGKILL))
		})
		fmt.Println("still alive:", err)
		os.Exit(1)
	}
	if dir := os.Getenv(writing); dir != "" {
		var n int
		fmt.Sscanf(os.Getenv(mask), "%o", &n)
		syscall.Umask(n)
		kept := filepath.Join(dir, "kept")
		if err := errors.Join(
			WriteFile(filepath.Join(dir, "shared"), Shared, nil), WriteFile(filepath.Join(dir, "private"), Private, nil),
			Create(filepath.Join(dir, "created"), Shared, text("")),
			MkdirAll(filepath.Join(dir, "a", "b"), Shared), MkdirAll(filepath.Join(dir, "p", "q"), Private),
			WriteFile(kept, Shared, nil), os.Chmod(kept, 0o604), WriteFile(kept, Shared, []byte("again")),
			os.WriteFile(filepath.Join(dir, "hidden"), nil, 0o600), os.Chmod(filepath.Join(dir, "hidden"), 0o664), WriteFile(filepath.Join(dir, "hidden"), Private, nil),
		); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func again(t *testing.T, env ...string) ([]byte, error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), self)
	c.Env = append(os.Environ(), env...)
	return c.CombinedOutput()
}

// A process that is killed in the middle of its writing leaves the old file.
func TestKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := WriteFile(path, Shared, []byte("old")); err != nil {
		t.Fatal(err)
	}
	if out, err := again(t, dying+"="+path); err == nil || len(out) > 0 {
		t.Fatalf("%v, %q: want that it was killed", err, out)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "old" {
		t.Errorf("%.20q, %v: want the old content", b, err)
	}
}

// The umask is a process's own, so each case has one.
func TestUmask(t *testing.T) {
	for umask, want := range map[string]string{
		"022": "a drwxr-xr-x a/b drwxr-xr-x created -rw-r--r-- hidden -rw------- kept -rw----r-- p drwx------ p/q drwx------ private -rw------- shared -rw-r--r--",
		"077": "a drwx------ a/b drwx------ created -rw------- hidden -rw------- kept -rw----r-- p drwx------ p/q drwx------ private -rw------- shared -rw-------",
		"002": "a drwxrwxr-x a/b drwxrwxr-x created -rw-rw-r-- hidden -rw------- kept -rw----r-- p drwx------ p/q drwx------ private -rw------- shared -rw-rw-r--",
	} {
		dir := t.TempDir()
		if out, err := again(t, writing+"="+dir, mask+"="+umask); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		var got []string
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || path == dir {
				return err
			}
			info, err := d.Info()
			name, _ := filepath.Rel(dir, path)
			got = append(got, name, info.Mode().String())
			return err
		})
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("umask %s: %v, %v\nwant %s", umask, got, err, want)
		}
	}
}

// A link stays one, and what is not a regular file is left alone.
func TestTargets(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	real, link := filepath.Join(other, "file"), filepath.Join(dir, "link")
	if err := errors.Join(WriteFile(real, Shared, []byte("old")), os.Symlink(real, link), WriteFile(link, Shared, []byte("new"))); err != nil {
		t.Fatal(err)
	}
	holds(t, other, "new")
	if to, err := os.Readlink(link); err != nil || to != real {
		t.Errorf("the link leads to %q, %v", to, err)
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, dir, os.DevNull} {
		if err := WriteFile(path, Shared, []byte("x")); err == nil || !strings.Contains(err.Error(), path+" is not a regular file") {
			t.Errorf("%s: %v", path, err)
		}
	}
	if err := WriteFile(filepath.Join(real, "below a file"), Shared, nil); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("below a file: %v", err)
	}
}

func TestCreate(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	broken := errors.New("broken on purpose")
	if err := Create(path, Shared, func(io.Writer) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	holds(t, dir, "")
	if err := Create(path, Shared, text("first")); err != nil {
		t.Error(err)
	}
	if err := Create(path, Shared, text("second")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a file that exists: %v", err)
	}
	holds(t, dir, "first")
}

func TestFolders(t *testing.T) {
	dir := t.TempDir()
	if n, err := FreeSpace(dir); err != nil || n == 0 {
		t.Errorf("free space of %s: %d, %v", dir, n, err)
	}
	missing := filepath.Join(dir, "missing")
	if _, err := FreeSpace(missing); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("free space of a missing folder: %v", err)
	}
	if err := SyncDir(missing); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("syncing a missing folder: %v", err)
	}
	made, file := filepath.Join(dir, "a", "b"), filepath.Join(dir, "a", "b", "file")
	if err := errors.Join(MkdirAll(made, Shared), MkdirAll(made, Shared), WriteFile(file, Shared, []byte("x"))); err != nil {
		t.Error(err)
	}
	if err := MkdirAll(filepath.Join(file, "c"), Shared); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("a folder below a file: %v", err)
	}
	if err := Rename(made, filepath.Join(dir, "c")); err != nil {
		t.Error(err)
	}
	holds(t, filepath.Join(dir, "c"), "x")
	if err := Rename(made, filepath.Join(dir, "d")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("renaming what is gone: %v", err)
	}
}
