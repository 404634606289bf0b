package refmodel

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/fixtures"
)

// numbers reads one array of a reference as rows of its last axis.
func numbers(t *testing.T, r *fixtures.Numbers, name string) [][]float32 {
	data, shape := r.F32(name)
	n := shape[len(shape)-1]
	var out [][]float32
	for ; len(data) > 0; data = data[n:] {
		out = append(out, data[:n])
	}
	return out
}

func tokens(t *testing.T, r *fixtures.Numbers, name string) []int32 {
	data, _ := r.I32(name)
	return data
}

// worst collects the largest difference of each kind.
type worst map[string]float64

func (w worst) rows(what string, got [][]float64, want [][]float32) {
	d := 0.0
	if len(got) != len(want) {
		d = math.Inf(1)
	}
	for i := range min(len(got), len(want)) {
		d = max(d, maxDiff(want[i], got[i]))
	}
	w[what] = max(w[what], d)
}

func TestFixtures(t *testing.T) {
	for _, name := range fixtures.All() {
		t.Run(name, func(t *testing.T) {
			m, err := Open(fixtures.Packed(t, name, 0))
			if err != nil {
				t.Fatal(err)
			}
			r := fixtures.Reference(t, name)
			w := worst{}
			for _, p := range fixtures.Prompts(name) {
				checkPrompt(t, m, r, p, w)
			}
			t.Logf("largest differences: %v", w)
			logits, hidden := fixtures.Off(name)
			limits := map[string]float64{"logits": logits, "hidden": hidden, "final": hidden, "decode": logits, "inter": hidden,
				"state": 2e-6, "weights": 2e-5}
			for what, d := range w {
				if d > limits[what] {
					t.Errorf("%s: off by %.3g, want at most %.3g", what, d, limits[what])
				}
			}
		})
	}
}

// checkPrompt runs one prompt and its greedy continuation.
func checkPrompt(t *testing.T, m *Model, r *fixtures.Numbers, p string, w worst) {
	ids := tokens(t, r, p+".ids")
	s := m.NewState()
	trace := s.forward(ids)
	w.rows("logits", trace.Logits, numbers(t, r, p+".logits"))
	w.rows("hidden", slices.Concat(trace.Hidden...), numbers(t, r, p+".hidden"))
	w.rows("final", trace.FinalNorm, numbers(t, r, p+".final_norm"))
	checkChosen(t, s, r, p, "", 0, len(ids), w)
	checkBlocks(t, s, r, p, "", 0, len(ids))
	checkRoutes(t, trace, tokens(t, r, p+".router_idx"), numbers(t, r, p+".router_weight"), p, w)
	for i := range m.layers {
		checkInside(t, m, r, trace, p, i, w)
		checkState(t, r, &s.layers[i], fmt.Sprintf("%s.layer%d.", p, i), w)
	}

	want := tokens(t, r, p+".decode_ids")
	next, _ := Argmax(trace.Logits[len(ids)-1])
	more := newTrace(m.cfg)
	for i, id := range want {
		if next != id {
			t.Fatalf("%s: greedy token %d: got %d, want %d", p, i, next, id)
		}
		more.add(id, s.Step(id))
		next, _ = Argmax(more.Logits[i])
	}
	w.rows("decode", more.Logits, numbers(t, r, p+".decode_logits"))
	checkChosen(t, s, r, p, "decode_", len(ids), len(want), w)
	checkBlocks(t, s, r, p, "decode_", len(ids), len(want))
	checkRoutes(t, more, tokens(t, r, p+".decode_router_idx"), numbers(t, r, p+".decode_router_weight"), p+" decode", w)
}

// checkRoutes compares picks as sets, and the weight of each pick.
func checkRoutes(t *testing.T, trace *Trace, idx []int32, weight [][]float32, p string, w worst) {
	for layer, rows := range trace.Picks {
		for at, picks := range rows {
			k, row := len(picks), layer*len(rows)+at
			want := map[int]float64{}
			for i, e := range idx[row*k : (row+1)*k] {
				want[int(e)] = float64(weight[row][i])
			}
			for i, e := range picks {
				x, ok := want[e]
				if !ok {
					t.Fatalf("%s expert layer %d position %d: got picks %v, want %v (gap %.3g)", p, layer, at, picks, idx[row*k:(row+1)*k], trace.Gaps[layer][at])
				}
				w["weights"] = max(w["weights"], math.Abs(trace.Weights[layer][at][i]-x))
			}
		}
	}
}

// checkInside compares the intermediate results of a layer that a reference has.
func checkInside(t *testing.T, m *Model, r *fixtures.Numbers, trace *Trace, p string, layer int, w worst) {
	eps := float64(m.cfg.RMSNormEps)
	l := m.layers[layer]
	var inputs, posts [][]float64
	for at, x := range trace.Hidden[layer] {
		inputs = append(inputs, rmsNorm(x, l.inputNorm, eps))
		posts = append(posts, rmsNorm(add(x, trace.Mixer[layer][at]), l.postNorm, eps))
	}
	for part, got := range map[string][][]float64{
		"input_norm": inputs, "attn": trace.Mixer[layer], "post_norm": posts, "mlp": trace.FFN[layer],
	} {
		if name := fmt.Sprintf("%s.layer%d.%s", p, layer, part); r.Has(name) {
			w.rows("inter", got, numbers(t, r, name))
		}
	}
}

// checkState compares the state of a linear-attention layer after the prompt.
func checkState(t *testing.T, r *fixtures.Numbers, kept *layerState, prefix string, w worst) {
	if !r.Has(prefix + "recurrent_state") {
		return
	}
	var transposed [][]float64 // the reference keeps [head][key dim][value dim]
	for _, head := range kept.recurrent {
		for i := range head[0] {
			var row []float64
			for d := range head {
				row = append(row, head[d][i])
			}
			transposed = append(transposed, row)
		}
	}
	w.rows("state", transposed, numbers(t, r, prefix+"recurrent_state"))
	conv := numbers(t, r, prefix+"conv_state")
	taps := len(conv[0])
	for ch, want := range conv {
		got := make([]float64, taps)
		for i, row := range kept.recent {
			got[taps-len(kept.recent)+i] = row[ch]
		}
		w.rows("inter", [][]float64{got}, [][]float32{want})
	}
}
