package actors_test

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/gpu/host"
	"github.com/moeflux/moeflux-actor/internal/demo"
	"github.com/moeflux/moeflux-actor/internal/testenv"
)

// demoModel returns the packed demo model and what the reference implementation computes with it.
func demoModel(tb testing.TB) (string, *demo.Ref) {
	tb.Helper()
	dir, err := demo.Dir(context.Background(), cacheDir, nil)
	if err != nil {
		tb.Fatal(err)
	}
	ref, err := demo.Reference()
	if err != nil {
		tb.Fatal(err)
	}
	return dir, ref
}

func openDemo(tb testing.TB, dev gpu.Device, cfg actors.Config) (*actors.Engine, *demo.Ref) {
	tb.Helper()
	dir, ref := demoModel(tb)
	cfg.Model, cfg.Device = dir, dev
	return open(tb, cfg), ref
}

// TestDemoLosses evaluates held-out Go source in windows, as the reference did, and wants each
// window's loss within 1e-4.
func TestDemoLosses(t *testing.T) {
	e, ref := openDemo(t, device(t, 2), actors.Config{})
	windows, worst := min(testenv.Rounds(2, 4, ref.Windows), ref.Windows), 0.0
	s := sequence(t, e)
	for w := range windows {
		ids := ref.EvalIDs[w*ref.Seq : (w+1)*ref.Seq+1]
		if err := s.Reset(context.Background()); err != nil {
			t.Fatal(err)
		}
		r, err := s.EvalChunk(context.Background(), actors.Chunk{Tokens: ids[:ref.Seq], Logits: actors.AllLogits})
		if err != nil {
			t.Fatal(err)
		}
		loss := meanLoss(r.Logits, ids[1:])
		if d := math.Abs(loss - ref.NLL[w]); d > 1e-4 {
			t.Errorf("window %d: loss %.6f, want %.6f", w, loss, ref.NLL[w])
		} else {
			worst = max(worst, d)
		}
	}
	t.Logf("%d windows of %d tokens: largest difference of a window's loss %.1e", windows, ref.Seq, worst)
}

// TestDemoInt8 evaluates the same windows with inputs rounded to 8 bits on each variant of the
// device: the mean loss stays within 0.5 % of the reference's. Greedy texts may change; with time,
// how many do is logged.
func TestDemoInt8(t *testing.T) {
	for i, variant := range host.Variants() {
		t.Run("variant="+variant, func(t *testing.T) {
			dev, err := host.New(host.Config{Threads: 2, Variant: variant, Activations: host.Int8})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { dev.Close() })
			e, ref := openDemo(t, dev, actors.Config{})
			windows := min(testenv.Rounds(2, 4, ref.Windows), ref.Windows)
			if i > 0 {
				windows = testenv.Rounds(1, 1, 2)
			}
			got, want := 0.0, 0.0
			s := sequence(t, e)
			for w := range windows {
				ids := ref.EvalIDs[w*ref.Seq : (w+1)*ref.Seq+1]
				if err := s.Reset(context.Background()); err != nil {
					t.Fatal(err)
				}
				r, err := s.EvalChunk(context.Background(), actors.Chunk{Tokens: ids[:ref.Seq], Logits: actors.AllLogits})
				if err != nil {
					t.Fatal(err)
				}
				got, want = got+meanLoss(r.Logits, ids[1:]), want+ref.NLL[w]
			}
			if change := got/want - 1; math.Abs(change) > 0.005 {
				t.Errorf("the mean loss is %.4f, the reference's %.4f: %+.2f %%", got/float64(windows), want/float64(windows), 100*change)
			} else {
				t.Logf("%d windows: mean loss %.4f, the reference's %.4f: %+.3f %%", windows, got/float64(windows), want/float64(windows), 100*change)
			}
			if i >= testenv.Rounds(0, 0, len(host.Variants())) {
				return // they show nothing that fails
			}
			same := 0
			for _, g := range ref.Greedy {
				ids, err := greedy(sequence(t, e), g.PromptIDs, len(g.NewIDs))
				if err != nil {
					t.Fatal(err)
				}
				if slices.Equal(ids, g.NewIDs) {
					same++
				}
			}
			t.Logf("%d of %d greedy texts stay as they were", same, len(ref.Greedy))
		})
	}
}

// tokenLosses returns -log softmax(logits[i])[next[i]], in float64.
func tokenLosses(logits []float32, next []int32) []float64 {
	vocab, losses := len(logits)/len(next), make([]float64, len(next))
	for i, id := range next {
		row := logits[i*vocab : (i+1)*vocab]
		top, z := float64(slices.Max(row)), 0.0
		for _, v := range row {
			z += math.Exp(float64(v) - top)
		}
		losses[i] = top + math.Log(z) - float64(row[id])
	}
	return losses
}

func meanLoss(logits []float32, next []int32) float64 { return mean(tokenLosses(logits, next)) }

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// TestDemoGreedy continues the reference's prompts. Its smallest gap between the two best logits is
// far above float noise.
func TestDemoGreedy(t *testing.T) {
	e, ref := openDemo(t, device(t, 2), actors.Config{})
	for _, g := range ref.Greedy {
		ids, err := greedy(sequence(t, e), g.PromptIDs, len(g.NewIDs))
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range g.NewIDs {
			if ids[i] != want && g.Top1Gap[i] > 1e-3 {
				t.Errorf("%q: token %d is %d, want %d (gap %.3g)", g.Prompt, i, ids[i], want, g.Top1Gap[i])
				break
			}
		}
	}
}

// TestDemoRouting reads the reference's first 2,048 tokens and compares the engine's own counters
// with the reference's routing statistics.
func TestDemoRouting(t *testing.T) {
	e, ref := openDemo(t, device(t, 2), actors.Config{CountAhead: true})
	s := sequence(t, e)
	if _, err := s.EvalChunk(context.Background(), actors.Chunk{Tokens: ref.EvalIDs[:2048], Logits: actors.NoLogits}); err != nil {
		t.Fatal(err)
	}
	st, err := e.Stats(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	worst := 0.0
	check := func(what string, layer int, got, want float64) {
		worst = max(worst, math.Abs(got-want))
		if math.Abs(got-want) > 0.01 {
			t.Errorf("layer %d: %s %.4f, want %.4f", layer, what, got, want)
		}
	}
	share := func(right, all int64) float64 { return float64(right) / float64(all) }
	for i, l := range st.Layers {
		check("share of the last token's experts", i, float64(l.SamePicks)/float64(l.Picks), ref.Routing.HitLastToken[i])
		if i > 0 {
			check("share predicted by the layer before", i, share(l.AheadHits, l.AheadPicks), ref.Routing.HitPrevLayerGate[i-1])
		}
		// the reference has no figures of it; it knows less than one layer before does, and far
		// more than chance
		if i > 1 {
			one, two := share(l.AheadHits, l.AheadPicks), share(l.TwoAheadHits, l.TwoAheadPicks)
			t.Logf("layer %d: %.4f predicted one layer before, %.4f two", i, one, two)
			if !(two < one && two > 0.4) {
				t.Errorf("layer %d: %.4f predicted two layers before, want from 0.4 to the %.4f of one layer before", i, two, one)
			}
		}
		uses := slices.Sorted(slices.Values(l.Uses))
		var all, top int64
		for j, n := range uses {
			all += n
			if j >= len(uses)*3/4 {
				top += n
			}
		}
		check("share of the most used quarter", i, float64(top)/float64(all), ref.Routing.ExpertShareTop25[i])
	}
	t.Logf("largest difference %.4f", worst)
}
