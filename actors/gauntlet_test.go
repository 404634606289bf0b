package actors_test

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/io/expertfile"
	"github.com/moeflux/moeflux-actor/io/readpool"
	"github.com/moeflux/moeflux-actor/stages"
)

// gauntlet holds two conversations at once under one fault after the other, and counts what became
// of them.
type gauntlet struct {
	t    *testing.T
	dir  string
	dev  gpu.Device
	slot int64 // bytes
	want [2][][]float32

	resident bool // the device chooses the experts

	tried, noticed map[string]int // by kind; noticed by a caller
	spared         int            // conversations that went on beside one that was hit
	slowest        time.Duration
}

// gauntletTexts are what is said.
var gauntletTexts = [2][]int32{{3, 1, 4, 1, 5}, {2, 7, 1, 8}}

// gauntletTokens are decoded after each.
const gauntletTokens = 2

// fault is one thing that goes wrong in an engine's life.
type fault struct {
	kind  string
	put   func(*actors.Config) // into the engine
	hit   func() bool          // whether it happened
	clear func()               // lets go what waits; nil: nothing does
	quiet bool                 // no caller may notice
	loose bool                 // a machine that is slow enough may have the same fault by itself
}

func newGauntlet(t *testing.T, dir string) *gauntlet {
	g := &gauntlet{t: t, dir: dir, dev: device(t, 2), tried: map[string]int{}, noticed: map[string]int{}}
	g.slot = int64(open(t, actors.Config{Model: dir, Device: g.dev}).Info().SlotBytes)
	for i := range g.want {
		e := open(t, g.config())
		var err error
		if g.want[i], err = g.converse(sequence(t, e), i); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

// config makes prompts take two steps, so that conversations meet in one, and has slots for a part
// of the experts, or lets the device choose among all.
func (g *gauntlet) config() actors.Config {
	if g.resident {
		return actors.Config{Model: g.dir, Device: g.dev, ExpertIO: actors.ExpertIOMmap, Resident: actors.ResidentOn, ChunkRows: 6, RecordMemory: fewRecords}
	}
	return actors.Config{
		Model: g.dir, Device: g.dev, ExpertIO: actors.ExpertIOBuffered, ExpertMemory: 8 * (g.slot + 4096), ReadWorkers: 2, ChunkRows: 6, WaveSlots: 4,
		RecordMemory: fewRecords,
	}
}

func (g *gauntlet) converse(s *actors.Sequence, i int) ([][]float32, error) {
	// machines are stopped for minutes now and then
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	var all [][]float32
	next := gauntletTexts[i]
	for range gauntletTokens + 1 {
		logits, err := s.Eval(ctx, next)
		if err != nil {
			return all, err
		}
		all = append(all, logits)
		next = []int32{argmax(logits)}
	}
	return all, nil
}

// try lives an engine's life with a fault and reports whether it happened.
func (g *gauntlet) try(f fault) bool {
	g.t.Helper()
	before, began := mappings(g.t), time.Now()
	cfg := g.config()
	f.put(&cfg)
	e, err := actors.Open(context.Background(), cfg)
	if err != nil {
		if !f.hit() || !typed(err) {
			g.t.Fatalf("%s: opening fails, fault: %v: %v", f.kind, f.hit(), err)
		}
		g.noticed[f.kind]++
	} else {
		g.live(e, f)
	}
	if !f.hit() {
		return false
	}
	g.tried[f.kind]++
	if after := mappings(g.t); after != before {
		g.t.Fatalf("%s: %s left, %s before", f.kind, after, before)
	}
	g.slowest = max(g.slowest, time.Since(began))
	return true
}

// live opens two conversations, holds them, heals what was hit, holds them again and closes
// everything.
func (g *gauntlet) live(e *actors.Engine, f fault) {
	g.t.Helper()
	var seqs [2]*actors.Sequence
	for i := range seqs {
		var err error
		for range 2 { // what failed once may be asked again
			if seqs[i], err = e.NewSequence(context.Background()); err == nil || !typed(err) {
				break
			}
		}
		if isBroken(err) {
			g.buried(e, nil, f)
			return
		}
		if err != nil {
			g.t.Fatalf("%s: a sequence: %v", f.kind, err)
		}
	}
	for round := range 3 { // the fault may come in the second
		failed := g.round(seqs, f)
		if isBroken(failed) {
			g.buried(e, seqs[:], f)
			return
		}
		if failed == nil && round > 0 {
			break
		}
		if failed != nil && round == 2 && !f.loose {
			g.t.Fatalf("%s: fails again: %v", f.kind, failed)
		}
		for i, s := range seqs {
			err := s.Reset(context.Background())
			if isBroken(err) && f.hit() {
				g.noticed[f.kind]++
				g.buried(e, seqs[:], f)
				return
			}
			if err != nil && typed(err) && f.hit() { // it came now
				g.noticed[f.kind]++
				refuses(g.t, f.kind, s)
				err = s.Reset(context.Background())
			}
			if err != nil || s.Err() != nil || s.Len() != 0 {
				g.t.Fatalf("%s: reset of %d: %v, then %v and %d positions", f.kind, i, err, s.Err(), s.Len())
			}
		}
	}
	g.closed(e, seqs[:], f)
}

// round holds the conversations once, looks at what those that were hit say, and ends a fault that
// lasts.
func (g *gauntlet) round(seqs [2]*actors.Sequence, f fault) error {
	g.t.Helper()
	errs := g.both(seqs, f)
	failed := errors.Join(errs[:]...)
	if failed != nil {
		g.noticed[f.kind]++
		for _, err := range errs {
			if err != nil && (!f.hit() && !f.loose || !typed(err) || f.quiet) {
				g.t.Fatalf("%s: fault: %v, error: %v", f.kind, f.hit(), err)
			}
		}
		if errs[0] == nil || errs[1] == nil {
			g.spared++
		}
	}
	for i, s := range seqs {
		if errs[i] != nil && s.Err() != nil && !isBroken(failed) {
			refuses(g.t, f.kind, s)
		}
	}
	if f.clear != nil {
		f.clear()
	}
	return failed
}

// both holds the conversations at once. What is answered must have the right bits.
func (g *gauntlet) both(seqs [2]*actors.Sequence, f fault) (errs [2]error) {
	g.t.Helper()
	var wg sync.WaitGroup
	var got [2][][]float32
	for i, s := range seqs {
		wg.Go(func() { got[i], errs[i] = g.converse(s, i) })
	}
	wg.Wait()
	for i := range got {
		for k := range got[i] {
			if !slices.Equal(got[i][k], g.want[i][k]) {
				g.t.Fatalf("%s: conversation %d: logits %d differ", f.kind, i, k)
			}
		}
	}
	return errs
}

// closed wants everything back.
func (g *gauntlet) closed(e *actors.Engine, seqs []*actors.Sequence, f fault) {
	g.t.Helper()
	var errs []error
	for _, s := range seqs {
		errs = append(errs, s.Close())
	}
	st, err := e.Stats(context.Background())
	errs = append(errs, err)
	if err == nil && st.PagesUsed != 0 {
		g.t.Errorf("%s: all is closed, %d pages are used", f.kind, st.PagesUsed)
	}
	errs = append(errs, e.Close(context.Background()))
	switch err := errors.Join(errs...); {
	case isBroken(err) && f.hit(): // it came now
		g.noticed[f.kind]++
	case err != nil:
		g.t.Errorf("%s: closing: %v", f.kind, err)
	}
}

// buried wants an engine that has stopped to say so to everybody, and to close all the same.
func (g *gauntlet) buried(e *actors.Engine, seqs []*actors.Sequence, f fault) {
	g.t.Helper()
	for _, s := range seqs {
		if _, err := s.Eval(context.Background(), []int32{1}); !isBroken(err) {
			g.t.Errorf("%s: evaluating in a broken engine: %v", f.kind, err)
		}
	}
	if _, err := e.NewSequence(context.Background()); !isBroken(err) {
		g.t.Errorf("%s: a sequence of a broken engine: %v", f.kind, err)
	}
	if err := e.Close(context.Background()); !isBroken(err) {
		g.t.Errorf("%s: closing a broken engine: %v", f.kind, err)
	}
}

// refuses wants a poisoned sequence to answer everything but Reset and Close with its error.
func refuses(t *testing.T, what string, s *actors.Sequence) {
	t.Helper()
	ctx := context.Background()
	var all []error
	_, err := s.Eval(ctx, []int32{1})
	all = append(all, err)
	_, err = s.EvalChunk(ctx, actors.Chunk{Tokens: []int32{1}})
	all = append(all, err, s.Use(ctx, []int32{1}, func([]float32) error { return nil }))
	_, err = greedy(s, []int32{1}, 1)
	all = append(all, err)
	for i, err := range all {
		if !is[*stages.PoisonedError](err) || !typed(err) {
			t.Errorf("%s: call %d of a poisoned sequence: %v, want a PoisonedError with its cause", what, i, err)
		}
	}
}

func isBroken(err error) bool { return is[*actors.BrokenError](err) }

// typed reports whether an error has a type that says where, and the cause that was injected.
func typed(err error) bool {
	where := is[*stages.StepError](err) || is[*stages.StateMemoryError](err) || isBroken(err) || errors.Is(err, gpu.ErrOutOfMemory)
	cause := errors.Is(err, errBroken) || errors.Is(err, readpool.ErrInjected) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.Is(err, gpu.ErrOutOfMemory) || is[*expertfile.SumError](err) || is[*stages.StateMemoryError](err)
	// what the device refuses to an engine that opens comes as it is
	return cause && (where || errors.Is(err, errBroken))
}
