package model

// parseQwen35MoE reads the text tower of qwen3_5_moe: softmax attention with output gate and
// partial rope every few layers, gated delta-net between, mixture of experts with one shared expert
// in every layer.
func parseQwen35MoE(r *reader, f *family, c *Config) {
	parseHybrid(r, f, c)
	if raw, ok := r.get("mlp_only_layers"); ok && len(r.ints("mlp_only_layers", raw)) > 0 {
		r.fail("mlp_only_layers", "layers without experts are not supported in %s", f.arch)
	}
	r.compose(c, parseLayerTypes(r, c), func(int) bool { return true })
}

// parseQwen3Next reads qwen3_next: the same arithmetic, but layers may be dense.
func parseQwen3Next(r *reader, f *family, c *Config) {
	parseHybrid(r, f, c)
	r.compose(c, parseLayerTypes(r, c), parseSparseLayers(r, c))
}

// parseHybrid reads what the two hybrid families share.
func parseHybrid(r *reader, f *family, c *Config) {
	parseFullAttention(r, f, c)
	r.require("attention_bias", false)
	r.require("attn_output_gate", true)
	r.require("use_sliding_window", false)
	c.AttnOutputGate, c.QKNorm, c.SharedExpert = true, QKNormPerHead, SharedExpertGated

	c.LinearNumKeyHeads = r.int("linear_num_key_heads", 1, maxHeads)
	c.LinearNumValueHeads = r.int("linear_num_value_heads", 1, maxHeads)
	c.LinearKeyHeadDim = r.int("linear_key_head_dim", 1, maxHeadDim)
	c.LinearValueHeadDim = r.int("linear_value_head_dim", 1, maxHeadDim)
	// A kernel of one tap could not be told apart from its transposed form in a checkpoint.
	c.LinearConvKernelDim = r.int("linear_conv_kernel_dim", 2, maxConvKernel)
	if k, v := c.LinearNumKeyHeads, c.LinearNumValueHeads; k > 0 && v > 0 && v%k != 0 {
		r.fail("linear_num_value_heads", "%d does not divide among linear_num_key_heads %d", v, k)
	}

	parseExperts(r, f, c, "num_experts", "moe_intermediate_size")
	c.SharedExpertIntermediateSize = r.int("shared_expert_intermediate_size", 1, maxWidth)
}

// parseQwen3MoE reads qwen3_moe: softmax attention with normalised heads everywhere, no shared
// expert.
func parseQwen3MoE(r *reader, f *family, c *Config) {
	parseFullAttention(r, f, c)
	r.require("attention_bias", false)
	r.require("use_sliding_window", false)
	c.QKNorm = QKNormPerHead
	parseExperts(r, f, c, "num_experts", "moe_intermediate_size")
	r.zero("shared_expert_intermediate_size")
	r.compose(c, onlyFullAttention(r, c), parseSparseLayers(r, c))
}

// parseFullAttention reads heads and rotary embedding of softmax attention.
func parseFullAttention(r *reader, f *family, c *Config) {
	c.NumAttentionHeads = r.int("num_attention_heads", 1, maxHeads)
	c.NumKeyValueHeads = r.int("num_key_value_heads", 1, maxHeads)
	c.HeadDim = r.int("head_dim", 1, maxHeadDim)
	if n, kv := c.NumAttentionHeads, c.NumKeyValueHeads; n > 0 && kv > 0 && n%kv != 0 {
		r.fail("num_attention_heads", "%d does not divide among num_key_value_heads %d", n, kv)
	}
	parsePartialRope(r, f, c)
}

// parseExperts reads the routed experts, with a softmax router without groups unless the caller
// changes that.
func parseExperts(r *reader, f *family, c *Config, number, width string) {
	c.NumExperts = r.int(number, 1, maxExperts)
	c.NumExpertsPerTok = r.int("num_experts_per_tok", 1, maxExperts)
	c.MoEIntermediateSize = r.int(width, 1, maxWidth)
	c.NormTopKProb = r.bool("norm_topk_prob", f.normTopK)
	c.NGroup, c.TopKGroup, c.RoutedScalingFactor = 1, 1, 1
	if k, n := c.NumExpertsPerTok, c.NumExperts; k > 0 && n > 0 && k > n {
		r.fail("num_experts_per_tok", "%d is more than %s %d", k, number, n)
	}
}
