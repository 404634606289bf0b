package actors_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/testenv"
	"github.com/moeflux/moeflux-actor/io/readpool"
	"github.com/moeflux/moeflux-actor/stages"
)

// streamed is an engine whose reads go through faults. Unless it is told otherwise it has slots for
// all experts but one, so that nothing is read before somebody asks for it.
func streamed(t *testing.T, cfg actors.Config, faults ...readpool.Fault) (*actors.Engine, **readpool.Faulty) {
	t.Helper()
	faulty := new(*readpool.Faulty)
	cfg.Model = fixtures.Packed(t, fixtures.Qwen35MoEBF16, 0)
	cfg.ExpertIO = actors.ExpertIOBuffered
	cfg.VerifyReads = cmp.Or(cfg.VerifyReads, actors.VerifyOn)
	if cfg.ExpertMemory == 0 {
		cfg.ExpertMemory = 31 * 24576
	}
	cfg = actors.WithReads(cfg, func(src readpool.Source) readpool.Source {
		*faulty = readpool.NewFaulty(src, faults...)
		return *faulty
	})
	return open(t, cfg), faulty
}

// TestFailingRead lets the n-th read fail, for every n and kind of failure. The call that needed it
// gets the cause, its sequence is poisoned and healed by Reset, another sequence goes on with the
// right numbers. The prompt's reads are all of demand; from then on some are speculative, and of
// these a call fails for none: what nobody waits for is forgotten, what somebody does is read
// again.
func TestFailingRead(t *testing.T) {
	ctx := context.Background()
	clean, _ := streamed(t, actors.Config{})
	want, err := transcript(sequence(t, clean), []int32{3, 1, 4, 1, 5}, 3)
	if err != nil {
		t.Fatal(err)
	}
	tried, failed := 0, 0
	for _, kind := range []readpool.FaultKind{readpool.Fail, readpool.Short, readpool.Panic} {
		again := 1 // what failed is read twice
		if kind == readpool.Panic {
			again = 0
		}
		for n := 1; ; n += testenv.Rounds(5, 2, 1) {
			e, faulty := streamed(t, actors.Config{ExpertMemory: 12 * 28672, ReadWorkers: 2}, readpool.Fault{Read: n, Kind: kind, Again: again})
			victim, other := sequence(t, e), sequence(t, e)
			got, err := transcript(victim, []int32{3, 1, 4, 1, 5}, 3)
			if (*faulty).Reads() < n { // the conversation has fewer reads
				if err != nil {
					t.Fatalf("without a fault: %v", err)
				}
				break
			}
			tried++
			if err != nil {
				failed++
				checkPoisoned(t, fmt.Sprintf("%v of read %d", kind, n), victim, err)
				if err := victim.Reset(ctx); err != nil {
					t.Fatal(err)
				}
				if got, err = transcript(victim, []int32{3, 1, 4, 1, 5}, 3); err != nil {
					t.Fatalf("%v of read %d: after reset: %v", kind, n, err)
				}
			}
			more, err := transcript(other, []int32{3, 1, 4, 1, 5}, 3)
			if err != nil {
				t.Fatalf("%v of read %d: another sequence: %v", kind, n, err)
			}
			for i := range want {
				if !slices.Equal(got[i], want[i]) || !slices.Equal(more[i], want[i]) {
					t.Fatalf("%v of read %d of %d: logits %d differ", kind, n, (*faulty).Reads(), i)
				}
			}
		}
	}
	if failed == 0 || failed == tried {
		t.Errorf("%d of %d faults failed a call; some speculative ones should not", failed, tried)
	}
	t.Logf("%d faults, %d failed a call, the others hit speculative reads", tried, failed)
}

func checkPoisoned(t *testing.T, what string, s *actors.Sequence, err error) {
	t.Helper()
	var step *stages.StepError
	if !errors.As(err, &step) || step.Stage != stages.ExpertIO {
		t.Fatalf("%s: error %v, want a StepError of expert-io", what, err)
	}
	if !errors.Is(err, readpool.ErrInjected) && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatalf("%s: error %v does not name the cause", what, err)
	}
	var poison *stages.PoisonedError
	if !errors.As(s.Err(), &poison) {
		t.Fatalf("%s: the sequence's error is %v, want a PoisonedError", what, s.Err())
	}
	if _, err := s.Eval(context.Background(), []int32{1}); !errors.As(err, &poison) {
		t.Fatalf("%s: evaluating on gives %v, want a PoisonedError", what, err)
	}
}

// TestCancelWhileReading cancels a call that waits for a disk which does not answer. The call ends
// at once; the engine lives.
func TestCancelWhileReading(t *testing.T) {
	release := make(chan struct{})
	e, faulty := streamed(t, actors.Config{ReadWorkers: 4}, readpool.Fault{Read: 1, Kind: readpool.Slow, Release: release})
	s := sequence(t, e)
	ctx, cancel := context.WithCancelCause(context.Background())
	cause := errors.New("the client has gone")
	go func() {
		for (*faulty).Reads() == 0 {
			time.Sleep(time.Millisecond)
		}
		cancel(cause)
	}()
	_, err := s.Eval(ctx, []int32{1, 2, 3})
	if !errors.Is(err, cause) {
		t.Errorf("cancelled call: %v, want its cause", err)
	}
	var poison *stages.PoisonedError
	if !errors.As(s.Err(), &poison) {
		t.Errorf("the sequence's error is %v, want a PoisonedError: a layer was under way", s.Err())
	}
	close(release)
	if err := s.Reset(context.Background()); err != nil {
		t.Fatal(err)
	}
	eval(t, s, 1, 2, 3)
}

// TestCancelWhileWaiting cancels a call that is in no step yet. It ends at once and its sequence is
// as before.
func TestCancelWhileWaiting(t *testing.T) {
	release := make(chan struct{})
	e, faulty := streamed(t, actors.Config{StepsInFlight: 1}, readpool.Fault{Read: 1, Kind: readpool.Slow, Release: release})
	busy, waiting := sequence(t, e), sequence(t, e)
	ended := make(chan error, 1)
	go func() {
		_, err := busy.Eval(context.Background(), []int32{1})
		ended <- err
	}()
	for (*faulty).Reads() == 0 {
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
	defer cancel()
	if _, err := waiting.Eval(ctx, []int32{1}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the waiting call: %v, want its deadline", err)
	}
	if waiting.Err() != nil || waiting.Len() != 0 {
		t.Errorf("the waiting sequence has error %v and %d positions, want none", waiting.Err(), waiting.Len())
	}
	close(release)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	eval(t, waiting, 1, 2, 3)
}

// TestCloseWhileEvaluating closes an engine under load: calls end with ErrClosed, nothing is left.
func TestCloseWhileEvaluating(t *testing.T) {
	for _, io := range []actors.ExpertIO{actors.ExpertIOMmap, actors.ExpertIOBuffered} {
		dev := device(t, 2)
		before := mappings(t)
		e, err := actors.Open(context.Background(), actors.Config{
			Model: fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0), Device: dev, ExpertIO: io, ChunkRows: 2, ExpertMemory: 1 << 20,
		})
		if err != nil {
			t.Fatal(err)
		}
		errs := make(chan error)
		for i := range 3 {
			s, err := e.NewSequence(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				_, err := s.Eval(context.Background(), prompt(uint64(i), 1000, 512))
				errs <- errors.Join(err, s.Close())
			}()
		}
		// A thousand tokens take five hundred steps: close when the first has begun.
		for begun := false; !begun; {
			st, err := e.Stats(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			for i := range st.Layers {
				begun = begun || st.Layers[i].Hits+st.Layers[i].Misses > 0
			}
		}
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		if err := e.Close(ended); err != nil && !errors.As(err, new(*actors.LeftBehindError)) {
			t.Error(err)
		}
		for range 3 {
			if err := <-errs; !errors.Is(err, stages.ErrClosed) {
				t.Errorf("%s: call under way: %v, want ErrClosed", io, err)
			}
		}
		if _, err := e.NewSequence(context.Background()); !errors.Is(err, stages.ErrClosed) {
			t.Errorf("a closed engine makes a sequence: %v", err)
		}
		if err := e.Close(context.Background()); err != nil {
			t.Errorf("closing again: %v", err)
		}
		if after := mappings(t); after != before {
			t.Errorf("%s: %s after Close, %s before Open", io, after, before)
		}
	}
}

// mappings counts what this process has mapped and opened of packed models.
func mappings(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return "unknown" // not Linux
	}
	fds, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	open := 0
	for _, fd := range fds {
		if name, err := os.Readlink(fd); err == nil && strings.HasSuffix(name, ".bin") {
			open++
		}
	}
	return fmt.Sprintf("%d mappings and %d open files", strings.Count(string(raw), ".bin"), open)
}

// TestBrokenEngine gives a stage a message that breaks an invariant: everybody learns that the
// engine has stopped, and why, and Close still cleans up.
func TestBrokenEngine(t *testing.T) {
	system := silentSystem(t)
	release := make(chan struct{})
	e, err := actors.Spawn(context.Background(), system, actors.WithReads(actors.Config{
		Model: fixtures.Packed(t, fixtures.Qwen35MoEBF16, 0), Device: device(t, 1), ExpertIO: actors.ExpertIOBuffered,
	}, func(src readpool.Source) readpool.Source {
		return readpool.NewFaulty(src, readpool.Fault{Read: 1, Kind: readpool.Slow, Release: release})
	}))
	if err != nil {
		t.Fatal(err)
	}
	s, err := e.NewSequence(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() {
		_, err := s.Eval(context.Background(), []int32{1})
		ended <- err
	}()
	system.Root.Send(e.PID(), &stages.LayerRetired{Step: stages.Step{ID: 99, Batch: &stages.Batch{}}})
	var broken *actors.BrokenError
	if err := <-ended; !errors.As(err, &broken) || broken.Stage != "sequencer" {
		t.Errorf("the call under way: %v, want a BrokenError of the sequencer", err)
	}
	if _, err := e.Stats(context.Background()); !errors.As(err, &broken) {
		t.Errorf("a later call: %v, want a BrokenError", err)
	}
	close(release)
	if err := e.Close(context.Background()); !errors.As(err, &broken) {
		t.Errorf("Close: %v, want a BrokenError", err)
	}
}

// TestStoppedFromOutside stops a stage's actor behind the engine's back: callers learn it instead
// of waiting for ever.
func TestStoppedFromOutside(t *testing.T) {
	system := silentSystem(t)
	e, err := actors.Spawn(context.Background(), system, actors.Config{
		Model: fixtures.Packed(t, fixtures.Qwen35MoEBF16, 0), Device: device(t, 1),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := system.Root.StopFuture(e.PID()).Wait(); err != nil {
		t.Fatal(err)
	}
	var stopped *actors.StoppedError
	if _, err := e.NewSequence(context.Background()); !errors.As(err, &stopped) || stopped.Actor != "sequencer" {
		t.Errorf("a later call: %v, want a StoppedError of the sequencer", err)
	}
	if err := e.Close(context.Background()); !errors.As(err, &stopped) || strings.Contains(err.Error(), "report") {
		t.Errorf("Close: %v, want a StoppedError, which is no bug to report", err)
	}
}
