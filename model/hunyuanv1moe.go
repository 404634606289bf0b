package model

import "math"

// HunyuanV1MoE is Hunyuan-A13B.
const HunyuanV1MoE Arch = "hunyuan_v1_moe"

var hunyuanV1MoE = family{
	arch: HunyuanV1MoE, gguf: "hunyuan-moe", toolCalls: "list",
	keys:     sizeKeys{experts: "num_experts", width: "moe_intermediate_size", picks: "moe_topk"},
	defaults: defaults{rotaryFactor: 1, normTopK: true},
	checkpoint: Checkpoint{
		Rename: []string{
			".mlp.gate.wg.", ".mlp.gate.", ".mlp.shared_mlp.", ".mlp.shared_experts.",
			".self_attn.query_layernorm.", ".self_attn.q_norm.", ".self_attn.key_layernorm.", ".self_attn.k_norm.",
		},
		FloatRouter: true,
	},
	parse: parseHunyuanV1MoE,
}

// parseHunyuanV1MoE reads hunyuan_v1_moe: softmax attention whose heads are normalised after they
// are rotated, a softmax router, and an expert shared by all tokens. What may differ by layer in
// config.json must be the same in all.
func parseHunyuanV1MoE(r *reader, f *family, c *Config) {
	parseHunyuanAttention(r, c)
	experts := uniformReader{r, c.NumHiddenLayers}
	c.NumExperts = experts.int(f.keys.experts, 1, maxExperts)
	c.NumExpertsPerTok = experts.int(f.keys.picks, 1, maxExperts)
	if c.NumExperts > 0 && c.NumExpertsPerTok > c.NumExperts {
		r.fail(f.keys.picks, "%d is more than %s %d", c.NumExpertsPerTok, f.keys.experts, c.NumExperts)
	}
	width := r.int(denseKey, 1, maxWidth)
	c.MoEIntermediateSize = width
	if r.has(f.keys.width) {
		c.MoEIntermediateSize = experts.int(f.keys.width, 1, maxWidth)
	}
	r.require("norm_topk_prob", true)
	r.require("group_limited_greedy", false)
	r.require("moe_drop_tokens", false)
	r.require("mlp_bias", false)
	r.zero("moe_layer_num_skipped")
	c.NormTopKProb = true
	c.NGroup, c.TopKGroup, c.RoutedScalingFactor = 1, 1, 1
	shared := 1
	if r.has("num_shared_expert") {
		shared = experts.int("num_shared_expert", 1, 64)
	}
	if r.bool("use_mixed_mlp_moe", true) {
		c.SharedExpert, c.SharedExpertIntermediateSize = SharedExpertUngated, shared*width
	}
	r.compose(f, c, onlyFullAttention(r, c), func(int) bool { return true })
}

// parseHunyuanAttention reads heads and rotary embedding.
func parseHunyuanAttention(r *reader, c *Config) {
	c.NumAttentionHeads = r.int("num_attention_heads", 1, maxHeads)
	c.NumKeyValueHeads = r.intOr("num_key_value_heads", 1, maxHeads, c.NumAttentionHeads)
	r.divides("num_attention_heads", c.NumAttentionHeads, "num_key_value_heads", c.NumKeyValueHeads)
	c.HeadDim = c.HiddenSize / max(c.NumAttentionHeads, 1)
	for _, key := range []string{"attention_head_dim", "head_dim"} { // the second is the newer name and wins
		c.HeadDim = r.intOr(key, 2, maxHeadDim, c.HeadDim)
	}
	if c.HeadDim < 4 || c.HeadDim%2 != 0 {
		r.fail("head_dim", "%d channels: must be even and 4 at least", c.HeadDim)
	}
	r.require("use_mla", false)
	r.require("use_cla", false)
	r.require("use_rotary_pos_emb", true)
	r.require("position_embedding_xdrope", false)
	c.AttentionBias = r.bool("attention_bias", false)
	c.OutputBias = c.AttentionBias
	if r.bool("use_qk_norm", true) {
		c.QKNorm, c.NormAfterRope = QKNormPerHead, true
	}
	c.RotaryDim = c.HeadDim
	c.RopeTheta = parseAlphaRope(r, c.HeadDim)
}

// parseAlphaRope returns the base of rotary frequencies. With the scaling that the family calls
// dynamic, it is multiplied by alpha^(d/(d-2)) for heads of d channels, at all positions alike.
func parseAlphaRope(r *reader, d int) float64 {
	s := r.object("rope_parameters")
	if s == nil {
		s = r.object("rope_scaling")
	}
	base := 0.0
	if s != nil && s.has("rope_theta") {
		base = s.float("rope_theta", 1, 1e12)
	} else {
		base = r.float("rope_theta", 1, 1e12)
	}
	if s == nil {
		return base
	}
	kind := "default"
	for _, key := range []string{"type", "rope_type"} { // the second is the newer name and wins
		if s.has(key) {
			kind = s.oneOf(key, "default", "dynamic")
		}
	}
	if kind != "dynamic" || d < 4 {
		return base
	}
	return base * math.Pow(s.float("alpha", 0, 1e6), float64(d)/float64(d-2))
}

// uniformReader reads numbers that may be lists of one for each layer, which must be equal.
type uniformReader struct {
	*reader
	layers int
}

// int returns the number of a key that must be there, 0 after an error.
func (u uniformReader) int(key string, lo, hi int) int {
	raw, ok := u.get(key)
	if !ok || len(raw) == 0 || raw[0] != '[' {
		return u.reader.int(key, lo, hi)
	}
	list := u.ints(key, raw)
	if len(list) < u.layers || len(list) == 0 {
		u.fail(key, "%d entries for num_hidden_layers %d", len(list), u.layers)
		return 0
	}
	for i, n := range list {
		if n != list[0] {
			u.fail(key, "layer %d has %d and layer 0 %d: layers that differ are not supported", i, n, list[0])
			return 0
		}
	}
	if n := list[0]; n < int64(lo) || n > int64(hi) {
		u.fail(key, "%d is outside %d to %d", n, lo, hi)
		return 0
	}
	return int(list[0])
}
