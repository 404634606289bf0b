package sysmem

import (
	"testing"
	"testing/fstest"
)

func TestLimit(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	mem := file("MemTotal: 1000 kB\nMemAvailable: 600 kB\n")
	for _, tc := range []struct {
		name string
		fs   fstest.MapFS
		want int64
		ok   bool
	}{
		{"no cgroup", fstest.MapFS{"proc/meminfo": mem}, 0, false},
		{"v1 without limit", fstest.MapFS{
			"proc/meminfo": mem, "proc/self/cgroup": file("3:memory:/a\n"),
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes": file("9223372036854771712\n"), "sys/fs/cgroup/memory/a/memory.usage_in_bytes": file("5\n"),
		}, 0, false},
		{"v2", fstest.MapFS{
			"proc/meminfo": mem, "proc/self/cgroup": file("0::/a\n"),
			"sys/fs/cgroup/a/memory.max": file("4096\n"), "sys/fs/cgroup/a/memory.current": file("5\n"),
		}, 4096, true},
		{"nothing is known", fstest.MapFS{}, 0, false},
	} {
		if got, ok := limit(tc.fs); got != tc.want || ok != tc.ok {
			t.Errorf("%s: got %d, %v, want %d, %v", tc.name, got, ok, tc.want, tc.ok)
		}
	}
}
