package model

import (
	"slices"
	"strconv"
	"strings"
)

// Step35 is Step-3.5-Flash.
const Step35 Arch = "step3p5"

var step35 = family{
	arch: Step35, gguf: "step35", toolCalls: "coder",
	keys: sizeKeys{experts: "moe_num_experts", width: "moe_intermediate_size", shared: "share_expert_dim",
		kvHeads: "num_attention_groups", picks: "moe_top_k"},
	defaults: defaults{rotaryFactor: 1, normTopK: true},
	checkpoint: Checkpoint{
		Rename: []string{
			// as mlx-lm stores them
			".mlp.gate.gate.", ".mlp.gate.", ".mlp.gate.router_bias", ".mlp.gate.e_score_correction_bias", ".mlp.share_expert.", ".mlp.shared_experts.",
			// as they were trained
			".moe.gate.", ".mlp.gate.", ".moe.router_bias", ".mlp.gate.e_score_correction_bias", ".share_expert.", ".mlp.shared_experts.",
			".moe.gate_proj.", ".mlp.switch_mlp.gate_proj.", ".moe.up_proj.", ".mlp.switch_mlp.up_proj.", ".moe.down_proj.", ".mlp.switch_mlp.down_proj.",
		},
		FloatRouter: true, CentredByMean: true,
	},
	parse: parseStep35,
}

// parseStep35 reads step3p5: softmax attention with normalised heads and a gate for each, in most
// layers with a window, another number of heads and another rotary embedding; a sigmoid router with
// a bias, an expert shared by all tokens, dense layers, and bounds after the activation in some
// layers. All norms are of 1+w. Lists by layer go on with those of draft layers.
func parseStep35(r *reader, f *family, c *Config) {
	c.NumAttentionHeads = r.int("num_attention_heads", 1, maxHeads)
	c.NumKeyValueHeads = r.int(f.keys.kvHeads, 1, maxHeads)
	c.HeadDim = r.int("head_dim", 1, maxHeadDim)
	r.divides("num_attention_heads", c.NumAttentionHeads, f.keys.kvHeads, c.NumKeyValueHeads)
	r.require("attention_bias", false)
	r.require("sink", false)
	r.require("zero_centered", true)
	c.HeadGate = r.bool("use_head_wise_attn_gate", false)
	if r.bool("use_qk_norm", true) {
		c.QKNorm = QKNormPerHead
	}
	parseExperts(r, f, c)
	r.oneOf("moe_router_activation", "sigmoid")
	r.require("norm_expert_weight", true)
	c.Scoring, c.CorrectionBias = SigmoidScores, r.bool("use_moe_router_bias", true)
	c.RoutedScalingFactor = float32(r.floatOr("moe_router_scaling_factor", 1e-6, 1e6, 1))
	c.SharedExpert, c.SharedExpertIntermediateSize = SharedExpertUngated, r.int(f.keys.shared, 1, maxWidth)
	mixers := stepMixers(r, c)
	c.slide(r, mixers)
	if c.Sliding != nil {
		parseStepWindow(r, f, c)
	}
	parseStepRope(r, c, mixers)
	r.compose(f, c, mixers, stepExperts(r))
	routed, others := stepFloats(r, c, "swiglu_limits", true), stepFloats(r, c, "swiglu_limits_shared", true)
	for i := range c.Layers {
		c.Layers[i].Clamp.Limit, c.Layers[i].MLPClamp.Limit = routed[i], others[i]
	}
}

// stepMixers reads layer_types.
func stepMixers(r *reader, c *Config) []Mixer {
	mixers := uniform(c, FullAttention)
	raw, _ := r.get("layer_types")
	names, _ := r.strings("layer_types", raw)
	if len(names) < len(mixers) {
		r.fail("layer_types", "%d entries for num_hidden_layers %d", len(names), len(mixers))
		return mixers
	}
	for i := range mixers {
		switch names[i] {
		case FullAttention.String():
		case slidingAttention:
			mixers[i] = WindowAttention
		default:
			r.fail("layer_types", "layer %d is %q; known are %s and %s", i, names[i], slidingAttention, FullAttention)
			return mixers
		}
	}
	return mixers
}

// parseStepWindow reads the heads of layers with a window.
func parseStepWindow(r *reader, f *family, c *Config) {
	o := r.object("attention_other_setting")
	if o == nil {
		return
	}
	o.oneOf("attention_type", slidingAttention)
	s := c.Sliding
	s.NumAttentionHeads = o.intOr("num_attention_heads", 1, maxHeads, c.NumAttentionHeads)
	s.NumKeyValueHeads = o.intOr(f.keys.kvHeads, 1, maxHeads, c.NumKeyValueHeads)
	o.divides("num_attention_heads", s.NumAttentionHeads, f.keys.kvHeads, s.NumKeyValueHeads)
	if n := o.intOr("head_dim", 1, maxHeadDim, c.HeadDim); n != c.HeadDim {
		o.fail("head_dim", "%d, but heads of full attention have %d", n, c.HeadDim)
	}
}

// parseStepRope reads base and part of the rotary embedding, which layers of a kind have in common,
// and the scaling of those without a window.
func parseStepRope(r *reader, c *Config, mixers []Mixer) {
	bases, parts := stepFloats(r, c, "rope_theta", false), stepFloats(r, c, "partial_rotary_factors", false)
	seen := map[Mixer]int{}
	for i, m := range mixers {
		if first, ok := seen[m]; ok {
			if bases[i] != bases[first] || parts[i] != parts[first] {
				r.fail("rope_theta", "layers %d and %d, both of %v, are rotated unlike each other", first, i, m)
				return
			}
			continue
		}
		seen[m] = i
		rotary := int(parts[i] * float64(c.HeadDim))
		if c.HeadDim > 0 && (rotary < 2 || rotary%2 != 0 || rotary > c.HeadDim || bases[i] <= 1) {
			r.fail("partial_rotary_factors", "layer %d rotates %d of %d channels with base %v", i, rotary, c.HeadDim, bases[i])
			return
		}
		if m == WindowAttention {
			c.Sliding.RotaryDim, c.Sliding.RopeTheta = rotary, bases[i]
			continue
		}
		c.RotaryDim, c.RopeTheta = rotary, bases[i]
	}
	if _, ok := seen[FullAttention]; !ok && len(mixers) > 0 && c.Sliding != nil { // what nothing uses
		c.RotaryDim, c.RopeTheta = c.Sliding.RotaryDim, c.Sliding.RopeTheta
	}
	if s := r.object("rope_scaling"); s != nil {
		c.Llama3 = parseLlama3(s)
	}
	raw, ok := r.get("yarn_only_types")
	if !ok || c.Llama3 == nil {
		return
	}
	if types, ok := r.strings("yarn_only_types", raw); ok && !slices.Equal(types, []string{FullAttention.String()}) {
		r.fail("yarn_only_types", "%q; supported is %s alone", types, FullAttention)
	}
}

// parseLlama3 reads the scaling of long contexts that Llama 3 has.
func parseLlama3(r *reader) *Llama3 {
	r.oneOf("rope_type", "llama3")
	l := &Llama3{Factor: r.float("factor", 0, 1e6), OriginalMaxPositionEmbeddings: r.int("original_max_position_embeddings", 1, maxPositions),
		LowFreqFactor: r.float("low_freq_factor", 0, 1e6), HighFreqFactor: r.float("high_freq_factor", 0, 1e6)}
	if l.Factor > 0 && l.Factor < 1 {
		r.fail("factor", "%v is below 1: it would shorten the context", l.Factor)
	}
	if l.HighFreqFactor <= l.LowFreqFactor {
		r.fail("high_freq_factor", "%v is not above low_freq_factor %v", l.HighFreqFactor, l.LowFreqFactor)
	}
	return l
}

// stepExperts returns which layers have experts: those that moe_layers_enum names.
func stepExperts(r *reader) func(int) bool {
	raw, ok := r.get("moe_layers_enum")
	list, isString := "", false
	if ok {
		list, isString = r.string("moe_layers_enum", raw)
	}
	if !ok {
		r.fail("moe_layers_enum", "missing")
	}
	moe := map[int]bool{}
	for _, s := range strings.Split(list, ",") {
		i, err := strconv.Atoi(strings.TrimSpace(s))
		if isString && err != nil {
			r.fail("moe_layers_enum", "%q is not a layer", s)
			break
		}
		moe[i] = true
	}
	return func(i int) bool { return moe[i] }
}

// stepFloats reads a list of a number for each layer, and perhaps for draft layers, that are not
// below 0. One that may be absent is then of zeros.
func stepFloats(r *reader, c *Config, key string, absent bool) []float64 {
	out := make([]float64, c.NumHiddenLayers)
	raw, ok := r.get(key)
	var list []float64
	switch {
	case !ok && absent:
		return out
	case !ok:
		r.fail(key, "missing")
	case !r.decode(key, raw, &list, "a list of numbers"):
	case len(list) < len(out):
		r.fail(key, "%d entries for num_hidden_layers %d", len(list), len(out))
	default:
		copy(out, list)
		for i, x := range out {
			if !(x >= 0 && x <= 1e12) {
				r.fail(key, "layer %d has %v", i, x)
				break
			}
		}
	}
	return out
}
