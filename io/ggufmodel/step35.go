package ggufmodel

import (
	"fmt"
	"math"
	"strings"

	"github.com/moeflux/moeflux-actor/io/gguf"
	"github.com/moeflux/moeflux-actor/model"
)

// ropeFactors is the tensor of what rotary frequencies of layers without a window are divided by.
const ropeFactors = "rope_freqs.weight"

// step35Names is what only this family has, or has for something else: in others attn_gate is of
// linear attention.
var step35Names = map[string]string{"attn_gate.weight": "self_attn.g_proj.weight"}

// step35 adds what is its own. Keys and names are those of conversion/step3.py and
// src/models/step35.cpp of llama.cpp. Lists by layer go on with those of draft layers. Files do not
// say what part of a head is rotated: half in layers without a window, and all in the others.
func step35(k *keys, c object) {
	layers := c["num_hidden_layers"].(int)
	pattern := k.perLayer("attention.sliding_window_pattern", layers)
	heads, groups := k.perLayer("attention.head_count", layers), k.perLayer("attention.head_count_kv", layers)
	if pattern == nil || heads == nil || groups == nil {
		k.fail("attention.sliding_window_pattern", "is missing, or attention.head_count or attention.head_count_kv is: each must be a list with an entry for each layer")
		return
	}
	head := k.int("attention.key_length")
	if v := k.intOr("attention.value_length", head); v != head {
		k.fail("attention.value_length", "is %d, but heads of keys have %d: they must be equal in this architecture", v, head)
	}
	if n := k.intOr("rope.dimension_count", head); n != head {
		k.fail("rope.dimension_count", "is %d of %d channels, of which this architecture rotates half in some layers, and all in the others", n, head)
	}
	c["head_dim"], c["sliding_window"] = head, k.int("attention.sliding_window")
	base := k.float("rope.freq_base")
	windowBase := base
	if k.has("rope.freq_base_swa") {
		windowBase = k.float("rope.freq_base_swa")
	}
	types, bases, parts := make([]string, layers), make([]any, layers), make([]float64, layers)
	counts := map[bool][2]float64{} // heads of queries and of keys, of layers with a window and without
	for i := range types {
		window := pattern[i] != 0
		types[i], bases[i], parts[i] = model.FullAttention.String(), base, 0.5
		if window {
			types[i], bases[i], parts[i] = model.WindowAttention.String(), windowBase, 1
		}
		n := [2]float64{heads[i], groups[i]}
		if first, ok := counts[window]; ok && first != n {
			k.fail("attention.head_count", "layer %d has %v and %v heads, and another of its kind %v and %v", i, n[0], n[1], first[0], first[1])
		}
		counts[window] = n
	}
	c["layer_types"], c["rope_theta"], c["partial_rotary_factors"] = types, bases, parts
	full, ok := counts[false]
	if !ok {
		full = counts[true]
	}
	c["num_attention_heads"], c["num_attention_groups"] = full[0], full[1]
	if other, ok := counts[true]; ok {
		c["attention_other_setting"] = object{"attention_type": model.WindowAttention.String(), "num_attention_heads": other[0],
			"num_attention_groups": other[1], "head_dim": head}
	}
	c["use_head_wise_attn_gate"] = k.tensor("blk.0.attn_gate.weight")
	c["use_qk_norm"] = k.tensor("blk.0.attn_q_norm.weight")
	k.stepExperts(c, layers)
	if k.file.Tensor(ropeFactors) != nil {
		x, _ := base.Float64()
		k.stretched(c, x, head)
	}
}

// stepExperts adds routed and shared experts, and their bounds.
func (k *keys) stepExperts(c object, layers int) {
	k.experts(c, "moe_num_experts", "moe_intermediate_size", 2)
	c["moe_top_k"] = c["num_experts_per_tok"]
	delete(c, "num_experts_per_tok")
	c["share_expert_dim"] = k.int("expert_shared_feed_forward_length")
	c["norm_expert_weight"] = k.boolOr("expert_weights_norm", false)
	if x := k.floatOr("expert_weights_scale", 0); x != 0 {
		c["moe_router_scaling_factor"] = decimal(x)
	}
	var sparse []string
	biased := false
	for i := range layers {
		if k.tensor("blk.%d.ffn_gate_inp.weight", i) {
			sparse = append(sparse, fmt.Sprint(i))
			biased = biased || k.tensor("blk.%d.exp_probs_b.bias", i)
		} else if w := k.rows("blk.%d.ffn_gate.weight", i); w > 0 {
			c["intermediate_size"] = w
		}
	}
	c["moe_layers_enum"], c["use_moe_router_bias"] = strings.Join(sparse, ","), biased
	for name, key := range map[string]string{"swiglu_clamp_exp": "swiglu_limits", "swiglu_clamp_shexp": "swiglu_limits_shared"} {
		if limits := k.perLayer(name, layers); limits != nil {
			c[key] = limits
		}
	}
}

// stretched adds the scaling of Llama 3 whose factors the file has. Converters compute them for the
// frequencies of whole heads, though half of a head is rotated. The scaling is the same function of
// a frequency f in both: f is divided by 1/(t+(1-t)/factor), where t is a line in f, cut to 0 to 1.
// Two divisors inside give the line.
func (k *keys) stretched(c object, base float64, head int) {
	t := k.file.Tensor(ropeFactors)
	refuse := func(why string) {
		k.errs = append(k.errs, &gguf.FormatError{Path: k.path, Name: ropeFactors, Why: why})
	}
	if t.Type.Name != "F32" || t.Elements() != head/2 || head < 4 {
		refuse(fmt.Sprintf("is not a list of %d float32 numbers, for the pairs of a head", head/2))
		return
	}
	x := make([]float32, head/2)
	if err := t.Floats(x, 0); err != nil {
		refuse(err.Error())
		return
	}
	l := fitLlama3(x, base)
	if l == nil {
		refuse("are not the factors of Llama 3's scaling, the only one that is supported")
		return
	}
	c["rope_scaling"] = object{"rope_type": "llama3", "factor": l.Factor, "original_max_position_embeddings": l.OriginalMaxPositionEmbeddings,
		"low_freq_factor": l.LowFreqFactor, "high_freq_factor": l.HighFreqFactor}
	c["yarn_only_types"] = []string{model.FullAttention.String()}
}

// fitLlama3 returns the scaling that divides frequencies base^(-i/len(x)) by x, nil if there is
// none. LowFreqFactor is 1: the scaling depends on the ratios of three of its numbers alone.
func fitLlama3(x []float32, base float64) *model.Llama3 {
	frequency := func(i int) float64 { return math.Pow(base, -float64(i)/float64(len(x))) }
	factor := 1.0
	for _, v := range x {
		factor = max(factor, float64(v))
	}
	inside := func(v float32) bool { return float64(v) > 1+1e-6 && float64(v) < factor*(1-1e-6) }
	first, last := -1, -1
	for i, v := range x {
		if inside(v) && first < 0 {
			first = i
		}
		if inside(v) {
			last = i
		}
	}
	if first == last { // one, or none
		return nil
	}
	kept := func(v float32) float64 { return (1/float64(v) - 1/factor) / (1 - 1/factor) }
	slope := (kept(x[first]) - kept(x[last])) / (frequency(first) - frequency(last))
	start := slope*frequency(last) - kept(x[last]) // 1/(high-1)
	if !(slope > 0 && start > 0) {
		return nil
	}
	l := &model.Llama3{Factor: factor, LowFreqFactor: 1, HighFreqFactor: nearInt(1 + 1/start)}
	l.OriginalMaxPositionEmbeddings = int(math.Round(min(2*math.Pi*slope*(l.HighFreqFactor-1), math.MaxInt32)))
	for i, v := range x {
		turns := float64(l.OriginalMaxPositionEmbeddings) * frequency(i) / (2 * math.Pi)
		s := min(max((turns-1)/(l.HighFreqFactor-1), 0), 1)
		if want := 1 / (s + (1-s)/factor); math.Abs(float64(v)-want) > 1e-5*want {
			return nil
		}
	}
	return l
}

// nearInt returns the whole number that x is, but for rounding, or x.
func nearInt(x float64) float64 {
	if n := math.Round(x); math.Abs(x-n) < 1e-3*n {
		return n
	}
	return x
}
