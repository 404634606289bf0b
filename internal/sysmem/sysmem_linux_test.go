package sysmem

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// plant writes files under a new root.
func plant(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		write(t, root, name, content)
	}
	return root
}

func write(t *testing.T, root, name, content string) {
	t.Helper()
	path := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

const meminfo = "MemTotal:    1000 kB\nMemFree:      10 kB\nMemAvailable:    600 kB\n"

func TestRead(t *testing.T) {
	type files = map[string]string
	for _, tc := range []struct {
		name  string
		files files
		want  Info
	}{
		{"no cgroup", files{"proc/meminfo": meminfo}, Info{1000 << 10, 600 << 10, 0}},
		{"pressure of the machine", files{
			"proc/meminfo": meminfo, "proc/pressure/memory": "some avg10=0.31 avg60=0.53 avg300=2.28 total=28237626\nfull avg10=0.00 total=7\n",
		}, Info{1000 << 10, 600 << 10, 28237626 * time.Microsecond}},
		{"v2 without limit", files{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a\n", "proc/pressure/memory": "some avg10=0 total=9\n",
			"sys/fs/cgroup/a/memory.max": "max\n", "sys/fs/cgroup/a/memory.high": "max\n", "sys/fs/cgroup/a/memory.current": "5\n",
			"sys/fs/cgroup/a/memory.stat": "anon 3\n", "sys/fs/cgroup/a/memory.pressure": "some avg10=0 total=4000\n",
		}, Info{1000 << 10, 600 << 10, 4 * time.Millisecond}},
		{"v2, the parent's limit is tighter", files{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max": "700000\n", "sys/fs/cgroup/a/b/memory.current": "5\n", "sys/fs/cgroup/a/b/memory.stat": "anon 5\n",
			"sys/fs/cgroup/a/memory.max": "300000\n", "sys/fs/cgroup/a/memory.current": "100000\n",
			"sys/fs/cgroup/a/memory.stat": "anon 3\ninactive_file 40000\nactive_file 20000\nworkingset_refault_file 9\n",
		}, Info{300000, 260000, 0}},
		{"v2, a soft limit, and a group below it that is full", files{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max": "200000\n", "sys/fs/cgroup/a/b/memory.current": "190000\n", "sys/fs/cgroup/a/b/memory.stat": "anon 190000\n",
			"sys/fs/cgroup/a/memory.max": "max\n", "sys/fs/cgroup/a/memory.high": "150000\n", "sys/fs/cgroup/a/memory.current": "100000\n",
			"sys/fs/cgroup/a/memory.stat": "inactive_file 0\n",
		}, Info{150000, 10000, 0}},
		{"v1 seen from inside", files{
			"proc/meminfo": meminfo, "proc/self/cgroup": "3:cpu:/x\n4:memory:/x\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "200000\n", "sys/fs/cgroup/memory/memory.usage_in_bytes": "50000\n",
			"sys/fs/cgroup/memory/memory.stat": "inactive_file 1\ntotal_inactive_file 10000\ntotal_active_file 5000",
		}, Info{200000, 165000, 0}},
		{"v1, more used than allowed", files{
			"proc/meminfo": meminfo, "proc/self/cgroup": "4:memory:/x\n",
			"sys/fs/cgroup/memory/x/memory.limit_in_bytes": "200000\n", "sys/fs/cgroup/memory/x/memory.usage_in_bytes": "250000\n",
			"sys/fs/cgroup/memory/x/memory.stat": "total_inactive_file 0\n",
		}, Info{200000, 0, 0}},
	} {
		m, err := newMonitor(plant(t, tc.files))
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		got, err := m.Read()
		if err != nil || got != tc.want {
			t.Errorf("%s: got %+v, %v, want %+v", tc.name, got, err, tc.want)
		}
		m.Close()
	}
	if _, err := newMonitor(t.TempDir()); err == nil {
		t.Error("without /proc/meminfo: no error")
	}
	m, err := newMonitor(plant(t, files{"proc/meminfo": "MemTotal: 5 kB\n"}))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if _, err := m.Read(); err == nil {
		t.Error("/proc/meminfo without MemAvailable: no error")
	}
	if got, err := Read(); err != nil || got.Available <= 0 || got.Available > got.Total {
		t.Errorf("this machine: got %+v, %v", got, err)
	}
}

// The next Read sees a limit that changed, and allocates nothing.
func TestMonitor(t *testing.T) {
	root := plant(t, map[string]string{
		"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "500000\n",
		"sys/fs/cgroup/a/memory.current": "100000\n", "sys/fs/cgroup/a/memory.stat": "inactive_file 0\n",
	})
	m, err := newMonitor(root)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for _, c := range []struct {
		limit string
		want  int64
	}{{"500000\n", 400000}, {"300000\n", 200000}, {"max\n", 600 << 10}, {"400000\n", 300000}} {
		write(t, root, "sys/fs/cgroup/a/memory.max", c.limit)
		if got, err := m.Read(); err != nil || got.Available != c.want {
			t.Errorf("limit %q: %+v, %v; want %d available", c.limit, got, err, c.want)
		}
	}
	real, err := NewMonitor()
	if err != nil {
		t.Fatal(err)
	}
	defer real.Close()
	if n := testing.AllocsPerRun(20, func() {
		if _, err := real.Read(); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations a Read, want none", n)
	}
}

func BenchmarkMonitor(b *testing.B) {
	m, err := NewMonitor()
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	for b.Loop() {
		if _, err := m.Read(); err != nil {
			b.Fatal(err)
		}
	}
}
