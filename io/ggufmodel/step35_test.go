package ggufmodel_test

import (
	"math"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/io/ggufmodel"
	"github.com/moeflux/moeflux-actor/model"
)

// divisors are what Llama 3's scaling divides the frequencies of a whole head by, as converters
// compute them.
func divisors(l model.Llama3, base float64, pairs int) []float32 {
	x := make([]float32, pairs)
	for i := range x {
		wave := 2 * math.Pi * math.Pow(base, float64(i)/float64(pairs))
		context := float64(l.OriginalMaxPositionEmbeddings)
		switch smooth := (context/wave - l.LowFreqFactor) / (l.HighFreqFactor - l.LowFreqFactor); {
		case wave < context/l.HighFreqFactor:
			x[i] = 1
		case wave > context/l.LowFreqFactor:
			x[i] = float32(l.Factor)
		default:
			x[i] = float32(1 / ((1-smooth)/l.Factor + smooth))
		}
	}
	return x
}

// The published scaling, and others, follow from the factors that files have.
func TestFitLlama3(t *testing.T) {
	for _, c := range []struct {
		l     model.Llama3
		base  float64
		pairs int
	}{
		{model.Llama3{Factor: 2, OriginalMaxPositionEmbeddings: 131072, LowFreqFactor: 1, HighFreqFactor: 32}, 5e6, 64}, // Step-3.5-Flash
		{model.Llama3{Factor: 8, OriginalMaxPositionEmbeddings: 8192, LowFreqFactor: 1, HighFreqFactor: 4}, 5e5, 64},
		{model.Llama3{Factor: 2.5, OriginalMaxPositionEmbeddings: 64, LowFreqFactor: 1, HighFreqFactor: 32}, 5e6, 16},
	} {
		if got := ggufmodel.FitLlama3(divisors(c.l, c.base, c.pairs), c.base); got == nil || *got != c.l {
			t.Errorf("got %+v, want %+v", got, c.l)
		}
	}
	// Only the ratios of context and bounds count.
	doubled := model.Llama3{Factor: 2, OriginalMaxPositionEmbeddings: 16384, LowFreqFactor: 2, HighFreqFactor: 8}
	if got := ggufmodel.FitLlama3(divisors(doubled, 5e5, 64), 5e5); got == nil || got.OriginalMaxPositionEmbeddings != 8192 || got.HighFreqFactor != 4 {
		t.Errorf("got %+v", got)
	}
	l := model.Llama3{Factor: 2, OriginalMaxPositionEmbeddings: 131072, LowFreqFactor: 1, HighFreqFactor: 32}
	for name, spoil := range map[string]func(x []float32){
		"one that is off": func(x []float32) { x[30] *= 1.001 },
		"all alike":       func(x []float32) { copy(x, make([]float32, len(x))) },
		"falling":         func(x []float32) { x[0], x[63] = 2, 1 },
		"not a number":    func(x []float32) { x[20] = float32(math.NaN()) },
	} {
		x := divisors(l, 5e6, 64)
		spoil(x)
		if got := ggufmodel.FitLlama3(x, 5e6); got != nil {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

// What a file of Step-3.5 must say, and what it must not.
func TestStep35Refuses(t *testing.T) {
	u32 := "\x04\x00\x00\x00"
	for _, c := range []struct{ old, now, want string }{
		{"attention.sliding_window_pattern", "attention.sliding_window_pattarn", "each must be a list"},
		{"attention.key_length" + u32 + "\x20", "attention.key_length" + u32 + "\x40", "value_length\": is 32, but heads of keys have 64"},
		{"blk.1.attn_gate.weight", "blk.1.attn_gite.weight", "does not know the tensor"},
		{"rope_freqs.weight", "rope_fraqs.weight", "does not know the tensor"},
		{"swiglu_clamp_exp", "swiglu_clamp_exq", ""}, // a file without bounds has none
		{"expert_weights_norm\x07\x00\x00\x00\x01", "expert_weights_norm\x07\x00\x00\x00\x00", "norm_expert_weight"},
		{"attention.head_count\x09\x00\x00\x00\x04\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\x04", "attention.head_count\x09\x00\x00\x00\x04\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\x05", "and another of its kind"},
	} {
		m, err := ggufmodel.Open(edited(t, fixtures.Step35BF16, c.old, c.now))
		if err == nil {
			m.Close()
		}
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %q", c.now, err, c.want)
		}
	}
}
