package membw

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A machine that runs this reads more than 100 MB/s and less than 100 TB/s, caches included.
func TestMeasure(t *testing.T) {
	for _, threads := range []int{1, 2} {
		got, err := Measure(t.Context(), threads, 64<<20, 50*time.Millisecond)
		if err != nil || got < 1e8 || got > 1e14 {
			t.Errorf("%d threads: %g bytes a second, %v; want 1e8 to 1e14", threads, got, err)
		}
		t.Logf("%d threads: %.1f GB/s", threads, got/1e9)
	}
}

// Passes go on for the time given, and end early with the context.
func TestMeasureDuration(t *testing.T) {
	begin := time.Now()
	if _, err := Measure(t.Context(), 1, MinBytes, 30*time.Millisecond); err != nil || time.Since(begin) < 30*time.Millisecond {
		t.Errorf("30 ms: %v after %v, want no error and no less", err, time.Since(begin))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	begin = time.Now()
	if got, err := Measure(ctx, 2, 4<<20, time.Hour); !errors.Is(err, context.DeadlineExceeded) || got != 0 || time.Since(begin) > time.Minute {
		t.Errorf("a context of 20 ms: %g, %v after %v; want %v soon", got, err, time.Since(begin), context.DeadlineExceeded)
	}
	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	if _, err := Measure(ctx, 1, 1<<30, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v, want %v", err, context.Canceled)
	}
}

func TestMeasureRefuses(t *testing.T) {
	for _, c := range []struct{ threads, bytes int }{{0, MinBytes}, {-1, MinBytes}, {1, MinBytes - 1}, {1, -5}, {1, 1 << 60}} {
		if got, err := Measure(t.Context(), c.threads, c.bytes, 0); err == nil || got != 0 {
			t.Errorf("%d threads, %d bytes: %g, %v; want an error", c.threads, c.bytes, got, err)
		}
	}
}

// Every word counts, in whatever lane it lies.
func TestSum(t *testing.T) {
	for _, n := range []int{0, 8, 16, 64} {
		w, want := make([]uint64, n), uint64(0)
		for i := range w {
			w[i] = 1 << i
			want += w[i]
		}
		if got := sum(w); got != want {
			t.Errorf("sum of %d words: got %x, want %x", n, got, want)
		}
	}
}

func BenchmarkSum(b *testing.B) {
	r, err := newReader(256 << 20)
	if err != nil {
		b.Fatal(err)
	}
	defer r.end()
	r.touch(b.Context())
	b.SetBytes(256 << 20)
	for b.Loop() {
		r.read()
	}
}
