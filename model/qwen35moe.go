package model

// Qwen35MoE is Qwen3.5 to 3.8, the text part.
const Qwen35MoE Arch = "qwen3_5_moe"

var qwen35MoE = family{
	arch: Qwen35MoE, aliases: []string{"qwen3_5_moe_text"}, gguf: "qwen35moe", toolCalls: "coder",
	keys:       sizeKeys{experts: "num_experts", width: "moe_intermediate_size", shared: "shared_expert_intermediate_size"},
	defaults:   defaults{rotaryFactor: 0.25, normTopK: true},
	checkpoint: Checkpoint{ZeroCentred: true, Moeflux: true},
	parse:      parseQwen35MoE, imply: implyQwen35MoE,
}

// parseQwen35MoE reads the text tower of qwen3_5_moe: softmax attention with output gate and
// partial rope every few layers, gated delta-net between, mixture of experts with one shared expert
// in every layer.
func parseQwen35MoE(r *reader, f *family, c *Config) {
	parseHybrid(r, f, c)
	if raw, ok := r.get("mlp_only_layers"); ok && len(r.ints("mlp_only_layers", raw)) > 0 {
		r.fail("mlp_only_layers", "layers without experts are not supported in %s", f.arch)
	}
	r.compose(f, c, parseLayerTypes(r, c), func(int) bool { return true })
}

// implyQwen35MoE fills in what all published models of this family have.
func implyQwen35MoE(r *reader) {
	r.imply("max_position_embeddings", 262144)
	if string(r.obj["vocab_size"]) == "248320" {
		r.imply("eos_token_id", "[248044, 248046]")
	}
}

// parseHybrid reads what the two families with gated delta-net share.
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

	parseExperts(r, f, c)
	c.SharedExpertIntermediateSize = r.int(f.keys.shared, 1, maxWidth)
}
