package membw

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Any machine reads more than 100 MB/s and less than 100 TB/s, caches included.
func TestMeasure(t *testing.T) {
	for _, threads := range []int{0, 1, 2} {
		got, err := Measure(t.Context(), Config{Threads: threads, Bytes: 96 << 20, Time: 20 * time.Millisecond})
		if err != nil || got.Min < 1e8 || got.Max > 1e14 || got.Median < got.Min || got.Median > got.Max || got.Passes*got.PassBytes < minReadings*got.Bytes {
			t.Errorf("%d threads: %+v, %v; want 1e8 to 1e14 bytes a second, from %d readings or more", threads, got, err, minReadings)
		}
		named := slices.ContainsFunc(loops(), func(l loop) bool { return l.name == got.Loop })
		if threads > 0 && (got.Threads != threads || got.PassBytes != threads*passBlocks*BlockBytes) || got.Threads < 1 || got.Bytes != 96<<20 || !named {
			t.Errorf("%d threads: %+v, want the setting and one of the loops", threads, got)
		}
	}
}

// Passes go on for the time given, and end early with the context.
func TestMeasureTime(t *testing.T) {
	begin := time.Now()
	if _, err := Measure(t.Context(), Config{Threads: 1, Bytes: BlockBytes, Time: 30 * time.Millisecond}); err != nil || time.Since(begin) < 30*time.Millisecond {
		t.Errorf("30 ms: %v after %v, want no error and no less", err, time.Since(begin))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	begin = time.Now()
	c := Config{Threads: 2, Bytes: 2 * BlockBytes, Time: time.Hour}
	if got, err := Measure(ctx, c); !errors.Is(err, context.DeadlineExceeded) || got != (Rate{}) || time.Since(begin) > time.Minute {
		t.Errorf("a context of 20 ms: %+v, %v after %v; want %v soon", got, err, time.Since(begin), context.DeadlineExceeded)
	}
	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	if _, err := Measure(ctx, Config{Threads: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v, want %v", err, context.Canceled)
	}
}

func TestMeasureRefuses(t *testing.T) {
	for _, c := range []Config{
		{Threads: -1}, {Threads: maxThreads + 1}, {Bytes: -5}, {Bytes: BlockBytes - 1}, {Bytes: BlockBytes + 64},
		{Threads: 3, Bytes: 2 * BlockBytes}, {Bytes: 1 << 62}, {Time: -1},
	} {
		if got, err := Measure(t.Context(), c); err == nil || got != (Rate{}) {
			t.Errorf("%+v: %+v, %v; want an error", c, got, err)
		}
	}
}

// Every word that a loop loads counts once, whatever lane or stream it lies in.
func TestLoops(t *testing.T) {
	for _, l := range slices.Concat(loops(), portable()) {
		for _, n := range []int{128, 256, 384, 4096} {
			// The sum of random words shows a word that is missing or read twice.
			random, w, want := rand.New(rand.NewPCG(uint64(n), 1)), make([]uint64, n), uint64(0)
			for i := range w {
				w[i] = random.Uint64()
				if i%l.step == 0 {
					want += w[i]
				}
			}
			if got := l.sum(w); got != want {
				t.Errorf("%s: sum of %d words: got %x, want %x", l.name, n, got, want)
			}
		}
	}
}

func BenchmarkRead(b *testing.B) {
	for _, threads := range []int{1, 2, 4, 8, 16} {
		if threads > runtime.NumCPU() {
			break
		}
		r, err := newReader(b.Context(), threads, defaultBytes)
		if err != nil {
			b.Fatal(err)
		}
		for _, l := range loops() {
			b.Run(fmt.Sprintf("threads=%d/loop=%s", threads, strings.ReplaceAll(l.name, " ", "_")), func(b *testing.B) {
				b.SetBytes(int64(r.passBytes()))
				for b.Loop() {
					if _, err := r.pass(b.Context(), l); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		r.close()
	}
}
