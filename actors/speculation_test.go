package actors_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/testenv"
	"github.com/moeflux/moeflux-actor/stages"
)

// TestDemoSpeculation reads held-out source token by token with slots for a quarter of the demo
// model's experts. Every speculative read ends once, and where routers are asked ahead fewer
// experts are missing than without. The figures that it logs are those of docs/experiments.md.
func TestDemoSpeculation(t *testing.T) {
	tokens := testenv.Rounds(128, 128, 512)
	dev := device(t, 2)
	all, _ := openDemo(t, dev, actors.Config{ExpertIO: actors.ExpertIOMmap})
	memory := int64(all.Info().Slots/4) * int64((all.Info().SlotBytes+4095)/4096*4096)
	without := int64(0)
	for _, by := range []struct {
		prefetch actors.Prefetch
		layers   int
	}{
		{actors.PrefetchOff, 0}, {actors.PrefetchLastToken, 1}, {actors.PrefetchLastToken, 2}, {actors.PrefetchNextGate, 1},
		{actors.PrefetchNextGate, 2}, {actors.PrefetchBoth, 1}, {actors.PrefetchBoth, 2},
	} {
		t.Run(fmt.Sprintf("prefetch=%s/layers=%d", by.prefetch, by.layers), func(t *testing.T) {
			e, ref := openDemo(t, dev, actors.Config{
				Prefetch: by.prefetch, PrefetchLayers: by.layers, ExpertIO: actors.ExpertIOBuffered, ExpertMemory: memory, WaveSlots: 4,
			})
			s := sequence(t, e)
			for i := range tokens {
				if err := s.Use(context.Background(), ref.EvalIDs[i:i+1], func([]float32) error { return nil }); err != nil {
					t.Fatal(err)
				}
			}
			st, err := e.Stats(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			var sum stages.LayerStats
			for i, l := range st.Layers {
				if l.PrefetchIssued != l.PrefetchHit+l.PrefetchLate+l.PrefetchWasted+l.PrefetchHeld {
					t.Errorf("layer %d: a speculative read was lost: %+v", i, l)
				}
				sum.Hits, sum.Misses = sum.Hits+l.Hits, sum.Misses+l.Misses
				sum.PrefetchIssued, sum.PrefetchHit = sum.PrefetchIssued+l.PrefetchIssued, sum.PrefetchHit+l.PrefetchHit
				sum.PrefetchLate, sum.PrefetchWasted = sum.PrefetchLate+l.PrefetchLate, sum.PrefetchWasted+l.PrefetchWasted
				sum.PrefetchDropped, sum.PrefetchDeclined = sum.PrefetchDropped+l.PrefetchDropped, sum.PrefetchDeclined+l.PrefetchDeclined
				sum.PrefetchPauses += l.PrefetchPauses
			}
			uses := float64(sum.Hits + sum.Misses)
			t.Logf("of %.0f uses %.1f %% missing, %.1f %% read ahead in time, %.1f %% late; wasted reads %.1f %% of uses; dropped %.1f %%, declined %.1f %%; %d pauses",
				uses, 100*float64(sum.Misses)/uses, 100*float64(sum.PrefetchHit)/uses, 100*float64(sum.PrefetchLate)/uses,
				100*float64(sum.PrefetchWasted)/uses, 100*float64(sum.PrefetchDropped)/uses, 100*float64(sum.PrefetchDeclined)/uses, sum.PrefetchPauses)
			switch by.prefetch {
			case actors.PrefetchOff:
				without = sum.Misses
			case actors.PrefetchNextGate, actors.PrefetchBoth:
				if sum.Misses >= without {
					t.Errorf("%d experts were missing, %d without a predictor", sum.Misses, without)
				}
			}
		})
	}
}
