package figures

import "testing"

func TestBytes(t *testing.T) {
	for _, c := range []struct {
		n    int64
		want string
	}{{0, "0 B"}, {999, "999 B"}, {1000, "0.98 KiB"}, {1024, "1.00 KiB"}, {10 << 10, "10.0 KiB"}, {100 << 10, "100 KiB"}, {5 << 30, "5.00 GiB"}, {1<<63 - 1, "8.00 EiB"}} {
		if got := Bytes(c.n); got != c.want {
			t.Errorf("Bytes(%d) = %q, want %q", c.n, got, c.want)
		}
	}
}
