package router_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sort"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/numcmp"
	"github.com/moeflux/moeflux-actor/io/safetensors"
	"github.com/moeflux/moeflux-actor/model/route"
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/router"
)

// planOf returns the plan for what is chosen by scores of [rows, experts].
func planOf(t *testing.T, cfg router.Config, scores []float32) *stages.RoutePlan {
	t.Helper()
	var out stages.Outbox
	b := &stages.Batch{Rows: make([]stages.Row, len(scores)/cfg.Experts)}
	b.Segments = []stages.Segment{{Seq: 1, Rows: len(b.Rows)}}
	n := len(b.Rows) * cfg.TopK
	m := &stages.PicksReady{Step: stages.Step{ID: 1, Batch: b}, Picks: make([]int32, n), Weights: make([]float32, n)}
	var c route.Chooser
	for r := range b.Rows {
		c.Choose(&cfg.Rule.Rule, nil, scores[r*cfg.Experts:][:cfg.Experts], m.Picks[r*cfg.TopK:][:cfg.TopK], m.Weights[r*cfg.TopK:][:cfg.TopK])
	}
	if err := router.New(cfg).Step(m, &out); err != nil {
		t.Fatal(err)
	}
	if len(out.Sends) != 1 {
		t.Fatalf("%d messages, want a plan alone", len(out.Sends))
	}
	routed, ok := out.Sends[0].Msg.(*stages.LayerRouted)
	if !ok {
		t.Fatalf("%T: %+v, want a LayerRouted", out.Sends[0].Msg, out.Sends[0].Msg)
	}
	return routed.Plan
}

// define is the definition of routing: a softmax over all experts in float64, the k largest, ties
// to the lower expert, divided by their sum if norm.
func define(scores []float32, k int, norm bool) (picks []int32, weights []float64) {
	top := slices.Max(scores)
	sum := 0.0
	for _, v := range scores {
		sum += math.Exp(float64(v) - float64(top))
	}
	all := make([]int32, len(scores))
	for e := range all {
		all[e] = int32(e)
	}
	sort.SliceStable(all, func(i, j int) bool { return scores[all[i]] > scores[all[j]] })
	kept := 0.0
	for _, e := range all[:k] {
		w := math.Exp(float64(scores[e])-float64(top)) / sum
		picks, weights = append(picks, e), append(weights, w)
		kept += w
	}
	for i := range weights {
		if norm {
			weights[i] /= kept
		}
	}
	return picks, weights
}

// TestDefinition compares plans for random scores with the definition. Some scores are drawn from
// few values, so that ties are common. The router subtracts in float32, which for differences below
// 64 is off by 2^-19 at most, and its weights are off by that share, and by their own rounding.
func TestDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for i := range 2000 {
		cfg := router.Config{Layers: 1, Experts: 1 + r.IntN(40), Rule: router.Rule{Rule: route.Rule{NormTopK: r.IntN(2) == 0}}}
		cfg.TopK = 1 + r.IntN(min(cfg.Experts, 10))
		rows := 1 + r.IntN(4)
		scores := make([]float32, rows*cfg.Experts)
		for j := range scores {
			scores[j] = float32(r.NormFloat64() * 5)
			if i%2 == 0 {
				scores[j] = float32(r.IntN(4))
			}
		}
		p := planOf(t, cfg, slices.Clone(scores))
		for row := range rows {
			s := scores[row*cfg.Experts:][:cfg.Experts]
			picks, weights := define(s, cfg.TopK, cfg.Rule.NormTopK)
			got := p.Picks[row*cfg.TopK:][:cfg.TopK]
			if !slices.Equal(got, picks) {
				t.Fatalf("draw %d, %+v: picks %v, want %v of scores %v", i, cfg, got, picks, s)
			}
			if err := numcmp.Near(p.Weights[row*cfg.TopK:][:cfg.TopK], weights, 1e-30, math.Ldexp(1, -19)+math.Ldexp(1, -23)); err != nil {
				t.Fatalf("draw %d, %+v: weights: %v, of scores %v", i, cfg, err, s)
			}
		}
	}
}

// checkUses reports what is wrong with a plan's uses: every (row, pick) pair is in exactly one,
// that of its expert; experts ascend, and so do the pairs of a use.
func checkUses(p *stages.RoutePlan) error {
	seen := make([]bool, len(p.Picks))
	before := int32(-1)
	for _, u := range p.Uses {
		if u.Expert <= before {
			return fmt.Errorf("expert %d comes after %d", u.Expert, before)
		}
		before = u.Expert
		last := int32(-1)
		for _, pair := range u.Pairs {
			if pair <= last || int(pair) >= len(seen) || seen[pair] || p.Picks[pair] != u.Expert {
				return fmt.Errorf("pair %d of expert %d is out of place", pair, u.Expert)
			}
			last, seen[pair] = pair, true
		}
		if last < 0 {
			return fmt.Errorf("nobody wants expert %d", u.Expert)
		}
	}
	if i := slices.Index(seen, false); i >= 0 {
		return fmt.Errorf("pair %d is in no use", i)
	}
	return nil
}

// TestUses checks the property for random plans of all sizes.
func TestUses(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for i := range 1000 {
		cfg := router.Config{Layers: 1, Experts: 1 + r.IntN(40)}
		cfg.TopK = 1 + r.IntN(min(cfg.Experts, 10))
		scores := make([]float32, (1+r.IntN(20))*cfg.Experts)
		for j := range scores {
			scores[j] = r.Float32()
		}
		p := planOf(t, cfg, scores)
		if err := checkUses(p); err != nil {
			t.Fatalf("draw %d, %+v: %v; picks %v, uses %v", i, cfg, err, p.Picks, p.Uses)
		}
	}
}

// TestCheckUses gives the check plans that are wrong: it must see them.
func TestCheckUses(t *testing.T) {
	use := func(e int32, pairs ...int32) stages.ExpertUse { return stages.ExpertUse{Expert: e, Pairs: pairs} }
	for _, tc := range []struct {
		name string
		uses []stages.ExpertUse
	}{
		{"missing pair", []stages.ExpertUse{use(1, 0), use(2, 1), use(3, 3)}},
		{"pair twice", []stages.ExpertUse{use(1, 0, 2), use(2, 1, 1), use(3, 3)}},
		{"another's pair", []stages.ExpertUse{use(1, 0), use(2, 1, 2), use(3, 3)}},
		{"descending pairs", []stages.ExpertUse{use(1, 2, 0), use(2, 1), use(3, 3)}},
		{"descending experts", []stages.ExpertUse{use(2, 1), use(1, 0, 2), use(3, 3)}},
		{"nobody's expert", []stages.ExpertUse{use(0), use(1, 0, 2), use(2, 1), use(3, 3)}},
	} {
		if err := checkUses(&stages.RoutePlan{TopK: 2, Picks: []int32{1, 2, 1, 3}, Uses: tc.uses}); err == nil {
			t.Errorf("%s: not seen", tc.name)
		}
	}
}

// TestReference routes the router inputs that the reference implementation recorded, and wants its
// picks exactly and its weights within the fixtures' tolerance for float32 routing.
func TestReference(t *testing.T) {
	const experts, hidden, k = 8, 64, 2
	ref := fixtures.Reference(t, fixtures.Qwen35MoEBF16)
	f, err := safetensors.Open(filepath.Join(fixtures.Dir(t, fixtures.Qwen35MoEBF16), "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows := 0
	for layer := range 8 {
		for _, prompt := range []string{"p1", "p9"} {
			name := fmt.Sprintf("%s.layer%d.post_norm", prompt, layer)
			if !ref.Has(name) {
				continue
			}
			x, shape := ref.F32(name)
			if shape[1] != hidden {
				t.Fatalf("%s is %v", name, shape)
			}
			gate, ok := f.Tensor(fmt.Sprintf("model.language_model.layers.%d.mlp.gate.weight", layer))
			if !ok {
				t.Fatalf("layer %d has no gate", layer)
			}
			w := make([]float32, experts*hidden)
			if err := gate.Floats(w, 0); err != nil {
				t.Fatal(err)
			}
			scores := make([]float32, shape[0]*experts)
			for i := range scores {
				sum := 0.0
				for j := range hidden {
					sum += float64(x[i/experts*hidden+j]) * float64(w[i%experts*hidden+j])
				}
				scores[i] = float32(sum)
			}
			p := planOf(t, router.Config{Layers: 1, Experts: experts, TopK: k, Rule: router.Rule{Rule: route.Rule{NormTopK: true}}}, scores)
			idx, _ := ref.I32(prompt + ".router_idx")
			weights, _ := ref.F32(prompt + ".router_weight")
			at := layer * shape[0] * k
			if want := idx[at : at+shape[0]*k]; !slices.Equal(p.Picks, want) {
				t.Errorf("%s, layer %d: picks %v, want %v", prompt, layer, p.Picks, want)
			}
			if err := numcmp.Near(p.Weights, weights[at:at+shape[0]*k], 2e-5, 0); err != nil {
				t.Errorf("%s, layer %d: weights: %v", prompt, layer, err)
			}
			rows += shape[0]
		}
	}
	if rows == 0 {
		t.Fatal("the fixtures have no router inputs")
	}
	t.Logf("%d rows", rows)
}
