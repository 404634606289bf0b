package sysmem

import "testing"

func TestLimit(t *testing.T) {
	for _, tc := range []struct {
		name  string
		files map[string]string
		want  int64
		ok    bool
	}{
		{"no cgroup", map[string]string{"proc/meminfo": meminfo}, 0, false},
		{"v1 without limit", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "3:memory:/a\n", "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "9223372036854771712\n",
			"sys/fs/cgroup/memory/a/memory.usage_in_bytes": "5\n", "sys/fs/cgroup/memory/a/memory.stat": "total_inactive_file 0\n",
		}, 0, false},
		{"v2", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a\n",
			"sys/fs/cgroup/a/memory.max": "4096\n", "sys/fs/cgroup/a/memory.current": "5\n", "sys/fs/cgroup/a/memory.stat": "anon 5\n",
		}, 4096, true},
		{"nothing is known", nil, 0, false},
	} {
		if got, ok := limit(plant(t, tc.files)); got != tc.want || ok != tc.ok {
			t.Errorf("%s: got %d, %v, want %d, %v", tc.name, got, ok, tc.want, tc.ok)
		}
	}
}
