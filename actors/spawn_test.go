package actors_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/stages"
)

// TestSpawn runs two engines in a service's own actor system, one used through Go methods, the
// other by messages, and wants the same numbers, no dead letter and an actor system that goes on
// living.
func TestSpawn(t *testing.T) {
	ctx := context.Background()
	system := quietSystem(t)
	cfg := actors.Config{Model: fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0), Device: device(t, 2), Prefetch: actors.PrefetchOff}
	one, err := actors.Spawn(ctx, system, cfg)
	if err != nil {
		t.Fatal(err)
	}
	cfg.ExpertIO = actors.ExpertIOBuffered
	two, err := actors.Spawn(ctx, system, cfg)
	if err != nil {
		t.Fatal(err)
	}
	tokens := []int32{7, 8, 9}
	s := sequence(t, one)
	want := eval(t, s, tokens...)

	ask := func(m stages.Message) any {
		a, err := system.Root.RequestFuture(two.PID(), m, time.Minute).Result()
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	if a := ask(&stages.OpenSequence{Seq: 42}).(*stages.SequenceDone); a.Err != nil {
		t.Fatal(a.Err)
	}
	if a := ask(&stages.EvalChunk{Seq: 42, Tokens: tokens}).(*stages.ChunkEvaluated); a.Err != nil || !slices.Equal(a.Logits, want) {
		t.Errorf("by message: error %v, or other logits than by method", a.Err)
	}
	if a := ask(&stages.EvalChunk{Seq: 42, Pos: stages.At(1), Tokens: tokens}).(*stages.ChunkEvaluated); a.Err == nil {
		t.Error("a chunk at position 1 of a sequence with 3 is taken")
	}
	if a := ask(&stages.CloseSequence{Seq: 42}).(*stages.SequenceDone); a.Err != nil {
		t.Error(a.Err)
	}
	// A number that an actor has taken is passed over by the engine's methods.
	if a := ask(&stages.OpenSequence{Seq: 1}).(*stages.SequenceDone); a.Err != nil {
		t.Fatal(a.Err)
	}
	other := sequence(t, two)
	if got := eval(t, other, tokens...); other.ID() == 1 || !slices.Equal(got, want) {
		t.Errorf("beside an actor's sequence 1, sequence %d has other logits than one alone", other.ID())
	}
	if err := other.Close(); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	for _, e := range []*actors.Engine{one, two} {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
	echo := system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		if m, ok := c.Message().(string); ok {
			c.Respond(m)
		}
	}))
	if a, err := system.Root.RequestFuture(echo, "still here", time.Minute).Result(); err != nil || a != "still here" {
		t.Errorf("the service's own actor answers %v, %v", a, err)
	}
	if err := system.Root.StopFuture(echo).Wait(); err != nil {
		t.Error(err)
	}
}
