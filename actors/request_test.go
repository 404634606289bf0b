package actors_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/testenv"
	"github.com/moeflux/moeflux-actor/stages"
)

// TestMessagesFromOutside sends the sequencer's PID what it takes and what it does not: each
// request gets a typed answer, a message that nobody takes is worth a line in the log, and the
// engine goes on.
func TestMessagesFromOutside(t *testing.T) {
	ctx := context.Background()
	system := quietSystem(t)
	var log testenv.Log
	e, err := actors.Spawn(ctx, system, actors.Config{
		Model: fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0), Device: device(t, 1), ExpertIO: actors.ExpertIOBuffered, WaveSlots: 3, Logger: log.Logger(),
	})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(m any) any {
		t.Helper()
		a, err := system.Root.RequestFuture(e.PID(), m, 10*time.Second).Result()
		if err != nil {
			t.Fatalf("%T: %v", m, err)
		}
		return a
	}
	for _, m := range []any{
		"hello", 7, struct{}{}, &stages.LayerRetired{}, &stages.BeginLayer{}, &stages.ExpertsRead{}, &stages.WarmSlots{}, &stages.SequenceDone{}, new(stages.StateCopied),
	} {
		if a, ok := ask(m).(*actors.MessageError); !ok || a.Actor != "sequencer" || a.Message == "" {
			t.Errorf("%T is answered by %v, want a MessageError", m, a)
		}
	}
	if a, ok := ask(&stages.CollectStats{}).(*stages.CollectStats); !ok || a.Stats == nil || a.Stats.SlotsMost != e.Info().Slots {
		t.Errorf("CollectStats without a place is answered by %+v", a)
	}
	if a, ok := ask(&stages.ResizeSlots{Slots: 7}).(*stages.SlotsResized); !ok || a.Slots != 7 {
		t.Errorf("ResizeSlots is answered by %+v", a)
	}
	if a, ok := ask(&stages.ForgetExperts{}).(*stages.ExpertsForgotten); !ok || a.Err != nil {
		t.Errorf("ForgetExperts is answered by %+v", a)
	}
	for kind, m := range map[stages.SequenceOp]stages.Message{
		stages.Capped: &stages.CapCheckpoints{Seq: 1 << 40}, stages.Released: &stages.ReleaseState{State: -7}, stages.Closed: &stages.CloseSequence{Seq: 1 << 40, Now: true},
	} {
		if a, ok := ask(m).(*stages.SequenceDone); !ok || a.Kind != kind || a.Err == nil {
			t.Errorf("%T is answered by %+v", m, a)
		}
	}
	system.Root.Send(e.PID(), "nobody asks")
	eval(t, sequence(t, e), 1, 2, 3)
	if n := strings.Count(log.String(), "a message was ignored"); n != 1 {
		t.Errorf("%d messages were logged as ignored, want 1: %s", n, log.String())
	}
	// callers that cannot take an answer hold nobody up
	system.Root.Send(e.PID(), &stages.DescribeSequence{Seq: 1, Caller: make(chan stages.Message)})
	system.Root.Send(e.PID(), &stages.DescribeSequence{Seq: 1, Caller: "me"})
	eval(t, sequence(t, e), 1, 2, 3)
	if n := strings.Count(log.String(), "an answer was dropped"); n != 2 {
		t.Errorf("%d answers were logged as dropped, want 2: %s", n, log.String())
	}
	if a, ok := ask(&stages.Drain{}).(*stages.Drained); !ok {
		t.Errorf("Drain is answered by %+v", a)
	}
	if err := e.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// TestSystemShutdown shuts the host service's actor system down under an engine: a call under way
// and every later one, by method or by message, say so, and Close gives everything back.
func TestSystemShutdown(t *testing.T) {
	ctx := context.Background()
	dev := device(t, 1)
	for _, mode := range []actors.ExpertIO{actors.ExpertIOMmap, actors.ExpertIOBuffered} {
		system := silentSystem(t)
		before := mappings(t)
		e, err := actors.Spawn(ctx, system, actors.Config{
			Model: fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0), Device: dev, ExpertIO: mode, ExpertMemory: 1 << 18, ChunkRows: 2,
		})
		if err != nil {
			t.Fatal(err)
		}
		s, err := e.NewSequence(ctx)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() {
			_, err := s.Eval(ctx, prompt(1, 4000, 512))
			ended <- err
		}()
		for rows := int64(0); rows == 0; {
			st, err := e.Stats(ctx)
			if err != nil {
				t.Fatal(err)
			}
			rows = st.Rows
		}
		system.Shutdown()
		stopped := func(what string, err error) {
			t.Helper()
			var s *actors.StoppedError
			if !errors.As(err, &s) || s.Actor != "" || strings.Contains(err.Error(), "report") {
				t.Errorf("%s: %v, want a StoppedError of the actor system", what, err)
			}
		}
		stopped("the call under way", <-ended)
		_, err = e.NewSequence(ctx)
		stopped("a new sequence", err)
		_, err = s.Eval(ctx, []int32{1})
		stopped("another call", err)
		_, err = e.ResizeSlots(ctx, 7)
		stopped("slots", err)
		stopped("Close", e.Close(context.Background()))
		_, err = actors.Spawn(ctx, system, actors.Config{Model: fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0), Device: dev})
		stopped("Spawn", err)
		if after := mappings(t); after != before {
			t.Errorf("%s after Close, %s before Open", after, before)
		}
	}
}

// TestSystemShutdownByMessage asks an idle engine of a system that was shut down.
func TestSystemShutdownByMessage(t *testing.T) {
	system := silentSystem(t)
	e, err := actors.Spawn(context.Background(), system, actors.Config{Model: fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0), Device: device(t, 1)})
	if err != nil {
		t.Fatal(err)
	}
	pid := e.PID()
	system.Shutdown()
	var stopped *actors.StoppedError
	a, err := system.Root.RequestFuture(pid, &stages.OpenSequence{Seq: 42}, 10*time.Second).Result()
	if s, ok := a.(*actors.StoppedError); err != nil || !ok || s.Actor != "" {
		t.Errorf("a request is answered by %v, %v, want a StoppedError", a, err)
	}
	if err := e.Close(context.Background()); !errors.As(err, &stopped) {
		t.Errorf("Close: %v, want a StoppedError", err)
	}
}
