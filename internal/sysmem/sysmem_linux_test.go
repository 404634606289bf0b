package sysmem

import (
	"testing"
	"testing/fstest"
)

func TestRead(t *testing.T) {
	mem := &fstest.MapFile{Data: []byte("MemTotal: 1000 kB\nMemFree: 10 kB\nMemAvailable: 600 kB\n")}
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	for _, tc := range []struct {
		name string
		fs   fstest.MapFS
		want Info
	}{
		{"no cgroup", fstest.MapFS{"proc/meminfo": mem}, Info{1000 << 10, 600 << 10}},
		{"v2 without limit", fstest.MapFS{
			"proc/meminfo": mem, "proc/self/cgroup": file("0::/a\n"),
			"sys/fs/cgroup/a/memory.max": file("max\n"), "sys/fs/cgroup/a/memory.current": file("5\n"),
		}, Info{1000 << 10, 600 << 10}},
		{"v2, the parent's limit is tighter", fstest.MapFS{
			"proc/meminfo": mem, "proc/self/cgroup": file("0::/a/b\n"),
			"sys/fs/cgroup/a/b/memory.max": file("700000\n"), "sys/fs/cgroup/a/b/memory.current": file("5\n"),
			"sys/fs/cgroup/a/memory.max": file("300000\n"), "sys/fs/cgroup/a/memory.current": file("100000\n"),
			"sys/fs/cgroup/a/memory.stat": file("anon 3\ninactive_file 40000\n"),
		}, Info{300000, 240000}},
		{"v1 seen from inside", fstest.MapFS{
			"proc/meminfo": mem, "proc/self/cgroup": file("3:cpu:/x\n4:memory:/x\n"),
			"sys/fs/cgroup/memory/memory.limit_in_bytes": file("200000\n"), "sys/fs/cgroup/memory/memory.usage_in_bytes": file("50000\n"),
		}, Info{200000, 150000}},
	} {
		got, err := read(tc.fs)
		if err != nil || got != tc.want {
			t.Errorf("%s: got %+v, %v, want %+v", tc.name, got, err, tc.want)
		}
	}
	if _, err := read(fstest.MapFS{}); err == nil {
		t.Error("without /proc/meminfo: no error")
	}
	if got, err := Read(); err != nil || got.Available <= 0 || got.Available > got.Total {
		t.Errorf("this machine: got %+v, %v", got, err)
	}
}
