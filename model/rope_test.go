package model_test

import (
	"math"
	"testing"

	"github.com/moeflux/moeflux-actor/model"
)

// The frequencies of published models, computed in float64 by others and printed with five or six
// digits.
// The scaling of Llama 3, of 64 channels with base 5e6: kept, blended, halved.
func TestLlama3Golden(t *testing.T) {
	c := &model.Config{RotaryDim: 64, RopeTheta: 5e6, Llama3: &model.Llama3{Factor: 2, OriginalMaxPositionEmbeddings: 131072, LowFreqFactor: 1, HighFreqFactor: 32}}
	got := c.RopeFrequencies()
	for i, want := range map[int]float64{10: 0.008064397, 15: 5.268819e-4, 18: 9.230576e-5, 20: 3.289137e-5, 31: 1.619358e-7} {
		if math.Abs(got[i]-want) > 1e-6*want {
			t.Errorf("frequency %d is %v, want %v", i, got[i], want)
		}
	}
	if m := c.RopeMultiplier(); m != 1 {
		t.Errorf("multiplier %v", m)
	}
}

func TestRopeFrequenciesGolden(t *testing.T) {
	for _, c := range []struct {
		name       string
		rotary     int
		theta      float64
		yarn       *model.YaRN
		want       map[int]float64
		multiplier float64
	}{
		{"deepseek_v3", 64, 1e4, &model.YaRN{Factor: 40, OriginalMaxPositionEmbeddings: 4096, BetaFast: 32, BetaSlow: 1, MScale: 1, MScaleAllDim: 1, Truncate: true},
			map[int]float64{0: 1, 10: 0.0562341, 11: 0.0390069, 16: 0.0055, 22: 1.77828e-4, 23: 3.3338e-5, 31: 3.3338e-6}, 1},
		{"kimi_k2", 64, 5e4, &model.YaRN{Factor: 32, OriginalMaxPositionEmbeddings: 4096, BetaFast: 1, BetaSlow: 1, MScale: 1, MScaleAllDim: 1, Truncate: true},
			map[int]float64{0: 1, 10: 0.0340073, 11: 0.024251, 16: 4.47214e-3, 22: 1.83784e-5, 23: 1.31059e-5, 31: 8.76441e-7}, 1},
		{"not rounded to whole channels", 64, 1.5e5, &model.YaRN{Factor: 32, OriginalMaxPositionEmbeddings: 4096, BetaFast: 32, BetaSlow: 1},
			map[int]float64{0: 1, 10: 0.019335, 11: 0.011592, 16: 4.56484e-4, 22: 8.6355e-6, 23: 5.95024e-6, 31: 3.02351e-7}, 1.3465736},
		{"qwen, plain", 64, 1e7, nil, map[int]float64{0: 1, 1: 0.60429639, 16: 3.16227766e-4, 31: 1.65481710e-7}, 1},
	} {
		cfg := &model.Config{RotaryDim: c.rotary, RopeTheta: c.theta, YaRN: c.yarn}
		got := cfg.RopeFrequencies()
		if len(got) != c.rotary/2 {
			t.Errorf("%s: %d frequencies, want %d", c.name, len(got), c.rotary/2)
			continue
		}
		for i, want := range c.want {
			if math.Abs(got[i]-want) > 1e-5*want { // half a unit of the fifth digit
				t.Errorf("%s: frequency %d is %v, want %v", c.name, i, got[i], want)
			}
		}
		if m := cfg.RopeMultiplier(); math.Abs(m-c.multiplier) > 1e-7 {
			t.Errorf("%s: multiplier %v, want %v", c.name, m, c.multiplier)
		}
	}
}

// The two mscale keys act in two places, which are not to be merged.
func TestRopeScales(t *testing.T) {
	latent := func(y *model.YaRN) *model.Config {
		return &model.Config{QKNopeHeadDim: 128, QKRopeHeadDim: 64, HeadDim: 192, YaRN: y, Layers: []model.Layer{{Mixer: model.LatentAttention}}}
	}
	full := func(y *model.YaRN) *model.Config {
		return &model.Config{HeadDim: 256, YaRN: y, Layers: []model.Layer{{Mixer: model.FullAttention}}}
	}
	for _, c := range []struct {
		name              string
		cfg               *model.Config
		scale, multiplier float64
	}{
		{"deepseek_v3", latent(&model.YaRN{Factor: 40, MScale: 1, MScaleAllDim: 1}), 0.13523378, 1},
		{"kimi_k2", latent(&model.YaRN{Factor: 32, MScale: 1, MScaleAllDim: 1}), 0.1308608, 1},
		{"no mscale_all_dim", latent(&model.YaRN{Factor: 40, MScale: 1}), 0.07216878, 1.3688879},
		{"half an mscale", latent(&model.YaRN{Factor: 40, MScale: 0.707, MScaleAllDim: 1}), 0.13523378, 0.9210424},
		{"only mscale_all_dim", latent(&model.YaRN{Factor: 40, MScaleAllDim: 1}), 0.13523378, 1},
		{"no yarn", latent(nil), 0.07216878, 1},
		{"a context not stretched", latent(&model.YaRN{Factor: 1, MScale: 1, MScaleAllDim: 1}), 0.07216878, 1},
		{"full attention", full(&model.YaRN{Factor: 32}), 0.0625, 1.3465736},
		{"full attention, factor given", full(&model.YaRN{Factor: 32, MScaleAllDim: 1, AttentionFactor: 1.25}), 0.0625, 1.25},
	} {
		// 1e-6 of the value: as many digits as are printed above.
		if got := c.cfg.AttentionScale(); math.Abs(got-c.scale) > 1e-6*c.scale {
			t.Errorf("%s: scale %v, want %v", c.name, got, c.scale)
		}
		if got := c.cfg.RopeMultiplier(); math.Abs(got-c.multiplier) > 1e-6*c.multiplier {
			t.Errorf("%s: multiplier %v, want %v", c.name, got, c.multiplier)
		}
	}
}

// The factors of Mistral Small 4, computed elsewhere.
func TestQueryGrowth(t *testing.T) {
	g := model.QueryGrowth{Beta: 0.1, Every: 8192}
	for pos, want := range map[int]float64{0: 1, 8191: 1, 8192: 1.0693147, 16384: 1.1098612, 100000: 1.2564949} {
		if got := g.Factor(pos); math.Abs(got-want) > 5e-8 {
			t.Errorf("position %d: %v, want %v", pos, got, want)
		}
	}
}
