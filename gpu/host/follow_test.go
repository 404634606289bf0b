package host

import (
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/gpu"
)

// TestFollowsProcessors changes GOMAXPROCS between runs, as the runtime does when a quota changes.
// A device whose threads were not asked for has as many from its next run on, a device with a
// number of its own keeps it, and both give the same bits all the time.
func TestFollowsProcessors(t *testing.T) {
	processors(t, 1)
	auto, fixed := open(t, 0), open(t, 5)
	var want []float32
	for _, n := range []int{1, 2, 1, runtime.NumCPU() + 1, 2} {
		runtime.GOMAXPROCS(n)
		usable := min(n, runtime.NumCPU())
		for _, d := range []*Device{auto, fixed} {
			threads := map[*Device]int{auto: usable, fixed: 5}[d]
			c := tokenWork(t, d)
			if err := d.Run(c); err != nil {
				t.Fatal(err)
			}
			if got := d.idle[0].threads; got != threads || d.Threads() != threads {
				t.Errorf("GOMAXPROCS %d: %s ran on %d threads and has %d, want %d", n, d.Name(), got, d.Threads(), threads)
			}
			got := floatsAt(c.Ops()[len(c.Ops())-1].(*gpu.Add).Y, 1024)
			if want == nil {
				want = slices.Clone(got)
			}
			if !slices.Equal(got, want) {
				t.Errorf("GOMAXPROCS %d: %s gives other bits", n, d.Name())
			}
		}
	}
}

// TestProcessorsChangeAmid changes GOMAXPROCS again and again while jobs run: the bits stay.
func TestProcessorsChangeAmid(t *testing.T) {
	processors(t, 2)
	auto, fixed := open(t, 0), open(t, 9)
	stop := make(chan bool)
	var changes sync.WaitGroup
	changes.Go(func() {
		for n := 1; ; n = n%9 + 1 {
			select {
			case <-stop:
				return
			case <-time.After(200 * time.Microsecond):
				runtime.GOMAXPROCS(n)
			}
		}
	})
	defer changes.Wait()
	defer close(stop)
	var want []float32
	for range 20 {
		for _, d := range []*Device{auto, fixed} {
			c := tokenWork(t, d)
			if err := d.Run(c); err != nil {
				t.Fatal(err)
			}
			got := floatsAt(c.Ops()[len(c.Ops())-1].(*gpu.Add).Y, 1024)
			if want == nil {
				want = slices.Clone(got)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%s gives other bits while GOMAXPROCS changes", d.Name())
			}
		}
	}
}

// TestFewerProcessorsJoin lowers GOMAXPROCS while workers are awake: those that there is no
// processor for leave the next job to the others. They would take turns with them otherwise, and
// the job would wait for threads that do not run.
func TestFewerProcessorsJoin(t *testing.T) {
	processors(t, 6)
	p := newPool(5)
	defer p.close()
	var s scratch
	joined := func() int {
		var mu sync.Mutex
		seen := map[*scratch]bool{}
		p.run(&s, scratchFunc(func(s *scratch) {
			mu.Lock()
			seen[s] = true
			mu.Unlock()
			for until := time.Now().Add(20 * time.Microsecond); time.Now().Before(until); {
				runtime.Gosched() // the others come to run, if they are awake
			}
		}), 60, 6, nil)
		return len(seen)
	}
	most := 0
	for range 20 {
		runtime.GOMAXPROCS(6)
		most = max(most, joined())
		runtime.GOMAXPROCS(2)
		if n := joined(); n > 2 {
			t.Fatalf("%d threads join a job where 2 can run", n)
		}
	}
	if most < 3 {
		t.Errorf("%d threads join a job where 6 can run", most)
	}
}
