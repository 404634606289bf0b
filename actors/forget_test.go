package actors_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/io/readpool"
	"github.com/moeflux/moeflux-actor/stages"
)

// TestForgetExperts decodes with slots for all experts, so that nothing is missed any more, has
// them forgotten, and wants the next token to miss every expert and to say the same.
func TestForgetExperts(t *testing.T) {
	ctx := context.Background()
	for _, prefetch := range []actors.Prefetch{actors.PrefetchOff, actors.PrefetchBoth} {
		t.Run(string(prefetch), func(t *testing.T) {
			e := open(t, actors.Config{Model: fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0), ExpertIO: actors.ExpertIOBuffered, Prefetch: prefetch})
			s := sequence(t, e)
			text := func() (logits []float32, hits, misses int64) {
				t.Helper()
				if err := s.Reset(ctx); err != nil {
					t.Fatal(err)
				}
				before := figures(t, e)
				logits = eval(t, s, 7)
				after := figures(t, e)
				return logits, after.hits - before.hits, after.misses - before.misses
			}
			want, _, _ := text()
			for range 50 { // until the warm start has read all
				text()
			}
			if _, hits, misses := text(); misses != 0 || hits == 0 {
				t.Fatalf("with all experts in memory: %d hits, %d misses", hits, misses)
			}
			if err := e.ForgetExperts(ctx); err != nil {
				t.Fatal(err)
			}
			st, err := e.Stats(ctx)
			if err != nil || st.SlotsUsed != 0 || st.Slots != st.SlotsMost {
				t.Errorf("after forgetting %d of %d slots hold an expert, %v", st.SlotsUsed, st.Slots, err)
			}
			for i, l := range st.Layers {
				if l.PrefetchHeld != 0 || l.PrefetchIssued != l.PrefetchHit+l.PrefetchLate+l.PrefetchWasted {
					t.Errorf("layer %d: %d speculative reads became %d hits, %d late, %d wasted, and %d are held",
						i, l.PrefetchIssued, l.PrefetchHit, l.PrefetchLate, l.PrefetchWasted, l.PrefetchHeld)
				}
			}
			got, hits, misses := text()
			if !slices.Equal(got, want) {
				t.Error("after forgetting the same token gives other logits")
			}
			// a prediction of a layer behind may still turn a miss into a hit
			if misses == 0 || prefetch == actors.PrefetchOff && hits != 0 {
				t.Errorf("after forgetting: %d hits, %d misses", hits, misses)
			}
		})
	}
}

// TestForgetExpertsMapped asks where there are no slots.
func TestForgetExpertsMapped(t *testing.T) {
	e := open(t, actors.Config{Model: fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0), ExpertIO: actors.ExpertIOMmap})
	if err := e.ForgetExperts(context.Background()); !errors.Is(err, stages.ErrExpertsMapped) {
		t.Errorf("got %v, want ErrExpertsMapped", err)
	}
}

// TestForgetExpertsWaits forgets while a warm start's read hangs: the answer waits for it, no
// longer than the caller's context, and then nothing is left in the slots.
func TestForgetExpertsWaits(t *testing.T) {
	release := make(chan struct{})
	var faulty *readpool.Faulty
	e := open(t, actors.WithReads(actors.Config{
		Model: fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0), ExpertIO: actors.ExpertIOBuffered,
	}, func(src readpool.Source) readpool.Source {
		faulty = readpool.NewFaulty(src, readpool.Fault{Read: 1, Kind: readpool.Slow, Release: release})
		return faulty
	}))
	for faulty.Reads() == 0 {
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if err := e.ForgetExperts(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while a read hangs: %v, want the deadline", err)
	}
	close(release)
	if err := e.ForgetExperts(context.Background()); err != nil {
		t.Fatal(err)
	}
	if st, err := e.Stats(context.Background()); err != nil || st.SlotsUsed != 0 {
		t.Errorf("%d slots hold an expert, %v", st.SlotsUsed, err)
	}
}
