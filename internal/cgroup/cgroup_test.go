package cgroup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

// fakeRoot makes the files that FindMemory and FindIO look for, by path.
func fakeRoot(t *testing.T, files map[string]string) string {
	t.Helper()
	root, all := t.TempDir(), fstest.MapFS{}
	for name, content := range files {
		all[name] = &fstest.MapFile{Data: []byte(content)}
	}
	if err := os.CopyFS(root, all); err != nil {
		t.Fatal(err)
	}
	return root
}

func TestFind(t *testing.T) {
	const memory, io = "sys/fs/cgroup/memory/memory.limit_in_bytes", "sys/fs/cgroup/blkio/blkio.throttle.read_bps_device"
	const have, on = "sys/fs/cgroup/cgroup.controllers", "sys/fs/cgroup/cgroup.subtree_control"
	for _, c := range []struct {
		name       string
		files      map[string]string
		user       int
		memory, io int    // versions; 0: an error
		want       string // in the errors
	}{
		{"not root", map[string]string{memory: "", io: ""}, 1000, 0, 0, "need root; run it with sudo"},
		{"no cgroups", nil, 0, 0, 0, "this needs Linux: mount the version 1 controller"},
		{"version 1", map[string]string{memory: "1", io: "1"}, 0, 1, 1, ""},
		{"version 1 without throttling", map[string]string{memory: "1"}, 0, 1, 0, "no blkio cgroup with blkio.throttle"},
		{"version 2", map[string]string{have: "cpu memory io\n", on: "memory io\n"}, 0, 2, 2, ""},
		{"version 2, to be switched on", map[string]string{have: "cpu memory io\n"}, 0, 2, 2, ""},
		{"version 2 without both", map[string]string{have: "cpu rdma iox\n"}, 0, 0, 0, "but not "},
		{"one of each", map[string]string{memory: "1", have: "cpu io\n"}, 0, 1, 2, ""},
	} {
		root := fakeRoot(t, c.files)
		for want, find := range map[*int]func(string, int) (*Tree, error){&c.memory: FindMemory, &c.io: FindIO} {
			g, err := find(root, c.user)
			switch {
			case *want == 0 && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%s: got %v, want an error with %q", c.name, err, c.want)
			case *want != 0 && (err != nil || g.version != *want):
				t.Errorf("%s: got %+v, %v, want version %d", c.name, g, err, *want)
			}
		}
	}
}

// TestGroup writes what both versions expect, and reads what they report.
func TestGroup(t *testing.T) {
	files := map[int]map[string]string{
		1: {"memory.memsw.limit_in_bytes": "", "memory.usage_in_bytes": "17\n", "memory.max_usage_in_bytes": "18\n", "memory.oom_control": "under_oom 0\noom_kill 3\n"},
		2: {"memory.swap.max": "", "memory.current": "17\n", "memory.peak": "18\n", "memory.events": "oom 4\noom_kill 3\n"},
	}
	want := map[int]map[string]string{
		1: {"memory.limit_in_bytes": "1000", "memory.memsw.limit_in_bytes": "1000", "blkio.throttle.read_bps_device": "8:0 1"},
		2: {"memory.max": "1000", "memory.swap.max": "0", "io.max": "8:0 rbps=1"},
	}
	for version := 1; version <= 2; version++ {
		tree := &Tree{fakeRoot(t, map[string]string{"x": ""}), version}
		g, err := tree.Make("group")
		if err != nil {
			t.Fatal(err)
		}
		for name, content := range files[version] {
			if err := os.WriteFile(filepath.Join(g.Dir(), name), []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		// A kernel provides these files; an ordinary folder does not.
		for name := range want[version] {
			if f, err := os.OpenFile(filepath.Join(g.Dir(), name), os.O_CREATE, 0o644); err == nil {
				f.Close()
			}
		}
		if err := g.SetLimit(1000); err != nil {
			t.Error(err)
		}
		if err := g.SetReadRate("8:0", 1); err != nil {
			t.Error(err)
		}
		for name, content := range want[version] {
			if raw, err := os.ReadFile(filepath.Join(g.Dir(), name)); err != nil || string(raw) != content {
				t.Errorf("version %d: %s holds %q, %v; want %q", version, name, raw, err, content)
			}
		}
		kills, err := g.Kills()
		if err != nil || g.Usage() != 17 || g.Peak() != 18 || kills != 3 {
			t.Errorf("version %d: usage %d, peak %d, kills %d, %v", version, g.Usage(), g.Peak(), kills, err)
		}
	}
}
