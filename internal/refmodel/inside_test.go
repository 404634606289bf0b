package refmodel

import (
	"fmt"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/fixtures"
)

// What StepInside tells of layers is what other implementations tell of them, as far as references
// have it, and looking changes nothing. What only one form of latent attention has agrees with the
// other one: folded queries see the keys, sums of latents give the heads' outputs.
func TestInside(t *testing.T) {
	for _, name := range fixtures.All() {
		t.Run(name, func(t *testing.T) {
			m, err := Open(fixtures.Packed(t, name, 0))
			if err != nil {
				t.Fatal(err)
			}
			r := fixtures.Reference(t, name)
			s, plain := m.NewState(), m.NewState()
			var all []*Position
			for _, id := range tokens(t, r, "p9.ids") {
				p := s.StepInside(id)
				if !slices.Equal(p.Logits, plain.Step(id).Logits) {
					t.Fatal("looking inside changes the logits")
				}
				all = append(all, p)
			}
			w := worst{}
			for layer := range m.layers {
				insideReference(t, r, all, layer, w)
				if l := m.layers[layer].latent; l != nil {
					for _, p := range all {
						checkFolded(t, l, s, &s.layers[layer], p.Inside[layer])
					}
				}
			}
			if _, off := fixtures.Off(name); w["inside"] > off || w["state"] > 2e-6 {
				t.Errorf("off by %v, want at most %.3g, states 2e-6", w, off)
			}
			t.Logf("largest differences: %v", w)
		})
	}
}

// insideReference compares a layer with what a reference says of it.
func insideReference(t *testing.T, r *fixtures.Numbers, all []*Position, layer int, w worst) {
	prefix := fmt.Sprintf("p9.layer%d.", layer)
	for part, name := range map[string]string{"input_norm": "input_norm", "attn": "attn", "post_norm": "post_norm", "mlp": "sum"} {
		if !r.Has(prefix + part) {
			continue
		}
		var rows [][]float64
		for _, p := range all {
			rows = append(rows, p.Inside[layer][name])
		}
		w.rows("inside", rows, numbers(t, r, prefix+part))
	}
	if !r.Has(prefix + "recurrent_state") {
		return
	}
	// the reference keeps [head][key dim][value dim]
	state, want := all[len(all)-1].Inside[layer]["state"], numbers(t, r, prefix+"recurrent_state")
	_, shape := r.F32(prefix + "recurrent_state")
	keys, values := shape[len(shape)-2], shape[len(shape)-1]
	for i, row := range want {
		head, k := i/keys, i%keys
		var got []float64
		for v := range values {
			got = append(got, state[(head*values+v)*keys+k])
		}
		w.rows("state", [][]float64{got}, [][]float32{row})
	}
}

// checkFolded compares the two forms of latent attention at one position.
func checkFolded(t *testing.T, l *latentAttention, s *State, kept *layerState, in Inside) {
	dn, dr, dv, rank := l.cfg.QKNopeHeadDim, l.cfg.QKRopeHeadDim, l.cfg.VHeadDim, l.cfg.KVLoraRank
	for h := range l.cfg.NumAttentionHeads {
		q, folded := in["q"][h*(dn+dr):][:dn], in["q_folded"][h*rank:][:rank]
		for _, latent := range kept.latents {
			k, _ := l.unfoldHead(s, latent, h)
			if a, b := dot(q, k), dot(folded, latent); !(max(a-b, b-a) < 1e-10) {
				t.Fatalf("head %d: a query sees %v of a key, the folded one %v of its latent", h, a, b)
			}
		}
		_, v := l.unfoldHead(s, in["latents"][h*rank:][:rank], h)
		if d := maxDiff(v, in["heads"][h*dv:][:dv]); !(d < 1e-10) {
			t.Fatalf("head %d: the sum of latents gives an output that is off by %v", h, d)
		}
	}
}
