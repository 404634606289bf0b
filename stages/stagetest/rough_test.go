package stagetest_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/internal/testenv"
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/dispatch"
	"github.com/moeflux/moeflux-actor/stages/stagetest"
)

var (
	errGone   = errors.New("the caller has gone")
	errDisk   = errors.New("the disk is broken")
	errDevice = errors.New("the device is broken")
	errUpload = errors.New("the bus is broken")
	errHung   = errors.New("the disk hangs")
	errPin    = errors.New("no pages to pin")
	errDrain  = errors.New("the engine is drained")
)

// rough is one simulated life of an engine in which everything that may go wrong does so at random
// moments.
type rough struct {
	*simulation
	r    *rand.Rand
	want [][][]float32
	// recurrent is whether the model's sequences have state that cannot be taken back.
	recurrent bool

	talkers           []*talker
	faults            map[error]int // how many of each are left to happen
	gap               int           // events between two interruptions, on average
	hang              hang
	lastRequest       uint64
	draining, drained bool
	seen              int // answers taken
	counts            map[string]int
	problem           error
}

// talker is a caller that holds its conversation until it has got through once, whatever is done to
// it.
type talker struct {
	id      stages.SeqID
	n       int // conversation
	script  script
	chunk   []int32 // what is being evaluated
	request uint64  // 0: none is under way
	answers int     // of the present attempt
	left    bool    // a step with its rows may go on
	opened  bool
	closing bool
	done    bool
}

func newRough(t *testing.T, p *pack, seed uint64, all []script, want [][][]float32, change func(*rand.Rand, *tuning)) (*rough, tuning) {
	x := &rough{r: rand.New(rand.NewPCG(seed, 4)), want: want, recurrent: dispatch.RecurrentBytes(p.cfg, gpu.KVF32, 4) > 0, counts: make(map[string]int), faults: make(map[error]int)}
	for _, e := range []error{errGone, stages.ErrClosed, errDisk, errDevice, errUpload} {
		x.faults[e] = x.r.IntN(4)
	}
	x.faults[errPin] = x.r.IntN(20)
	if x.r.IntN(3) == 0 {
		x.hang.from = 1 + x.r.IntN(2000)
	}
	x.gap = 10 << x.r.IntN(4)
	tu := randomTuning(x.r, p.cfg.NumExperts, len(p.cfg.Layers))
	tu.resident = x.r.IntN(4) == 0
	if change != nil {
		change(x.r, &tu)
	}
	fail := func(e error) error {
		if x.simulation != nil && x.faults[e] > 0 && x.r.IntN(x.gap) == 0 {
			x.faults[e]--
			x.counts[e.Error()]++
			return e
		}
		return nil
	}
	device := func(*gpu.Commands) error { return fail(errDevice) }
	disk := func(stages.Read) error { return fail(errDisk) }
	late := func(r stages.Read) error {
		if x.hang.on {
			x.counts[errHung.Error()]++
			return errHung
		}
		return disk(r)
	}
	f := faults{read: disk, late: late, run: device, upload: func() error { return fail(errUpload) }, pin: func() error { return fail(errPin) }}
	if x.r.IntN(2) == 0 {
		f.run, f.submit = f.submit, f.run
	}
	x.simulation = p.simulate(t, tu, x.r, f)
	for i, sc := range all {
		x.talkers = append(x.talkers, &talker{id: stages.SeqID(i + 1), n: i, script: sc})
	}
	return x, tu
}

// live lets everything happen until all conversations are through or refused, and looks at what is
// left.
func (x *rough) live() error {
	for _, t := range x.talkers {
		x.open(t)
	}
	if x.r.IntN(3) == 0 {
		x.faults[errDrain] = 1
	}
	if err := x.Run(x.between); err != nil || x.problem != nil {
		return errors.Join(err, x.problem)
	}
	for _, t := range x.talkers {
		if !t.done {
			return fmt.Errorf("conversation %d was forgotten after %d answers: %+v", t.n, t.answers, t)
		}
	}
	if x.draining != x.drained {
		return fmt.Errorf("draining %v, but drained %v", x.draining, x.drained)
	}
	return x.atEnd()
}

// atEnd wants everything back.
func (x *rough) atEnd() error {
	if err := x.atRest(); err != nil {
		return err
	}
	x.Post(&stages.CollectStats{Stats: new(stages.Stats), Caller: "stats"})
	if err := x.Run(nil); err != nil {
		return err
	}
	s := x.Answers[len(x.Answers)-1].Msg.(*stages.CollectStats).Stats
	if s.PagesUsed != 0 || x.dispatch.States() != 0 {
		return fmt.Errorf("all sequences are closed, but the sequencer counts %d pages, and dispatch has %d states", s.PagesUsed, x.dispatch.States())
	}
	return nil
}

// between takes the answers that have come and interrupts something now and then. It reports true
// to stop.
func (x *rough) between() bool {
	x.meddle()
	for ; x.seen < len(x.Answers); x.seen++ {
		if err := x.answer(x.Answers[x.seen]); err != nil {
			x.problem = err
			return true
		}
	}
	x.hanging()
	if x.r.IntN(x.gap) > 0 {
		return x.problem != nil
	}
	t := x.talkers[x.r.IntN(len(x.talkers))]
	switch x.r.IntN(6) {
	case 0, 1, 2:
		if x.faults[errGone] > 0 && t.request != 0 {
			x.faults[errGone]--
			x.counts["cancellations"]++
			x.Post(&stages.CancelEval{Seq: t.id, Request: t.request, Cause: errGone})
		}
	case 3, 4:
		if x.faults[stages.ErrClosed] > 0 && t.opened && !t.closing {
			x.faults[stages.ErrClosed]--
			x.close(t)
		}
	default:
		if x.faults[errDrain] > 0 {
			x.faults[errDrain]--
			x.counts["drains"]++
			x.draining = true
			x.Post(&stages.Drain{Caller: "drain"})
		}
	}
	return false
}

func (x *rough) open(t *talker) {
	t.answers, t.opened, t.closing, t.left = 0, false, false, false
	x.Post(&stages.OpenSequence{Seq: t.id, Caller: t})
}

func (x *rough) close(t *talker) {
	t.closing = true
	x.Post(&stages.CloseSequence{Seq: t.id, Caller: t})
}

func (x *rough) ask(t *talker, tokens []int32) {
	x.lastRequest++
	t.chunk, t.request = tokens, x.lastRequest
	x.Post(&stages.EvalChunk{Seq: t.id, Tokens: slices.Clone(tokens), Logits: t.script.want, Request: t.request, Caller: t})
}

func (x *rough) answer(a stages.Answer) error {
	switch m := a.Msg.(type) {
	case *stages.SlotsResized, *stages.ExpertsForgotten:
		x.resized++
	case *stages.Drained:
		if x.drained {
			return errors.New("drained twice")
		}
		x.drained = true
	case *stages.SequenceDone:
		return x.sequenceDone(a.To.(*talker), m)
	case *stages.ChunkEvaluated:
		t := a.To.(*talker)
		if t.request == 0 {
			return fmt.Errorf("conversation %d is answered twice", t.n)
		}
		t.request = 0
		return x.evaluated(t, m)
	}
	return nil
}

func (x *rough) sequenceDone(t *talker, m *stages.SequenceDone) error {
	switch {
	case m.Kind == stages.WasReset && t.left && errors.Is(m.Err, stages.ErrBusy):
		if !t.closing {
			x.Post(&stages.ResetSequence{Seq: t.id, Caller: t})
		}
	case m.Err != nil && m.Kind == stages.Opened && x.draining && errors.Is(m.Err, stages.ErrClosed):
		t.done = true
	case m.Err != nil:
		return fmt.Errorf("conversation %d: operation %d: %w", t.n, m.Kind, m.Err)
	case m.Kind == stages.Closed && t.answers == len(x.want[t.n]):
		t.done = true
	case m.Kind == stages.Closed:
		x.counts["closed and opened again"]++
		x.open(t)
	default:
		t.opened = true
		if !t.closing {
			x.ask(t, t.script.prompt)
		}
	}
	return nil
}

// evaluated checks an answer and does what comes next.
func (x *rough) evaluated(t *talker, m *stages.ChunkEvaluated) error {
	if err := x.allowed(t, m); err != nil {
		return err
	}
	t.left = t.left && m.Err != nil || m.Unfinished
	if m.Err == nil {
		if !slices.Equal(told(m), x.want[t.n][t.answers]) {
			return fmt.Errorf("conversation %d: logits %d differ from those of the conversation alone", t.n, t.answers)
		}
		t.answers++
	}
	switch {
	case t.closing: // the answer to that is on its way
		t.answers = 0
	case m.Err == nil && t.answers == len(x.want[t.n]):
		x.counts["conversations"]++
		x.close(t)
	case m.Err == nil:
		x.ask(t, []int32{t.script.next(m)})
	case errors.Is(m.Err, stages.ErrClosed):
		t.answers = len(x.want[t.n]) // of a drained engine nothing more is to be had
		x.close(t)
	case m.Poison != nil:
		x.counts["reset"]++
		t.answers = 0
		x.Post(&stages.ResetSequence{Seq: t.id, Caller: t})
	default:
		x.counts["went on"]++
		x.ask(t, t.chunk[m.Rows:])
	}
	return nil
}

// allowed reports an answer that nothing that was done to the conversation explains.
func (x *rough) allowed(t *talker, m *stages.ChunkEvaluated) error {
	var step *stages.StepError
	bad := func(what string) error {
		return fmt.Errorf("conversation %d: %s: %d rows of %d, error %v, poison %v", t.n, what, m.Rows, len(t.chunk), m.Err, m.Poison)
	}
	switch {
	case m.Err == nil:
		if m.Rows != len(t.chunk) || m.Poison != nil {
			return bad("not all is evaluated")
		}
		return nil
	case m.Rows >= len(t.chunk):
		return bad("all is evaluated, and still there is an error")
	case errors.Is(m.Err, stages.ErrBusy):
		if !t.left {
			return bad("nothing keeps it busy")
		}
	case errors.Is(m.Err, errGone):
		if m.Poison != nil && !x.recurrent {
			return bad("a cancelled step was not taken back")
		}
	case errors.Is(m.Err, stages.ErrClosed):
		if !t.closing && !x.draining {
			return bad("nobody closed it")
		}
	case errors.Is(m.Err, errDevice) && m.Rows == 0 && m.Pos == 0 && m.Poison == nil && !errors.As(m.Err, &step):
		x.counts["first states that failed"]++
	case errors.Is(m.Err, errDisk) || errors.Is(m.Err, errDevice) || errors.Is(m.Err, errUpload) || errors.Is(m.Err, errHung):
		if !errors.As(m.Err, &step) || m.Poison == nil {
			return bad("a failed step leaves no poison")
		}
	default:
		return bad("unexpected")
	}
	return nil
}

// TestRough holds three conversations while callers go away, sequences are closed, reset and opened
// again, reads and device commands fail, and the engine is drained, all at random moments. What is
// answered without an error has the bits of the conversation alone, and in the end everything is
// back where it belongs.
func TestRough(t *testing.T) {
	for _, name := range []string{"qwen3_5_moe/bf16", "qwen3_moe/bf16"} {
		t.Run(name, func(t *testing.T) {
			counts, _ := runRough(t, openPack(t, name), nil)
			if counts["spared"] == 0 {
				t.Error("no step went on for some of its sequences: the test shows nothing of that")
			}
		})
	}
}

// runRough plays many lives, with settings that change changes, and returns what has happened.
func runRough(t *testing.T, p *pack, change func(*rand.Rand, *tuning)) (map[string]int, stagetest.TierFigures) {
	all := scripts(p.cfg.VocabSize)
	want := p.alone(t, all)
	n := testenv.Rounds(100, *orders/4, 15**orders/2)
	counts := make(map[string]int)
	var sum stagetest.TierFigures
	for i := range n {
		sd := uint64(i) + 1
		if *seed != 0 {
			sd = *seed
		}
		x, tu := newRough(t, p, sd, all, want, change)
		err := x.live()
		x.simulation.close()
		if err != nil {
			t.Fatalf("seed %d, %+v, after %d events: %v", sd, tu, x.Events, err)
		}
		for k, v := range x.counts {
			counts[k] += v
		}
		counts["spared"] += x.Spared()
		sum.Add(x.TierFigures())
		if *seed != 0 {
			break
		}
	}
	t.Logf("%d orders: %v; the host's memory: %+v", n, counts, sum)
	return counts, sum
}
