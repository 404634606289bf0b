package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/cgroup"
	"github.com/moeflux/moeflux-actor/server/access"
)

// What -keys prints is what a server reads: four keys that share alike, that of the crowd, and one
// that may read figures.
func TestKeys(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), []string{"-keys"}, &out); err != nil {
		t.Fatal(err)
	}
	keys, err := access.Read(strings.NewReader(out.String()))
	if err != nil || len(keys) != 6 || !keys[5].Admin {
		t.Errorf("%v, %d keys of\n%s", err, len(keys), out.String())
	}
}

// A server that cannot be started is told with what it said, and nothing of it stays.
func TestNoServer(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	silent := filepath.Join(t.TempDir(), "silent")
	if err := os.WriteFile(silent, []byte("#!/bin/sh\necho no memory >&2\nexit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for part, args := range map[string][]string{
		"go build -o bin/": {"-program", "/nowhere"}, "no memory": {"-soft", "-program", silent}, "exit status 3": {"-soft", "-program", silent},
		"is no flag": {"more"}, "as many clients": {"-clients", "3", "-url", "http://127.0.0.1:1"},
		"before the load": {"-url", "http://127.0.0.1:1"},
	} {
		if err := run(t.Context(), args, io.Discard); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q: %v, want an error that says %s", args, err, part)
		}
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("%d folders are left (%v)", len(left), err)
	}
}

// Where a cgroup can be made the server is in it, and it is gone afterwards; elsewhere the error
// says what else there is.
func TestCgroup(t *testing.T) {
	dir := t.TempDir()
	program, where := filepath.Join(dir, "says-where"), filepath.Join(dir, "where")
	if err := os.WriteFile(program, []byte("#!/bin/sh\ncat /proc/self/cgroup >"+where+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	err := run(t.Context(), []string{"-program", program}, io.Discard)
	tree, none := cgroup.FindMemory("/", os.Geteuid())
	if none == nil {
		var g *cgroup.Group
		if g, none = tree.Make(fmt.Sprintf("moeflux-serveload-test-%d", os.Getpid())); none == nil {
			defer g.Remove()
		}
	}
	if none != nil {
		if err == nil || !strings.Contains(err.Error(), "-soft") {
			t.Errorf("without cgroups (%v): %v", none, err)
		}
		return
	}
	said, readErr := os.ReadFile(where)
	name := fmt.Sprintf("moeflux-serveload-%d", os.Getpid())
	if readErr != nil || !strings.Contains(string(said), "/"+name) {
		t.Errorf("%v (%v): the server is in\n%s", err, readErr, said)
	}
	if g, err := tree.Make(name); err != nil {
		t.Errorf("the cgroup is left: %v", err)
	} else if err := g.Remove(); err != nil {
		t.Error(err)
	}
}
