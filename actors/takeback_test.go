package actors_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/io/readpool"
	"github.com/moeflux/moeflux-actor/stages"
)

// TestTakenBack cancels a call in mid-step, while the disk is silent: the call ends in time, and a
// sequence without recurrent state stands where it stood and goes on with the right bits. Only one
// with recurrent state is poisoned.
func TestTakenBack(t *testing.T) {
	for _, name := range []string{fixtures.Qwen3MoEBF16, fixtures.DeepseekV3BF16, fixtures.Qwen35MoEBF16} {
		dir := fixtures.Packed(t, name, 0)
		want, err := transcript(sequence(t, open(t, actors.Config{Model: dir, ExpertIO: actors.ExpertIOMmap})), readText, 2)
		if err != nil {
			t.Fatal(err)
		}
		var disk silentDisk
		e := open(t, actors.WithReads(actors.Config{Model: dir, ExpertIO: actors.ExpertIOBuffered, ExpertMemory: 4 * int64(stride(t, dir)), Prefetch: actors.PrefetchOff}, disk.wrap))
		s := sequence(t, e)
		first := eval(t, s, readText...)
		disk.silence()
		ctx, cancel := context.WithCancel(context.Background())
		go func() {
			for disk.waiting.Load() == 0 {
				time.Sleep(time.Millisecond)
			}
			cancel()
		}()
		if _, err := s.Eval(ctx, []int32{argmax(first)}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want the cancellation", name, err)
		}
		recurrent := e.Info().StateBytes > 0
		if poisoned := is[*stages.PoisonedError](s.Err()); poisoned != recurrent {
			t.Errorf("%s: poisoned: %v, recurrent state: %v", name, poisoned, recurrent)
		}
		disk.answer()
		if recurrent {
			if err := s.Reset(context.Background()); err != nil {
				t.Fatal(err)
			}
			sameTranscript(t, name, s, want[:1])
			continue
		}
		if s.Len() != len(readText) {
			t.Errorf("%s: %d positions, want %d", name, s.Len(), len(readText))
		}
		got, err := transcript(s, []int32{argmax(first)}, 1)
		if err != nil || !slices.Equal(got[0], want[1]) || !slices.Equal(got[1], want[2]) {
			t.Errorf("%s: what comes after a step that was taken back differs, or %v", name, err)
		}
	}
}

// TestCancelInCompany cancels one of two calls that are in one step and wait for a read which does
// not end: it ends in time, the other one, which is patient, gets its logits when the disk answers,
// and then the first sequence is of use again.
func TestCancelInCompany(t *testing.T) {
	for _, name := range []string{fixtures.Qwen3MoEBF16, fixtures.Qwen35MoEBF16} {
		dir := fixtures.Packed(t, name, 0)
		disk := newGatedDisk()
		c := company(t, dir, [2][]int32{{7}, {100}}, disk)
		release, waiting := make(chan struct{}), make(chan struct{})
		disk.expert = func() error {
			close(waiting) // it is read once
			<-release
			return nil
		}
		ctx, cancel := context.WithCancel(context.Background())
		hasty, patient := c.call(ctx, 0), c.call(context.Background(), 1)
		c.travel(t)
		<-waiting
		cancel()
		r := <-hasty
		if s := c.seqs[0]; !errors.Is(r.err, context.Canceled) || is[*stages.PoisonedError](s.Err()) && c.engine.Info().StateBytes == 0 {
			t.Errorf("%s: the hasty one: %v, then %v", name, r.err, s.Err())
		}
		close(release)
		if r := <-patient; r.err != nil || !slices.Equal(r.logits, c.want[1]) {
			t.Errorf("%s: the patient one: %v, its logits are right: %v", name, r.err, slices.Equal(r.logits, c.want[1]))
		}
		c.together(t)
		if err := c.seqs[0].Reset(context.Background()); err != nil {
			t.Fatal(err)
		}
		eval(t, c.seqs[0], companyStart)
		if !slices.Equal(eval(t, c.seqs[0], c.texts[0]...), c.want[0]) {
			t.Errorf("%s: other logits after Reset", name)
		}
	}
}

// stride returns the bytes of a slot of a model.
func stride(t *testing.T, dir string) int {
	return (open(t, actors.Config{Model: dir}).Info().SlotBytes + 4095) / 4096 * 4096
}

// silentDisk is a disk that can be made to answer nothing.
type silentDisk struct {
	readpool.Source
	mu      sync.RWMutex
	waiting atomic.Int64 // reads
}

func (d *silentDisk) wrap(src readpool.Source) readpool.Source {
	d.Source = src
	return d
}

func (d *silentDisk) silence() { d.mu.Lock() }
func (d *silentDisk) answer()  { d.mu.Unlock() }

func (d *silentDisk) ReadExpert(layer, expert int, dst []byte) error {
	d.waiting.Add(1)
	d.mu.RLock()
	defer d.mu.RUnlock()
	d.waiting.Add(-1)
	return d.Source.ReadExpert(layer, expert, dst)
}

// TestSpared lets reads of an expert fail that one of two sequences wants and the other does not:
// the one is poisoned, the other gets the bits that it gets alone, in one step with it.
func TestSpared(t *testing.T) {
	dir := fixtures.Packed(t, fixtures.Qwen35MoEBF16, 0)
	disk := newGatedDisk()
	c := company(t, dir, [2][]int32{{200}, {3}}, disk)
	disk.expert = func() error { return errBroken }
	other, victim := c.call(context.Background(), 0), c.call(context.Background(), 1)
	c.travel(t)
	if r, s := <-victim, c.seqs[1]; !is[*stages.StepError](r.err) || !errors.Is(r.err, errBroken) || !is[*stages.PoisonedError](s.Err()) {
		t.Errorf("the one: %v, then %v; want a StepError and poison", r.err, s.Err())
	}
	if r, s := <-other, c.seqs[0]; r.err != nil || s.Err() != nil || !slices.Equal(r.logits, c.want[0]) {
		t.Errorf("the other: %v, then %v; want its logits", r.err, s.Err())
	}
	c.together(t)
}
