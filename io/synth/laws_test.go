package synth_test

import (
	"maps"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/gpu/host"
	"github.com/moeflux/moeflux-actor/internal/refmodel"
	"github.com/moeflux/moeflux-actor/internal/testenv"
	"github.com/moeflux/moeflux-actor/io/synth"
	"github.com/moeflux/moeflux-actor/model"
)

func write(t testing.TB, o synth.Options) (string, *synth.Model) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "model")
	if err := synth.Write(t.Context(), dir, o, nil); err != nil {
		t.Fatal(err)
	}
	m, err := synth.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir, m
}

func families() []string { return slices.Sorted(maps.Keys(tinyShapes)) }

// picksOf returns a reference's picks as Compare takes them.
func picksOf(p *refmodel.Position) [][]int32 {
	var out [][]int32
	for _, r := range p.Routes {
		var layer []int32
		for _, e := range r.Picks {
			layer = append(layer, int32(e))
		}
		out = append(out, layer)
	}
	return out
}

// A forward pass in float64, written from the formulas, obeys every law.
func TestReferenceObeys(t *testing.T) {
	for _, family := range families() {
		for _, route := range synth.Routes() {
			if !testenv.Share(t, family+"/"+route, 8) {
				continue
			}
			t.Run(family+"/"+route, func(t *testing.T) {
				o := tiny(t, family)
				o.Route = synth.Route(route)
				dir, m := write(t, o)
				ref, err := refmodel.Open(dir)
				if err != nil {
					t.Fatal(err)
				}
				s, alike := ref.NewState(), 0
				for _, token := range m.Chain(30) {
					p := s.Step(token)
					next, margin := refmodel.Argmax(p.Logits)
					// 64 bits agree with the right token's code and some 44 with the next best of
					// 512; rounding moves a logit by far less than 1.
					if margin < 10 {
						t.Errorf("after token %d the largest logit leads by %g only", token, margin)
					}
					diffs, unsure := m.Compare(token, next, picksOf(p))
					for _, d := range diffs {
						t.Error(d)
					}
					alike += unsure
				}
				if alike > 2 {
					t.Errorf("%d decisions of 30 tokens are too close, want hardly any", alike)
				}
			})
		}
	}
}

// Tokens outside the chain, and tokens in another order, are routed as predicted too: what came
// before does not matter.
func TestRoutingForgets(t *testing.T) {
	for _, family := range families() {
		dir, m := write(t, tiny(t, family))
		ref, err := refmodel.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		s := ref.NewState()
		for _, token := range []int32{511, 3, 507, 0, 200, 100, 200, 511} {
			p := s.Step(token)
			next, _ := refmodel.Argmax(p.Logits)
			diffs, _ := m.Compare(token, next, picksOf(p))
			for _, d := range diffs {
				t.Errorf("%s: %v", family, d)
			}
		}
	}
}

// Over as many layers as the deepest published models have, hidden states keep about their initial
// magnitude.
func TestDeepModelStaysFinite(t *testing.T) {
	for family, layers := range map[string]int{"qwen3_moe": 94, "qwen3_5_moe": 60, "deepseek_v3": 61} {
		t.Run(family, func(t *testing.T) {
			o := tiny(t, family)
			o.Layers, o.Experts, o.Vocab = layers, 8, 128
			dir, m := write(t, o)
			ref, err := refmodel.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			s, most := ref.NewState(), 0.0
			for _, token := range m.Chain(3) {
				p := s.Step(token)
				for _, hidden := range p.Hidden {
					sum := 0.0
					for _, x := range hidden[256:] {
						sum += x * x
					}
					most = max(most, math.Sqrt(sum/float64(len(hidden)-256)))
				}
				next, _ := refmodel.Argmax(p.Logits)
				diffs, _ := m.Compare(token, next, picksOf(p))
				for _, d := range diffs {
					t.Error(d)
				}
			}
			if !(most > 0.3 && most < 4) {
				t.Errorf("the channels off the wire reach a root mean square of %g, want about 1", most)
			}
			t.Logf("%d layers: root mean square at most %.2f", layers, most)
		})
	}
}

// The engine obeys the laws: for the chain read at once, then token by token, with experts mapped
// or read into a few slots.
func TestEngineObeys(t *testing.T) {
	dev, err := host.New(host.Config{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	for _, family := range families() {
		dir, m := write(t, tiny(t, family))
		for _, how := range []actors.ExpertIO{actors.ExpertIOMmap, actors.ExpertIOBuffered} {
			t.Run(family+"/"+string(how), func(t *testing.T) {
				e, err := actors.Open(t.Context(), actors.Config{Model: dir, Device: dev, ExpertIO: how, ExpertMemory: 4 << 20, Context: 256})
				if err != nil {
					t.Fatal(err)
				}
				defer e.Close(t.Context())
				seq, err := e.NewSequence(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer seq.Close()
				tokens := m.Chain(100)
				for at, n := 0, 20; at < len(tokens); at, n = at+n, 1 {
					obey(t, e, seq, m, tokens[at:at+n])
				}
			})
		}
	}
}

// The engine computes the same bits with both layouts of a model.
func TestEngineLayouts(t *testing.T) {
	dev, err := host.New(host.Config{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	for _, family := range families() {
		var logits [2][]float32
		for i, rowOrder := range []bool{false, true} {
			o := tiny(t, family)
			o.RowOrder = rowOrder
			dir, m := write(t, o)
			e, err := actors.Open(t.Context(), actors.Config{Model: dir, Device: dev, Context: 64})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close(t.Context())
			seq, err := e.NewSequence(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer seq.Close()
			tokens := m.Chain(24)
			for at, n := 0, 20; at < len(tokens); at, n = at+n, 1 {
				out, err := seq.EvalChunk(t.Context(), actors.Chunk{Tokens: tokens[at : at+n], Logits: actors.AllLogits})
				if err != nil {
					t.Fatal(err)
				}
				logits[i] = append(logits[i], out.Logits...)
			}
		}
		if !slices.Equal(logits[0], logits[1]) {
			t.Errorf("%s: the logits of both layouts differ", family)
		}
	}
}

// obey feeds tokens of the chain as one chunk.
func obey(t *testing.T, e *actors.Engine, seq *actors.Sequence, m *synth.Model, tokens []int32) {
	t.Helper()
	out, err := seq.EvalChunk(t.Context(), actors.Chunk{Tokens: tokens, Logits: actors.AllLogits, Routing: true})
	if err != nil {
		t.Fatal(err)
	}
	k, vocab := e.Info().TopK, e.Model().VocabSize
	for i, token := range tokens {
		var picks [][]int32
		for layer := range slices.Chunk(out.Picks, len(tokens)*k) {
			picks = append(picks, layer[i*k:(i+1)*k])
		}
		logits := out.Logits[i*vocab : (i+1)*vocab]
		diffs, _ := m.Compare(token, int32(slices.Index(logits, slices.Max(logits))), picks)
		for _, d := range diffs {
			t.Error(d)
		}
	}
}

// Every ordinary token is in the chain once, in runs of one topic, and Next agrees.
func TestChain(t *testing.T) {
	o := tiny(t, "qwen3_moe")
	m, err := synth.New(o)
	if err != nil {
		t.Fatal(err)
	}
	const special = 3 // 3, 507, 511
	chain := m.Chain(512 - special + 1)
	if chain[0] != chain[512-special] {
		t.Errorf("the chain goes on with %d after its last token, want its first, %d", chain[512-special], chain[0])
	}
	chain = chain[:512-special]
	if got := slices.Compact(slices.Sorted(slices.Values(chain))); len(got) != len(chain) {
		t.Errorf("%d different tokens in a chain of %d", len(got), len(chain))
	}
	turns := 0
	for i, token := range chain {
		next := chain[(i+1)%len(chain)]
		if got, ok := m.Next(token); !ok || got != next {
			t.Errorf("Next(%d) = %d, %v, want %d", token, got, ok, next)
		}
		if token%8 != next%8 {
			turns++
		}
	}
	// 8 topics of 62 to 64 tokens, in runs of 16: 32 runs, a few of which follow one of the same
	// topic.
	if turns < 20 || turns > 32 {
		t.Errorf("the topic changes %d times, want a few less than 32", turns)
	}
	for _, token := range []int32{3, 507, 511, -1, 512} {
		if next, ok := m.Next(token); ok {
			t.Errorf("Next(%d) = %d, want none: the token is not in the chain", token, next)
		}
	}
	if m.Chain(0) == nil || len(m.Chain(-1)) != 0 {
		t.Errorf("Chain(0) = %v, Chain(-1) = %v, want empty", m.Chain(0), m.Chain(-1))
	}
	o.Seed++
	other, err := synth.New(o)
	if err != nil {
		t.Fatal(err)
	}
	if slices.Equal(other.Chain(50), chain[:50]) {
		t.Error("another seed gives the same chain")
	}
}

// With published shapes and the mild law, consecutive tokens share as many experts as in published
// models; with the uniform law, little more than by chance.
func TestRoutingStatistics(t *testing.T) {
	simulate := func(name string, route synth.Route) *synth.Simulation {
		shape, err := synth.Named(name)
		if err != nil {
			t.Fatal(err)
		}
		m, err := synth.New(synth.Options{Shape: shape, Layers: 12, Seed: 1, Route: route})
		if err != nil {
			t.Fatal(err)
		}
		s, err := m.Simulate(t.Context(), 512, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s %s: overlap %.3f, 8 before %.3f, busiest quarter %.3f, LRU of a quarter %.3f, close %d",
			name, route, s.Overlap, s.Overlap8, s.Busiest, s.LRU[1].Hits, s.Close)
		return s
	}
	for _, name := range synth.Names() {
		s := simulate(name, synth.Mild)
		// With a dozen layers, 512 tokens and eight topics, figures vary by about 1 % of all uses.
		if s.Overlap < 0.31 || s.Overlap > 0.37 {
			t.Errorf("%s: consecutive tokens share %.1f%% of their experts, want 32 to 36", name, 100*s.Overlap)
		}
		if hits := s.LRU[1].Hits; hits < 0.79 || hits > 0.92 {
			t.Errorf("%s: a cache of a quarter of the experts hits %.1f%%, want 80 to 90", name, 100*hits)
		}
	}
	if s := simulate("qwen3.5-35b-a3b", synth.Uniform); s.Overlap < 8.0/256 || s.Overlap > 0.05 || s.Distinct < 0.99 {
		t.Errorf("uniform: overlap %.3f, distinct %.3f, want a little more than 8 in 256, and all experts used", s.Overlap, s.Distinct)
	}
	skew, strong := simulate("qwen3.5-35b-a3b", synth.Skew), simulate("qwen3.5-35b-a3b", synth.Strong)
	if skew.Busiest < 0.7 || math.Abs(skew.Overlap-skew.Overlap8) > 0.01 {
		t.Errorf("skew: busiest quarter %.3f, overlap %.3f and %.3f, want popular experts and no memory", skew.Busiest, skew.Overlap, skew.Overlap8)
	}
	if strong.Overlap < 0.5 {
		t.Errorf("strong: overlap %.3f, want more than half", strong.Overlap)
	}
}

// Picks are K different experts of the layer, and the layers are those with experts.
func TestRoutingForm(t *testing.T) {
	for _, family := range families() {
		m, err := synth.New(tiny(t, family))
		if err != nil {
			t.Fatal(err)
		}
		c := m.Config()
		for token := range int32(64) {
			r := m.Routing(token)
			if len(r) != len(c.MoELayers()) {
				t.Fatalf("%s: routing of %d layers, want %d", family, len(r), len(c.MoELayers()))
			}
			for i, l := range r {
				picks := slices.Compact(slices.Sorted(slices.Values(l.Experts)))
				if l.Layer != c.MoELayers()[i] || len(picks) != c.NumExpertsPerTok || picks[0] < 0 || int(picks[len(picks)-1]) >= c.NumExperts {
					t.Errorf("%s token %d: layer %d picks %v, want %d of %d experts of layer %d", family, token, l.Layer, l.Experts, c.NumExpertsPerTok, c.NumExperts, c.MoELayers()[i])
				}
				if l.Close && c.Scoring == model.SoftmaxScores {
					t.Errorf("%s token %d layer %d is too close, want softmax scores never to be", family, token, l.Layer)
				}
			}
		}
	}
}

func TestRoutingPanics(t *testing.T) {
	m, err := synth.New(tiny(t, "qwen3_moe"))
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range []int32{-1, 512} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("Routing(%d) of 512 tokens did not panic", token)
				}
			}()
			m.Routing(token)
		}()
	}
}
