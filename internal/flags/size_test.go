package flags

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
		var s Size
		if err := s.UnmarshalText([]byte(c.in)); err != nil {
			t.Errorf("%q: %v, want %d", c.in, err, c.want)
			continue
		}
		if got, err := s.Resolve(total); err != nil || got != c.want {
			t.Errorf("%q = %d, %v, want %d", c.in, got, err, c.want)
		}
	}
	for _, in := range []string{"", "B", "GiB", "8G", "8Gi", "-1", "-1GiB", "+1", "1e3", "0x10", "NaN", "Inf", "InfB", "1_000", "0%", "-5%", "101%", "%", "NaN%", "9EiB", "8589934592GiB", "0.1", "5 5", "1..2"} {
		var s Size
		if err := s.UnmarshalText([]byte(in)); err == nil {
			t.Errorf("%q is taken as %+v, want an error", in, s)
		}
	}
	why := errors.New("no meter")
	if _, err := (Size{Percent: 50}).Resolve(func() (int64, error) { return 0, why }); !errors.Is(err, why) {
		t.Errorf("a share of unknown memory: error %v, want %v", err, why)
	}
}

func FuzzSize(f *testing.F) {
	for _, s := range []string{"8GiB", "50%", "", "1e309", "999999999999999999999TiB", "%%"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		var s Size
		if s.UnmarshalText([]byte(in)) != nil {
			return
		}
		if n, err := s.Resolve(func() (int64, error) { return 1 << 40, nil }); err != nil || n < 0 {
			t.Errorf("%q = %d, %v", in, n, err)
		}
	})
}
