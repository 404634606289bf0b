package actors_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/gpu/host"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/testenv"
	"github.com/moeflux/moeflux-actor/stages"
)

// How long a call may take: until its deadline, and a tenth of a second more.
const (
	callPatience = 200 * time.Millisecond
	callGrace    = 100 * time.Millisecond
)

// hungEngine is an engine that something hangs in.
type hungEngine struct {
	e   *actors.Engine
	dev *host.Device
	ctx context.Context // of a traced caller

	g                *gate // that hangs
	writing, reading *gate // of writers and readers of states

	s    *actors.Sequence   // nothing is done to it; it has a checkpoint at 3
	busy *actors.Sequence   // the one in which something hangs
	more []*actors.Sequence // that calls have made
	file []byte             // a state
	want []float32          // logits of checkText
}

var checkText = []int32{3, 1, 4, 1, 5}

// limits are other times than callPatience and callGrace.
var limits = map[string]time.Duration{"Sequence.Close": time.Second + callGrace}

// TestEveryCall calls every method while something hangs, of a sequence that rests and of the one
// in which it hangs. The clock is synctest's: what takes too long does so on any machine. Each call
// returns in time. When the hang is over, the sequences have the right bits or say why not, all
// memory is given back, and no goroutine is left.
func TestEveryCall(t *testing.T) {
	dir := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	for i, hung := range hangs {
		n := i // so that a sample has other calls of each hang
		for _, name := range slices.Sorted(maps.Keys(calls)) {
			for _, busy := range []bool{false, true} {
				if busy && name[:7] == "Engine." {
					continue
				}
				if n++; n%testenv.Rounds(25, 9, 1) != 0 {
					continue
				}
				t.Run(hung.name+"/"+name+map[bool]string{true: " of the hung sequence"}[busy], func(t *testing.T) { everyCall(t, dir, &hung, name, busy) })
			}
		}
	}
}

func everyCall(t *testing.T, dir string, hung *hang, name string, busy bool) {
	before := mappings(t)
	synctest.Test(t, func(t *testing.T) {
		h := newHungEngine(t, dir, hung)
		occupied := h.occupy(t, hung)
		s := h.s
		if busy {
			s = h.busy
		}
		err := h.call(t, name, s)
		if name == "Engine.Close" {
			h.checkClosed(t, hung, err, occupied)
		}
		h.g.open()
		h.checkHealed(t, hung.closes || name == "Engine.Close", occupied)
	})
	if after := mappings(t); after != before {
		t.Errorf("%s in the end, %s before", after, before)
	}
}

func newHungEngine(t *testing.T, dir string, hung *hang) *hungEngine {
	t.Helper()
	h := &hungEngine{g: new(gate), writing: new(gate), reading: new(gate), dev: device(t, 1), ctx: trace.ContextWithSpanContext(context.Background(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}, TraceFlags: trace.FlagsSampled,
	}))}
	cfg := actors.Config{Model: dir, Device: h.dev, ExpertIO: actors.ExpertIOMmap, Prefetch: actors.PrefetchOff, RecordMemory: fewRecords}
	hung.open(t, h, &cfg)
	var err error
	if h.e, err = actors.Open(context.Background(), cfg); err != nil {
		t.Fatal(err)
	}
	switch hung.name {
	case "disk":
		actors.BeforeFingerprint(h.e, h.g.pass)
	case "profile":
		actors.BeforeProfile(h.e, h.g.pass)
	}
	h.s, h.busy = h.newSequence(t), h.newSequence(t)
	h.want = eval(t, h.s, checkText...)
	h.file = save(t, h.s, actors.SaveOptions{Plain: true})
	if err := h.s.Reset(context.Background()); err != nil {
		t.Fatal(err)
	}
	eval(t, h.s, 1, 2, 3)
	if err := h.s.Checkpoint(context.Background(), 3); err != nil {
		t.Fatal(err)
	}
	eval(t, h.s, 4)
	return h
}

func (h *hungEngine) newSequence(t *testing.T) *actors.Sequence {
	t.Helper()
	s, err := h.e.NewSequence(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// made keeps a sequence that a call has made.
func (h *hungEngine) made(s *actors.Sequence, err error) error {
	if err == nil {
		h.more = append(h.more, s)
	}
	return err
}

func (h *hungEngine) writer() *stuckWriter { return &stuckWriter{g: h.writing} }
func (h *hungEngine) reader() *stuckReader { return &stuckReader{bytes.NewReader(h.file), h.reading} }

// occupy makes something hang. The result gets the outcome of the call in which it does.
func (h *hungEngine) occupy(t *testing.T, hung *hang) chan error {
	t.Helper()
	if err := h.e.ForgetExperts(h.ctx); err != nil && !errors.Is(err, stages.ErrExpertsMapped) {
		t.Fatal(err)
	}
	time.Sleep(callPatience)
	h.g.shut()
	occupied := make(chan error, 1)
	go func() { occupied <- hung.occupy(h) }()
	time.Sleep(callPatience) // the sequencer lingers before it forms a step
	if h.g.waited() == 0 {
		t.Error("nothing hangs")
	}
	return occupied
}

// call makes a call, and checks that it ends in time.
func (h *hungEngine) call(t *testing.T, name string, s *actors.Sequence) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(h.ctx, callPatience)
	defer cancel()
	began, ended := time.Now(), make(chan error, 1)
	go func() { ended <- calls[name](ctx, h, s) }()
	var err error
	select {
	case err = <-ended:
	case <-time.After(time.Hour):
		t.Error("it waits without end")
		h.g.open()
		err = <-ended
	}
	took := time.Since(began)
	if most := cmp.Or(limits[name], callPatience+callGrace); took > most {
		t.Errorf("it takes %v, want at most %v", took, most)
	}
	if took >= callPatience && limits[name] == 0 && err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("its ctx has ended, but the error is %v", err)
	}
	return err
}

// checkClosed checks what Close says, and that calls of a closed engine which is not freed do not
// wait.
func (h *hungEngine) checkClosed(t *testing.T, hung *hang, err error, occupied chan error) {
	t.Helper()
	left, ok := errors.AsType[*actors.LeftBehindError](err)
	if hung.left == nil && err != nil || hung.left != nil && (!ok || !hung.left(left)) {
		t.Errorf("Close: %v", err)
	}
	if hung.name != "exporter" && !hung.closes {
		select {
		case err := <-occupied:
			occupied <- err
			if !errors.Is(err, stages.ErrClosed) {
				t.Errorf("the call under way ends with %v, want ErrClosed", err)
			}
		case <-time.After(callGrace):
			t.Error("the call under way does not end")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		if name == "Engine.Close" {
			continue
		}
		began := time.Now()
		err := h.call(t, name, h.s)
		if took := time.Since(began); took > callGrace || err != nil && !errors.Is(err, stages.ErrClosed) {
			t.Errorf("%s of a closed engine: %v after %v", name, err, took)
		}
	}
}

// checkHealed checks what is there when the hang is over.
func (h *hungEngine) checkHealed(t *testing.T, closed bool, occupied chan error) {
	t.Helper()
	select {
	case <-occupied:
	case <-time.After(time.Hour):
		t.Fatal("the call under way does not end")
	}
	ctx := context.Background()
	time.Sleep(time.Second) // a closed sequence is given up without anybody who waits for that
	if !closed {
		h.checkSequence(t, h.s)
		h.checkSequence(t, h.busy)
		for _, s := range h.more {
			h.checkSequence(t, s)
		}
		if err := h.e.ForgetTexts(ctx); err != nil {
			t.Error(err)
		}
		if st, err := h.e.Stats(ctx); err != nil || st.PagesUsed != 0 || st.States.Kept != 0 {
			t.Errorf("%d pages are used by nobody, %+v is kept, %v", st.PagesUsed, st.States, err)
		}
	}
	patience, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	if err := h.e.Close(patience); err != nil {
		t.Errorf("in the end: %v", err)
	}
}

// checkSequence checks that a sequence is well, or says why not and can be healed.
func (h *hungEngine) checkSequence(t *testing.T, s *actors.Sequence) {
	t.Helper()
	ctx := context.Background()
	for late := time.Now().Add(time.Hour); ; time.Sleep(time.Millisecond) {
		d, err := s.Describe(ctx)
		if errors.Is(err, stages.ErrClosed) {
			return // by the call
		}
		if err != nil || time.Now().After(late) {
			t.Fatalf("%+v, %v", d, err)
		}
		if d.Busy {
			continue
		}
		if why := s.Err(); why != nil && !errors.As(why, new(*stages.PoisonedError)) {
			t.Error(why)
		}
		if d.PosMax != s.Len() {
			t.Errorf("it stands at %d and thinks at %d", d.PosMax, s.Len())
		}
		break
	}
	if err := s.Reset(ctx); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(eval(t, s, checkText...), h.want) {
		t.Error("it has other bits than before")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
