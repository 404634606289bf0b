package actors_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/io/expertfile"
	"github.com/moeflux/moeflux-actor/io/readpool"
	"github.com/moeflux/moeflux-actor/stages"
)

// pageSlot is the size of a record of the fixture Qwen35MoEBF16: six pages.
const pageSlot = 24576

var readText = []int32{3, 1, 4, 1, 5}

// wantTranscript is what the fixture says with everything in memory.
func wantTranscript(t *testing.T) [][]float32 {
	t.Helper()
	e := open(t, actors.Config{Model: fixtures.Packed(t, fixtures.Qwen35MoEBF16, 0), ExpertIO: actors.ExpertIOMmap})
	want, err := transcript(sequence(t, e), readText, 6)
	if err != nil {
		t.Fatal(err)
	}
	return want
}

func sameTranscript(t *testing.T, what string, s *actors.Sequence, want [][]float32) {
	t.Helper()
	got, err := transcript(s, readText, len(want)-1)
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	for i := range want {
		if !slices.Equal(got[i], want[i]) {
			t.Errorf("%s: logits %d differ", what, i)
		}
	}
}

// TestReadModes wants the same bits from every way of reading, with few slots and few workers;
// records that are no multiples of a page are read through the page cache though direct reads were
// asked for.
func TestReadModes(t *testing.T) {
	want := wantTranscript(t)
	dir := fixtures.Packed(t, fixtures.Qwen35MoEBF16, 0)
	for _, how := range []actors.ExpertIO{actors.ExpertIODirect, actors.ExpertIOBuffered} {
		for _, slots := range []int64{1, 2, 5, 32} {
			e := open(t, actors.Config{Model: dir, ExpertIO: how, ExpertMemory: slots * pageSlot, ReadWorkers: int(slots)})
			s := sequence(t, e)
			sameTranscript(t, string(how), s, want)
			st, err := e.Stats(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			r := st.Reads
			if r.Source != string(e.Info().ExpertIO) || r.Ended == 0 || r.Bytes != r.Ended*pageSlot || r.Failed+r.Retried+r.Overdue != 0 ||
				r.RunningHigh < 1 || r.RunningHigh > int(slots) || r.BusyTime <= 0 {
				t.Errorf("%s with %d slots: %+v", how, slots, r)
			}
			if how == actors.ExpertIODirect && e.Info().ExpertIO != how {
				t.Logf("the file system of temporary files refuses direct reads: %s", e.Info().ExpertIO)
			}
		}
	}
	e := open(t, actors.Config{Model: fixtures.Packed(t, fixtures.Qwen3MoEQ4, 0), ExpertIO: actors.ExpertIODirect, ExpertMemory: 1 << 20})
	if i := e.Info(); i.SlotBytes%4096 != 0 && i.ExpertIO != actors.ExpertIOBuffered {
		t.Errorf("records of %d bytes are read in mode %s", i.SlotBytes, i.ExpertIO)
	}
	eval(t, sequence(t, e), 1, 2, 3)
}

// TestStalledRead lets the disk stall: after the read timeout every call that needs what is stalled
// fails with a typed error, a call may be cancelled before, and when the disk is back so is the
// engine, with the right numbers.
func TestStalledRead(t *testing.T) {
	t.Run("slots", func(t *testing.T) { testStalledRead(t, actors.Config{}) })
	// All records are held by reads that stall, so others wait for a record and never come to the
	// disk, where they would be timed.
	t.Run("host memory", func(t *testing.T) {
		dev := &discrete{Device: device(t, 2), free: 1 << 30}
		testStalledRead(t, actors.Config{Device: dev, HostMemory: 2 * pageSlot, ExpertMemory: 8 * pageSlot})
	})
}

func testStalledRead(t *testing.T, cfg actors.Config) {
	want := wantTranscript(t)
	release := make(chan struct{})
	cfg.ReadWorkers, cfg.ReadTimeout = 2, 40*time.Millisecond
	e, _ := streamed(t, cfg,
		readpool.Fault{Read: 1, Kind: readpool.Slow, Release: release}, readpool.Fault{Read: 2, Kind: readpool.Slow, Release: release})
	victim, other, third := sequence(t, e), sequence(t, e), sequence(t, e)
	// the second needs no less what the first needed
	for _, s := range []*actors.Sequence{victim, other} {
		began := time.Now()
		_, err := s.Eval(context.Background(), readText)
		var late *readpool.TimeoutError
		var step *stages.StepError
		if !errors.As(err, &late) || !errors.As(err, &step) || !errors.Is(err, os.ErrDeadlineExceeded) || step.Stage != stages.ExpertIO {
			t.Fatalf("a stalled read: %v, want a TimeoutError in a StepError", err)
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("the call failed after %v", took)
		}
		if s.Err() == nil {
			t.Error("the sequence is not poisoned")
		}
	}
	// who needs none of what has stalled finds no room for what it needs
	for token := range int32(10) {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		s := sequence(t, e)
		_, err := s.Eval(ctx, []int32{token})
		cancel()
		if late := (*readpool.TimeoutError)(nil); !errors.As(err, &late) {
			t.Fatalf("token %d: %v, want a TimeoutError", token, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	go cancel()
	if _, err := third.Eval(ctx, readText); !errors.Is(err, context.Canceled) && !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a call that is cancelled meanwhile: %v", err)
	}
	close(release)
	answered(t, e)
	for _, s := range []*actors.Sequence{victim, other, third} {
		if err := s.Reset(context.Background()); err != nil {
			t.Fatal(err)
		}
		sameTranscript(t, "after the stall", s, want)
	}
	st, err := e.Stats(context.Background())
	if err != nil || st.Reads.Overdue < 2 || st.FailedSteps < 2 {
		t.Errorf("%d late reads and %d failed steps, %v; want two at least", st.Reads.Overdue, st.FailedSteps, err)
	}
}

// answered waits until the ends of late reads have come through: whoever needs one of them fails
// until then.
func answered(t *testing.T, e *actors.Engine) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		s := sequence(t, e)
		_, err := s.Eval(t.Context(), readText)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err == nil {
			return
		}
		if late := (*readpool.TimeoutError)(nil); !errors.As(err, &late) || time.Since(began) > 20*time.Second {
			t.Fatalf("after the disk has answered: %v", err)
		}
	}
}

// TestRetriedRead lets reads fail once: nobody notices, and they are counted.
func TestRetriedRead(t *testing.T) {
	want := wantTranscript(t)
	e, _ := streamed(t, actors.Config{ExpertMemory: 8 * pageSlot, ReadWorkers: 1},
		readpool.Fault{Read: 1, Kind: readpool.Fail}, readpool.Fault{Read: 7, Kind: readpool.Short}, readpool.Fault{Read: 20, Kind: readpool.Fail})
	sameTranscript(t, "with reads that fail once", sequence(t, e), want)
	st, err := e.Stats(context.Background())
	if err != nil || st.Reads.Retried != 3 || st.Reads.Failed != 0 || st.ReadErrors != 0 || st.FailedSteps != 0 {
		t.Errorf("%+v, %d errors, %d failed steps, %v; want 3 retries and nothing else", st.Reads, st.ReadErrors, st.FailedSteps, err)
	}
}

// TestFileChanges truncates a file of the model while the engine runs, writes it back, and replaces
// it. Truncated, calls fail with an error that names file and place; whole again, or replaced,
// everything goes on.
func TestFileChanges(t *testing.T) {
	want := wantTranscript(t)
	for _, how := range []actors.ExpertIO{actors.ExpertIODirect, actors.ExpertIOBuffered} {
		dir := copyModel(t, fixtures.Qwen35MoEBF16)
		path := filepath.Join(dir, "packed_experts", "layer_02.bin")
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		e := open(t, actors.Config{Model: dir, ExpertIO: how, ExpertMemory: 4 * pageSlot, Prefetch: actors.PrefetchOff})
		s := sequence(t, e)
		sameTranscript(t, "before", s, want)
		if err := os.Truncate(path, 1000); err != nil {
			t.Fatal(err)
		}
		_, err = s.Eval(context.Background(), readText)
		var read *expertfile.ReadError
		var step *stages.StepError
		if !errors.As(err, &read) || !errors.As(err, &step) || !errors.Is(err, io.ErrUnexpectedEOF) || read.Path != path || read.Layer != 2 || step.Layer != 2 {
			t.Fatalf("%s: a truncated file: %v, want a ReadError of %s", how, err, path)
		}
		if err := os.WriteFile(path, whole, 0o644); err != nil {
			t.Fatal(err)
		}
		// A call that waits for an expert takes the read of it that is under way: those of the
		// truncated file end first.
		for read = nil; ; {
			if err := s.Reset(context.Background()); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Eval(context.Background(), readText); err == nil {
				break
			} else if before := read; !errors.As(err, &read) || before != nil && read.Expert == before.Expert && read.Layer == before.Layer {
				t.Fatalf("%s: the file is whole again: %v", how, err)
			}
		}
		if err := s.Reset(context.Background()); err != nil {
			t.Fatal(err)
		}
		sameTranscript(t, "whole again", s, want)
		if err := os.WriteFile(path+".new", make([]byte, len(whole)), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
		if err := s.Reset(context.Background()); err != nil {
			t.Fatal(err)
		}
		sameTranscript(t, "replaced", s, want)
	}
}

// TestTwoEngines lets engines of every way of reading work on one model at once.
func TestTwoEngines(t *testing.T) {
	want := wantTranscript(t)
	dir := fixtures.Packed(t, fixtures.Qwen35MoEBF16, 0)
	var wg sync.WaitGroup
	for _, how := range []actors.ExpertIO{actors.ExpertIODirect, actors.ExpertIODirect, actors.ExpertIOBuffered, actors.ExpertIOMmap} {
		e := open(t, actors.Config{Model: dir, ExpertIO: how, ExpertMemory: 6 * pageSlot})
		s := sequence(t, e)
		wg.Go(func() {
			for range 5 {
				sameTranscript(t, string(how), s, want)
				if err := s.Reset(context.Background()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}
