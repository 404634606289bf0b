package actors_test

import (
	"context"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/io/readpool"
)

// slowSource takes its time for each read.
type slowSource struct {
	readpool.Source
	time.Duration
}

func (s slowSource) ReadExpert(layer, expert int, dst []byte) error {
	time.Sleep(s.Duration)
	return s.Source.ReadExpert(layer, expert, dst)
}

// TestTimes decodes with a slow disk: nearly all the time is spent waiting for it, layer by layer,
// and no time is counted twice.
func TestTimes(t *testing.T) {
	const slow = 2 * time.Millisecond
	e := open(t, actors.WithReads(actors.Config{
		Model: fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0), ExpertIO: actors.ExpertIOBuffered, ExpertMemory: 64 << 10, Prefetch: actors.PrefetchOff, ReadWorkers: 1,
	}, func(s readpool.Source) readpool.Source { return slowSource{s, slow} }))
	began := time.Now()
	if _, err := greedy(sequence(t, e), []int32{1, 2, 3}, 8); err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	s, err := e.Stats(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var layers actors.Times
	misses := int64(0)
	for i, l := range s.Layers {
		layers.Add(l.Times)
		misses += l.Misses
		// What has arrived is computed while the rest is read.
		if l.Misses > 0 && (l.DiskWaitNS+l.OverlapNS < int64(slow)*l.Misses*9/10 || l.DiskWaitNS <= 0 || l.ComputeNS <= 0) {
			t.Errorf("layer %d with %d misses of %v: %+v", i, l.Misses, slow, l.Times)
		}
	}
	if misses == 0 {
		t.Fatal("nothing was read, the test shows nothing")
	}
	if least := int64(slow) * misses; s.ReadNS < least || s.ReadNS > int64(took) {
		t.Errorf("read for %v, want %v to %v", time.Duration(s.ReadNS), time.Duration(least), took)
	}
	if s.ComputeNS <= layers.ComputeNS || s.DiskWaitNS != layers.DiskWaitNS || s.OverlapNS > s.ComputeNS {
		t.Errorf("in all %+v, in layers %+v: want the head in the former alone", s.Times, layers)
	}
	if sum := time.Duration(s.ComputeNS + s.DiskWaitNS); sum > took {
		t.Errorf("computed and waited for %v in %v", sum, took)
	}
}

// TestTimesMapped holds that experts in memory are not waited for.
func TestTimesMapped(t *testing.T) {
	e := open(t, actors.Config{Model: fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0), ExpertIO: actors.ExpertIOMmap})
	eval(t, sequence(t, e), 1, 2, 3)
	s, err := e.Stats(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if s.ComputeNS <= 0 || s.DiskWaitNS != 0 || s.OverlapNS != 0 || s.ReadNS != 0 {
		t.Errorf("got %+v, want time of compute alone", s.Times)
	}
}
