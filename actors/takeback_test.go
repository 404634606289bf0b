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
		clean := open(t, actors.Config{Model: dir, ExpertIO: actors.ExpertIOMmap})
		var rows [3]*actors.Evaluated // of the one that comes first, the hasty one, the patient one
		texts := [3][]int32{{9}, {3}, {200}}
		for i, text := range texts {
			var err error
			if rows[i], err = sequence(t, clean).EvalChunk(context.Background(), actors.Chunk{Tokens: text, Routing: true}); err != nil {
				t.Fatal(err)
			}
		}
		layer, expert := only(t, [2]*actors.Evaluated{rows[2], rows[0]}, clean.Info().TopK)
		disk := &stalledExpert{layer: layer, expert: expert, gate: make(chan struct{}), release: make(chan struct{}), waiting: make(chan struct{})}
		e := open(t, actors.WithReads(actors.Config{Model: dir, ExpertIO: actors.ExpertIOBuffered, StepsInFlight: 1, Prefetch: actors.PrefetchOff}, disk.wrap))
		first, hasty, patient := sequence(t, e), sequence(t, e), sequence(t, e)
		ctx, cancel := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		var errs [2]error
		var got []float32
		wg.Go(func() { _, _ = first.Eval(context.Background(), texts[0]) })
		<-running(e)
		left := make(chan struct{})
		go func() {
			_, errs[0] = hasty.Eval(ctx, texts[1])
			close(left)
		}()
		wg.Go(func() { got, errs[1] = patient.Eval(context.Background(), texts[2]) })
		untilBusy(t, hasty)
		untilBusy(t, patient)
		close(disk.gate)
		<-disk.waiting
		cancel()
		<-left
		if !errors.Is(errs[0], context.Canceled) || is[*stages.PoisonedError](hasty.Err()) && e.Info().StateBytes == 0 {
			t.Errorf("%s: the hasty one: %v, then %v", name, errs[0], hasty.Err())
		}
		close(disk.release)
		wg.Wait()
		if errs[1] != nil || !slices.Equal(got, rows[2].Logits) {
			t.Errorf("%s: the patient one: %v, its logits are right: %v", name, errs[1], slices.Equal(got, rows[2].Logits))
		}
		if err := hasty.Reset(context.Background()); err != nil || !slices.Equal(eval(t, hasty, texts[1]...), rows[1].Logits) {
			t.Errorf("%s: after Reset: %v, or other logits", name, err)
		}
	}
}

// stalledExpert is a disk that answers nothing before gate is closed, and for one expert not before
// release is.
type stalledExpert struct {
	readpool.Source
	layer, expert          int
	gate, release, waiting chan struct{}
}

func (d *stalledExpert) wrap(src readpool.Source) readpool.Source {
	d.Source = src
	return d
}

func (d *stalledExpert) ReadExpert(layer, expert int, dst []byte) error {
	<-d.gate
	if layer == d.layer && expert == d.expert {
		close(d.waiting) // it is read once
		<-d.release
	}
	return d.Source.ReadExpert(layer, expert, dst)
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
	clean := open(t, actors.Config{Model: dir, ExpertIO: actors.ExpertIOMmap})
	texts := [2][]int32{{3}, {200}}
	var want [2]*actors.Evaluated
	for i, text := range texts {
		var err error
		if want[i], err = sequence(t, clean).EvalChunk(context.Background(), actors.Chunk{Tokens: text, Routing: true}); err != nil {
			t.Fatal(err)
		}
	}
	layer, expert := only(t, want, clean.Info().TopK)
	broken := &brokenExpert{layer: layer, expert: expert, both: make(chan struct{})}
	e := open(t, actors.WithReads(actors.Config{Model: dir, ExpertIO: actors.ExpertIOBuffered, StepsInFlight: 1, Prefetch: actors.PrefetchOff}, broken.wrap))
	warm, victim, other := sequence(t, e), sequence(t, e), sequence(t, e)
	var wg sync.WaitGroup
	var errs [2]error
	var got []float32
	// keeps the pipeline busy until both others wait
	wg.Go(func() { _, _ = warm.Eval(context.Background(), []int32{9}) })
	<-running(e)
	wg.Go(func() { _, errs[0] = victim.Eval(context.Background(), texts[0]) })
	wg.Go(func() { got, errs[1] = other.Eval(context.Background(), texts[1]) })
	untilBusy(t, victim)
	untilBusy(t, other)
	close(broken.both)
	wg.Wait()
	if !is[*stages.StepError](errs[0]) || !errors.Is(errs[0], errBroken) || !is[*stages.PoisonedError](victim.Err()) {
		t.Errorf("the one: %v, then %v; want a StepError and poison", errs[0], victim.Err())
	}
	if errs[1] != nil || other.Err() != nil || !slices.Equal(got, want[1].Logits) {
		t.Errorf("the other: %v, then %v; want its logits", errs[1], other.Err())
	}
}

// only finds an expert that the first of two rows picks and the second does not, in the last layer,
// where what is lost shows nowhere else.
func only(t *testing.T, rows [2]*actors.Evaluated, topK int) (layer, expert int) {
	t.Helper()
	last := len(rows[0].Picks) - topK
	for _, e := range rows[0].Picks[last:] {
		if !slices.Contains(rows[1].Picks[last:], e) {
			return last / topK, int(e)
		}
	}
	t.Fatal("both rows pick the same experts")
	return 0, 0
}

// brokenExpert is a disk of which one expert cannot be read. Until both is closed it reads nothing.
type brokenExpert struct {
	readpool.Source
	layer, expert int
	both          chan struct{}
}

func (b *brokenExpert) wrap(src readpool.Source) readpool.Source {
	b.Source = src
	return b
}

func (b *brokenExpert) ReadExpert(layer, expert int, dst []byte) error {
	<-b.both
	if layer == b.layer && expert == b.expert {
		return errBroken
	}
	return b.Source.ReadExpert(layer, expert, dst)
}

// untilBusy waits until the engine has what a sequence is to evaluate.
func untilBusy(t *testing.T, s *actors.Sequence) {
	t.Helper()
	for {
		d, err := s.Describe(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if d.Busy {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// running returns what is closed when the engine reads.
func running(e *actors.Engine) <-chan struct{} {
	c := make(chan struct{})
	go func() {
		defer close(c)
		for {
			if st, err := e.Stats(context.Background()); err != nil || st.Reads.RunningHigh > 0 {
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	return c
}
