package sysmem

import (
	"testing"
	"testing/fstest"
)

func TestReadResident(t *testing.T) {
	for _, c := range []struct {
		name, status string
		want         Resident
		ok           bool
	}{
		{"usual", "Name:\tx\nVmRSS:\t  2048 kB\nRssAnon:\t     512 kB\nRssFile:\t 1536 kB\n", Resident{2048 << 10, 512 << 10}, true},
		{"an old kernel", "VmRSS:\t  2048 kB\n", Resident{}, false},
		{"no number", "VmRSS:\t  much kB\nRssAnon:\t 1 kB\n", Resident{}, false},
	} {
		got, err := readResident(fstest.MapFS{"proc/self/status": {Data: []byte(c.status)}})
		if got != c.want || (err == nil) != c.ok {
			t.Errorf("%s: %+v, %v; want %+v and success %v", c.name, got, err, c.want, c.ok)
		}
	}
	if _, err := readResident(fstest.MapFS{}); err == nil {
		t.Error("no file: no error")
	}
	if got, err := ReadResident(); err != nil || got.Own < 1<<16 || got.All < got.Own {
		t.Errorf("this process: %+v, %v; want a plausible size", got, err)
	}
}
