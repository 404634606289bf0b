package main

import (
	"errors"
	"testing"
)

func TestSize(t *testing.T) {
	total := func() (int64, error) { return 16 << 30, nil }
	for _, c := range []struct {
		in   string
		want int64
	}{
		{"0", 0}, {"1", 1}, {"1073741824", 1 << 30}, {"100B", 100}, {"8GiB", 8 << 30}, {"8 gib", 8 << 30}, {"512MB", 512e6},
		{"1.5KiB", 1536}, {"2TiB", 2 << 40}, {"3kb", 3000}, {"50%", 8 << 30}, {"100%", 16 << 30}, {" 12.5 % ", 2 << 30},
	} {
		var s size
		if err := s.UnmarshalText([]byte(c.in)); err != nil {
			t.Errorf("%q: %v, want %d", c.in, err, c.want)
			continue
		}
		if got, err := s.resolve(total); err != nil || got != c.want {
			t.Errorf("%q = %d, %v, want %d", c.in, got, err, c.want)
		}
	}
	for _, in := range []string{"", "B", "GiB", "8G", "8Gi", "-1", "-1GiB", "+1", "1e3", "0x10", "NaN", "Inf", "InfB", "1_000", "0%", "-5%", "101%", "%", "NaN%", "9EiB", "8589934592GiB", "0.1", "5 5", "1..2"} {
		var s size
		if err := s.UnmarshalText([]byte(in)); err == nil {
			t.Errorf("%q is taken as %+v, want an error", in, s)
		}
	}
	why := errors.New("no meter")
	if _, err := (size{percent: 50}).resolve(func() (int64, error) { return 0, why }); !errors.Is(err, why) {
		t.Errorf("a share of unknown memory: error %v, want %v", err, why)
	}
}

func TestFormatBytes(t *testing.T) {
	for _, c := range []struct {
		n    int64
		want string
	}{{0, "0 B"}, {999, "999 B"}, {1000, "0.98 KiB"}, {1024, "1.00 KiB"}, {10 << 10, "10.0 KiB"}, {100 << 10, "100 KiB"}, {5 << 30, "5.00 GiB"}, {1<<63 - 1, "8.00 EiB"}} {
		if got := formatBytes(c.n); got != c.want {
			t.Errorf("formatBytes(%d) = %q, want %q", c.n, got, c.want)
		}
	}
}

func FuzzSize(f *testing.F) {
	for _, s := range []string{"8GiB", "50%", "", "1e309", "999999999999999999999TiB", "%%"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		var s size
		if s.UnmarshalText([]byte(in)) != nil {
			return
		}
		if n, err := s.resolve(func() (int64, error) { return 1 << 40, nil }); err != nil || n < 0 {
			t.Errorf("%q = %d, %v", in, n, err)
		}
	})
}
