package actors_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
)

// TestResidentTells wants an engine whose device routes by itself to tell the same as one that
// routes: routing, hidden states and logits of chunks, and figures of the use of experts.
func TestResidentTells(t *testing.T) {
	for _, name := range []string{fixtures.Qwen35MoEQ4, fixtures.DeepseekV3BF16} {
		t.Run(name, func(t *testing.T) {
			dev := device(t, 2)
			var told [2]*actors.Evaluated
			var stats [2]*actors.Stats
			for i, resident := range []actors.Resident{actors.ResidentOn, actors.ResidentOff} {
				e := open(t, actors.Config{Model: fixtures.Packed(t, name, 0), Device: dev, ExpertIO: actors.ExpertIOMmap, Resident: resident, ChunkRows: 9})
				if got := e.Info().Resident; got != (resident == actors.ResidentOn) {
					t.Fatalf("resident %s: the device routes by itself: %v", resident, got)
				}
				s, ctx := sequence(t, e), context.Background()
				var err error
				told[i], err = s.EvalChunk(ctx, actors.Chunk{Tokens: prompt(1, 21, e.Model().VocabSize), Logits: actors.AllLogits, Hidden: true, Routing: true})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := s.EvalChunk(ctx, actors.Chunk{Tokens: prompt(2, 11, e.Model().VocabSize), Logits: actors.NoLogits}); err != nil {
					t.Fatal(err)
				}
				eval(t, s, 3)
				if stats[i], err = e.Stats(ctx); err != nil {
					t.Fatal(err)
				}
			}
			a, b := told[0], told[1]
			if !slices.Equal(a.Picks, b.Picks) || !slices.Equal(a.Weights, b.Weights) || !slices.Equal(a.Hidden, b.Hidden) || !slices.Equal(a.Logits, b.Logits) {
				t.Error("routing, hidden states or logits are others")
			}
			uses := int64(0)
			for i := range stats[0].Layers {
				x, y := &stats[0].Layers[i], &stats[1].Layers[i]
				got, want := fmt.Sprint(x.Uses, x.Hits, x.Misses, x.Picks, x.SamePicks), fmt.Sprint(y.Uses, y.Hits, y.Misses, y.Picks, y.SamePicks)
				if got != want {
					t.Errorf("layer %d: uses, hits, misses, picks, same picks are %s, streamed %s", i, got, want)
				}
				for _, n := range x.Uses {
					uses += n
				}
			}
			if uses == 0 || stats[0].Rows != stats[1].Rows || stats[0].ComputeNS == 0 {
				t.Errorf("%d uses in %d rows (streamed %d), %d ns of work: the test shows nothing", uses, stats[0].Rows, stats[1].Rows, stats[0].ComputeNS)
			}
		})
	}
}

// TestResidentMustFit wants experts that do not fit, and ways to read them that do not go together
// with it, to be refused.
func TestResidentMustFit(t *testing.T) {
	cfg := actors.Config{Model: fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0), Device: device(t, 1), Resident: actors.ResidentOn, ExpertMemory: 1 << 16}
	for name, c := range map[string]func(c *actors.Config){
		"too little memory": func(*actors.Config) {},
		"reads":             func(c *actors.Config) { c.ExpertIO = actors.ExpertIOBuffered },
		"counting":          func(c *actors.Config) { c.ExpertMemory, c.CountAhead = 0, true },
		"unknown":           func(c *actors.Config) { c.Resident = "perhaps" },
	} {
		bad := cfg
		c(&bad)
		if e, err := actors.Open(context.Background(), bad); err == nil {
			e.Close(context.Background())
			t.Errorf("%s: opened", name)
		}
	}
}
