package actors_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/io/readpool"
)

// companyStart is the token that every sequence of a company begins with.
const companyStart = 9

// companions are two sequences whose next rows travel in one step, which is made certain by this:
//
//   - Both have evaluated a token, so they have memory and a call is ready when it arrives.
//   - No expert is in a slot, and none is read unasked.
//   - A third sequence keeps the pipeline busy, at a disk that does not answer before both calls
//     have arrived.
type companions struct {
	engine *actors.Engine
	disk   *gatedDisk
	seqs   [2]*actors.Sequence
	texts  [2][]int32
	want   [2][]float32 // the logits that each gets alone
	steps  int64        // when the engine rested last
	gone   sync.WaitGroup
}

// company opens an engine of a packed model whose experts lie on disk, and two sequences that will
// evaluate these texts. The disk's expert is one that the second picks in the last layer, and
// neither the first nor the one that keeps the pipeline busy.
func company(t *testing.T, dir string, texts [2][]int32, disk *gatedDisk) *companions {
	t.Helper()
	clean := open(t, actors.Config{Model: dir, ExpertIO: actors.ExpertIOMmap})
	var rows [3]*actors.Evaluated
	for i, text := range [][]int32{texts[0], texts[1], {companyStart}} {
		s := sequence(t, clean)
		eval(t, s, companyStart)
		var err error
		if rows[i], err = s.EvalChunk(context.Background(), actors.Chunk{Tokens: text, Routing: true}); err != nil {
			t.Fatal(err)
		}
	}
	c := &companions{disk: disk, texts: texts, want: [2][]float32{rows[0].Logits, rows[1].Logits}}
	disk.layer, disk.index = only(t, rows[1], clean.Info().TopK, rows[0], rows[2])
	c.engine = open(t, actors.WithReads(actors.Config{Model: dir, ExpertIO: actors.ExpertIOBuffered, StepsInFlight: 1, Prefetch: actors.PrefetchOff}, disk.wrap))
	t.Cleanup(c.gone.Wait)
	third := sequence(t, c.engine)
	for _, s := range []**actors.Sequence{&c.seqs[0], &c.seqs[1]} {
		*s = sequence(t, c.engine)
		eval(t, *s, companyStart)
	}
	eval(t, third, companyStart)
	if err := c.engine.ForgetExperts(context.Background()); err != nil {
		t.Fatal(err)
	}
	c.steps = c.evaluated(t)
	disk.shut()
	c.gone.Go(func() { _, _ = third.Eval(context.Background(), []int32{companyStart}) })
	<-disk.reached
	return c
}

// outcome is what a call came to.
type outcome struct {
	logits []float32
	err    error
}

// call has one of the two evaluate its text.
func (c *companions) call(ctx context.Context, i int) <-chan outcome {
	done := make(chan outcome, 1)
	c.gone.Go(func() {
		logits, err := c.seqs[i].Eval(ctx, c.texts[i])
		done <- outcome{logits, err}
	})
	return done
}

// travel opens the disk when the engine has both calls.
func (c *companions) travel(t *testing.T) {
	t.Helper()
	for _, s := range c.seqs {
		untilBusy(t, s)
	}
	c.disk.open()
}

// together checks, after both calls, that they were in one step: there was that one, and the third
// sequence's.
func (c *companions) together(t *testing.T) {
	t.Helper()
	c.gone.Wait()
	if n := c.evaluated(t) - c.steps; n != 2 {
		t.Errorf("%d steps, want 2", n)
	}
}

// evaluated returns how many steps the engine has evaluated.
func (c *companions) evaluated(t *testing.T) int64 {
	t.Helper()
	st, err := c.engine.Stats(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return st.Steps
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

// gatedDisk is a disk that answers nothing between shut and open. After that, expert decides about
// one expert.
type gatedDisk struct {
	readpool.Source
	layer, index int
	expert       func() error
	mu           sync.RWMutex
	gate         chan struct{} // nil before shut
	reached      chan struct{} // a read waits at the gate
	once         sync.Once
}

func newGatedDisk() *gatedDisk { return &gatedDisk{reached: make(chan struct{})} }

func (d *gatedDisk) wrap(src readpool.Source) readpool.Source {
	d.Source = src
	return d
}

func (d *gatedDisk) shut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.gate = make(chan struct{})
}

func (d *gatedDisk) open() { close(d.gate) }

func (d *gatedDisk) ReadExpert(layer, expert int, dst []byte) error {
	d.mu.RLock()
	gate := d.gate
	d.mu.RUnlock()
	if gate == nil {
		return d.Source.ReadExpert(layer, expert, dst)
	}
	d.once.Do(func() { close(d.reached) })
	<-gate
	if layer == d.layer && expert == d.index {
		if err := d.expert(); err != nil {
			return err
		}
	}
	return d.Source.ReadExpert(layer, expert, dst)
}

// only finds an expert that a row picks and others do not, in the last layer, where what is lost
// shows nowhere else.
func only(t *testing.T, row *actors.Evaluated, topK int, others ...*actors.Evaluated) (layer, expert int) {
	t.Helper()
	last := len(row.Picks) - topK
	for _, e := range row.Picks[last:] {
		if !slices.ContainsFunc(others, func(o *actors.Evaluated) bool { return slices.Contains(o.Picks[last:], e) }) {
			return last / topK, int(e)
		}
	}
	t.Fatal("other rows pick the same experts")
	return 0, 0
}
