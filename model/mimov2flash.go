package model

// MiMoV2Flash is MiMo-V2-Flash.
const MiMoV2Flash Arch = "mimo_v2_flash"

var miMoV2Flash = family{
	arch:     MiMoV2Flash,
	keys:     deepseekKeys,
	defaults: defaults{rotaryFactor: 1, normTopK: true},
	norm:     "layernorm_epsilon",
	checkpoint: Checkpoint{
		Rename:      []string{".self_attn.attention_sink_bias", ".self_attn.sinks"},
		FloatRouter: true,
	},
	parse: parseMiMoV2Flash,
}

// parseMiMoV2Flash reads mimo_v2_flash: softmax attention whose values are narrower than its keys
// and are scaled, in most layers with a window, sinks, and a rotary base and a number of key heads
// of its own; and the router of deepseek_v3 without groups.
func parseMiMoV2Flash(r *reader, f *family, c *Config) {
	parseFullAttention(r, f, c)
	r.require("attention_bias", false)
	c.VHeadDim = r.int("v_head_dim", 1, maxHeadDim)
	if c.HeadDim > 0 && c.VHeadDim > c.HeadDim {
		r.fail("v_head_dim", "%d is more than head_dim %d", c.VHeadDim, c.HeadDim)
	}
	c.ValueScale = float32(r.floatOr("attention_value_scale", 1e-6, 1e6, 1))
	c.AttentionSinks = r.bool("add_full_attention_sink_bias", false)
	parseExperts(r, f, c)
	r.oneOf("scoring_func", "sigmoid")
	r.oneOf("topk_method", "noaux_tc")
	c.Scoring, c.CorrectionBias = SigmoidScores, true
	c.RoutedScalingFactor = float32(r.floatOr("routed_scaling_factor", 1e-6, 1e6, 1))
	for _, key := range []string{"n_group", "topk_group"} {
		if n := r.intOr(key, 1, maxExperts, 1); n != 1 {
			r.fail(key, "%d: the family has no groups", n)
		}
	}
	r.zero(f.keys.shared)
	moe := parseFlags(r, c, "moe_layer_freq")
	slides := parseFlags(r, c, "hybrid_layer_pattern")
	mixers := uniform(c, FullAttention)
	for i := range mixers {
		if slides(i) {
			mixers[i] = WindowAttention
		}
	}
	c.slide(r, mixers)
	if c.Sliding != nil {
		parseMiMoWindow(r, c)
	}
	r.compose(f, c, mixers, moe)
}

// parseMiMoWindow reads what layers with a window have of their own.
func parseMiMoWindow(r *reader, c *Config) {
	s := c.Sliding
	s.NumAttentionHeads = r.intOr("swa_num_attention_heads", 1, maxHeads, c.NumAttentionHeads)
	s.NumKeyValueHeads = r.intOr("swa_num_key_value_heads", 1, maxHeads, c.NumKeyValueHeads)
	if n, kv := s.NumAttentionHeads, s.NumKeyValueHeads; n > 0 && kv > 0 && n%kv != 0 {
		r.fail("swa_num_attention_heads", "%d does not divide among swa_num_key_value_heads %d", n, kv)
	}
	for key, want := range map[string]int{"swa_head_dim": c.HeadDim, "swa_v_head_dim": c.VHeadDim} {
		if n := r.intOr(key, 1, maxHeadDim, want); n != want && want > 0 {
			r.fail(key, "%d, but heads of full attention have %d", n, want)
		}
	}
	s.RopeTheta = r.floatOr("swa_rope_theta", 1, 1e12, c.RopeTheta)
	s.Sinks = r.bool("add_swa_attention_sink_bias", true)
}

// parseFlags reads a list of a 0 or a 1 for each layer.
func parseFlags(r *reader, c *Config, key string) func(layer int) bool {
	raw, there := r.get(key)
	if !there {
		r.fail(key, "missing")
		return func(int) bool { return true }
	}
	list := r.ints(key, raw)
	if len(list) != c.NumHiddenLayers && c.NumHiddenLayers > 0 {
		r.fail(key, "%d entries for num_hidden_layers %d", len(list), c.NumHiddenLayers)
	}
	for i, v := range list {
		if v != 0 && v != 1 {
			r.fail(key, "layer %d is %d, want 0 or 1", i, v)
			break
		}
	}
	return func(layer int) bool { return layer >= len(list) || list[layer] != 0 }
}
