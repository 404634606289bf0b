//go:build linux && (amd64 || arm64)

package cuda

import (
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu/launch"
)

// marking adds to a stream: three launches, a mark, three launches and a fill, a mark, a launch. A
// piece of work takes the fake 1000 ns, and so does an event.
func (x *bench) marking(first, second *int64) error {
	fill := func(n int) (err error) {
		for range n {
			if err == nil {
				err = launchFill(x.s, x.p, x.m, 0, 4, 1, 2)
			}
		}
		return err
	}
	m := x.s.(launch.Marker)
	for _, do := range []func() error{
		func() error { return fill(3) }, func() error { return m.Mark(first) }, func() error { return fill(3) },
		func() error { return x.s.Fill(x.m, 0, 16) }, func() error { return m.Mark(second) }, func() error { return fill(1) },
	} {
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

// about reports whether a time is the fake's, whose clock counts in float32.
func about(ns, want int64) bool { return ns-want <= 2 && want-ns <= 2 }

// TestMarks wants each mark of each batch to tell what the device had done by then, while several
// batches are under way, and the launches on both sides of a mark to be graphs of their own.
func TestMarks(t *testing.T) {
	x := openBench(t)
	const batches = 3
	var marks [batches][2]int64
	type ended struct {
		ns  int64
		err error
	}
	done := make(chan ended, batches)
	for round := range 2 {
		for i := range marks {
			if err := x.marking(&marks[i][0], &marks[i][1]); err != nil {
				t.Fatal(err)
			}
			x.s.Commit(func(ns int64, err error) { done <- ended{ns, err} })
		}
		for i := range marks {
			if e := <-done; e.err != nil || !about(e.ns, 11000) {
				t.Errorf("round %d: batch %d took %d ns, %v; want 11000", round, i, e.ns, e.err)
			}
		}
		for i, m := range marks {
			if !about(m[0], 4000) || !about(m[1], 9000) {
				t.Errorf("round %d: the marks of batch %d are at %v, want 4000 and 9000", round, i, m)
			}
		}
		marks = [batches][2]int64{}
	}
	x.f.mu.Lock()
	defer x.f.mu.Unlock()
	// both chains are the same kernels on the same memory: all but the first are replayed
	if n := x.f.counts["cuGraphLaunch"]; n != 2*batches*2-1 {
		t.Errorf("%d launches of graphs, want %d", n, 2*batches*2-1)
	}
}

// TestMarksFail wants a batch whose mark the driver refuses to fail with that, and the next one to
// be whole.
func TestMarksFail(t *testing.T) {
	x := openBench(t)
	elapsed, refuse := x.d.eventElapsed, -1
	x.d.eventElapsed = func(ms *float32, begin, end eventHandle) result {
		if refuse--; refuse == 0 {
			return 1
		}
		return elapsed(ms, begin, end)
	}
	for _, c := range []struct {
		what string
		plan func()
	}{
		{"cuEventCreate", func() { x.f.fail("cuEventCreate", outOfMemory) }},
		{"cuEventElapsedTime", func() { refuse = 3 }}, // the whole, the first mark, the second
		{"cuEventRecord", func() { x.f.fail("cuEventRecord", 1) }},
	} {
		var first, second int64
		if err := launchFill(x.s, x.p, x.m, 0, 4, 1, 2); err != nil { // the batch has its own events
			t.Fatal(err)
		}
		c.plan()
		err := x.marking(&first, &second)
		_, ended := x.commit()
		if ended == nil || !strings.Contains(ended.Error(), c.what) || err != nil && err.Error() != ended.Error() || second != 0 {
			t.Errorf("%s fails: %v, and the batch ends with %v and a second mark at %d", c.what, err, ended, second)
		}
		if err := x.marking(&first, &second); err != nil {
			t.Fatal(err)
		}
		if _, err := x.commit(); err != nil || !about(first, 4000) || !about(second, 9000) {
			t.Errorf("after %s failed: marks at %d and %d, %v", c.what, first, second, err)
		}
	}
}
