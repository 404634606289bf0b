package host

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/moeflux/moeflux-actor/internal/testenv"
)

// taskFunc is a task for tests.
type taskFunc func(chunk int)

func (f taskFunc) do(_ *scratch, chunk int) { f(chunk) }

// TestInline checks from how much work on threads share it: with two of them from 20 µs, with many
// from a few, which is what handing over costs.
func TestInline(t *testing.T) {
	for _, c := range []struct {
		threads, ns int
		want        bool
	}{
		{1, 1e9, true}, {2, 19_998, true}, {2, 20_000, false}, {4, 4_000, true}, {4, 5_000, false},
		{16, 3_500, true}, {16, 4_000, false}, {64, 8_000, true}, {64, 9_000, false},
	} {
		if got := inline(c.threads, c.ns); got != c.want {
			t.Errorf("%d threads, %d ns: inline is %t", c.threads, c.ns, got)
		}
	}
}

// TestPoolRunsEachChunkOnce runs jobs of every size with threads that take turns being slow.
func TestPoolRunsEachChunkOnce(t *testing.T) {
	for threads := 1; threads <= 5; threads++ {
		p := newPool(threads - 1)
		var s scratch
		for chunks := 1; chunks < 40; chunks++ {
			counts := make([]atomic.Int32, chunks)
			p.run(&s, taskFunc(func(c int) {
				if c%(threads+1) == 1 {
					time.Sleep(20 * time.Microsecond)
				}
				counts[c].Add(1)
			}), chunks, threads, nil)
			for c := range counts {
				if n := counts[c].Load(); n != 1 {
					t.Errorf("%d threads, %d chunks: chunk %d ran %d times", threads, chunks, c, n)
				}
			}
		}
		p.close()
	}
}

// TestPoolStopsAtPanic checks that run raises the panic of a chunk, that no chunk runs afterwards,
// and that the pool stays usable.
func TestPoolStopsAtPanic(t *testing.T) {
	p := newPool(2)
	defer p.close()
	var s scratch
	for round := range 50 {
		var running atomic.Int32
		func() {
			defer func() {
				if r, ok := recover().(*chunkPanic); !ok || r.value != "chunk" {
					t.Errorf("round %d: got %v, want the chunk's panic", round, r)
				}
				if n := running.Load(); n != 0 {
					t.Errorf("round %d: %d chunks still run", round, n)
				}
			}()
			p.run(&s, taskFunc(func(c int) {
				running.Add(1)
				defer running.Add(-1)
				if c == round {
					panic("chunk")
				}
			}), 50, 3, nil)
		}()
	}
}

// TestIdlePoolSleeps checks the process's processor time while a pool is idle: below 2 % of a core
// soon after the last job.
func TestIdlePoolSleeps(t *testing.T) {
	d := open(t, 4)
	var s scratch
	// On a busy machine workers take a while to sleep, and the collector works in one window or
	// another; workers that never sleep are busy in all of them.
	const wait = 500 * time.Millisecond
	least := wait
	for range 10 {
		d.pool.run(&s, taskFunc(func(int) {}), 8, 4, nil)
		time.Sleep(wait / 10)
		before := cpuTime(t)
		time.Sleep(wait)
		if least = min(least, cpuTime(t)-before); least <= wait/50 {
			return
		}
	}
	t.Errorf("an idle pool used %v in %v at best, want at most %v", least, wait, wait/50)
}

func cpuTime(t *testing.T) time.Duration {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		t.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// readTask reads its part of memory.
type readTask struct {
	mem   []byte
	chunk int
	sum   atomic.Uint64
}

func (r *readTask) do(_ *scratch, chunk int) {
	m := r.mem[chunk*r.chunk : (chunk+1)*r.chunk]
	var a, b, c, d uint64
	// with one load for each cache line the loop does not slow memory down
	for ; len(m) >= 64; m = m[64:] {
		a += binary.LittleEndian.Uint64(m)
		b ^= binary.LittleEndian.Uint64(m[16:])
		c += binary.LittleEndian.Uint64(m[32:])
		d ^= binary.LittleEndian.Uint64(m[48:])
	}
	r.sum.Add(a + b + c + d)
}

// BenchmarkPool walks through 1 GiB in jobs of one size, divided into 8 chunks like an operation of
// a decoded token. 16 KiB shows the cost of the job itself.
func BenchmarkPool(b *testing.B) {
	mem, err := new(Device).mapMemory(1 << 30)
	if err != nil {
		b.Fatal(err)
	}
	defer unmap(mem)
	for i := 0; i < len(mem); i += 4096 {
		mem[i] = 1
	}
	d := open(b, 0)
	for _, job := range []int{16 << 10, 256 << 10, 2 << 20, 16 << 20, 1 << 30} {
		b.Run(fmt.Sprintf("job=%dKiB/threads=%d", job>>10, d.Threads()), func(b *testing.B) {
			const chunks = 8
			t := &readTask{chunk: job / chunks}
			var s scratch
			b.SetBytes(int64(job))
			at := 0
			for b.Loop() {
				if at+job > len(mem) {
					at = 0
				}
				t.mem = mem[at : at+job]
				d.pool.run(&s, t, chunks, d.Threads(), nil)
				at += job
			}
		})
	}
}

// TestPoolEnds closes pools right after a job, when workers are anywhere between it and sleep: all
// of them end.
func TestPoolEnds(t *testing.T) {
	var s scratch
	for range testenv.Rounds(2000, 5000, 50000) {
		p := newPool(3)
		p.run(&s, taskFunc(func(int) {}), 8, 4, nil)
		p.close()
	}
}
