package model

// parseDeepseekV3 reads deepseek_v3 and kimi_k2: latent attention, sigmoid router with groups and
// correction bias, experts shared by all tokens without a gate, dense layers first.
func parseDeepseekV3(r *reader, f *family, c *Config) {
	parseLatentAttention(r, c)
	parseExperts(r, f, c, "n_routed_experts", "moe_intermediate_size")
	r.oneOf("scoring_func", "sigmoid")
	r.oneOf("topk_method", "noaux_tc")
	parseSigmoidRouter(r, c)
	parseSharedExperts(r, c)
	r.compose(c, uniform(c, LatentAttention), parseFirstDense(r, c))
}

// parseLatentAttention reads multi-head latent attention.
func parseLatentAttention(r *reader, c *Config) {
	c.NumAttentionHeads = r.int("num_attention_heads", 1, maxHeads)
	// Every head has a key and a value of its own, made from the one latent vector.
	c.NumKeyValueHeads = c.NumAttentionHeads
	r.require("attention_bias", false)
	if r.has("q_lora_rank") {
		c.QLoraRank = r.int("q_lora_rank", 1, maxWidth)
	}
	c.KVLoraRank = r.int("kv_lora_rank", 1, maxWidth)
	c.QKNopeHeadDim = r.int("qk_nope_head_dim", 1, maxHeadDim)
	c.QKRopeHeadDim = r.int("qk_rope_head_dim", 2, maxHeadDim)
	c.VHeadDim = r.int("v_head_dim", 1, maxHeadDim)
	if c.QKRopeHeadDim%2 != 0 {
		r.fail("qk_rope_head_dim", "%d is odd: channels are rotated in pairs", c.QKRopeHeadDim)
	}
	c.HeadDim = c.QKNopeHeadDim + c.QKRopeHeadDim
	c.RotaryDim = c.QKRopeHeadDim
	c.RopeInterleaved = r.bool("rope_interleave", true)
	parseRope(r, c)
}

// parseSigmoidRouter reads a router that scores each expert on its own and chooses by score plus
// correction bias.
func parseSigmoidRouter(r *reader, c *Config) {
	c.Scoring, c.CorrectionBias = SigmoidScores, true
	c.RoutedScalingFactor = float32(r.float("routed_scaling_factor", 1e-6, 1e6))
	c.NGroup = r.int("n_group", 1, maxExperts)
	c.TopKGroup = r.int("topk_group", 1, maxExperts)
	g, kept, n := c.NGroup, c.TopKGroup, c.NumExperts
	switch {
	case g == 0 || kept == 0 || n == 0:
	case n%g != 0:
		r.fail("n_group", "n_routed_experts %d does not divide into %d groups", n, g)
	case kept > g:
		r.fail("topk_group", "%d is more than n_group %d", kept, g)
	case g > 1 && n/g < 2:
		r.fail("n_group", "%d groups of n_routed_experts %d: a group is scored by its two best experts", g, n)
	case c.NumExpertsPerTok > n/g*kept:
		r.fail("num_experts_per_tok", "%d is more than the %d experts of topk_group %d groups", c.NumExpertsPerTok, n/g*kept, kept)
	}
}

// parseSharedExperts reads experts that every token uses: one SwiGLU of their common width.
func parseSharedExperts(r *reader, c *Config) {
	if n := r.intOr("n_shared_experts", 0, 64, 0); n > 0 {
		c.SharedExpert = SharedExpertUngated
		c.SharedExpertIntermediateSize = n * c.MoEIntermediateSize
	}
}

// parseGlm4MoE reads glm4_moe: softmax attention with biases and partial rope, the router of
// deepseek_v3.
func parseGlm4MoE(r *reader, f *family, c *Config) {
	parseFullAttention(r, f, c)
	c.AttentionBias = r.bool("attention_bias", false)
	if r.bool("use_qk_norm", false) {
		c.QKNorm = QKNormPerHead
	}
	parseExperts(r, f, c, "n_routed_experts", "moe_intermediate_size")
	r.oneOf("scoring_func", "sigmoid")
	r.oneOf("topk_method", "noaux_tc")
	parseSigmoidRouter(r, c)
	parseSharedExperts(r, c)
	r.compose(c, onlyFullAttention(r, c), parseFirstDense(r, c))
}

// parseMiniMaxM2 reads minimax_m2: softmax attention whose queries and keys are normalised before
// they are split into heads, a sigmoid router without groups, no shared expert.
func parseMiniMaxM2(r *reader, f *family, c *Config) {
	parseFullAttention(r, f, c)
	r.require("attention_bias", false)
	r.zero("sliding_window")
	if r.bool("use_qk_norm", true) {
		r.oneOf("qk_norm_type", "per_layer")
		c.QKNorm = QKNormWhole
	}
	if raw, ok := r.get("attn_type_list"); ok {
		for i, kind := range r.ints("attn_type_list", raw) {
			if kind != 1 {
				r.fail("attn_type_list", "layer %d is of type %d, only 1 (softmax attention) is supported", i, kind)
				break
			}
		}
	}
	parseExperts(r, f, c, "num_local_experts", "intermediate_size")
	r.oneOf("scoring_func", "sigmoid")
	r.zero("shared_intermediate_size")
	c.Scoring = SigmoidScores
	c.CorrectionBias = r.bool("use_routing_bias", true)
	r.compose(c, onlyFullAttention(r, c), func(int) bool { return true })
}
