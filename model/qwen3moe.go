package model

// Qwen3MoE is Qwen3 and Qwen3-Coder with experts.
const Qwen3MoE Arch = "qwen3_moe"

var qwen3MoE = family{
	arch: Qwen3MoE, gguf: "qwen3moe", toolCalls: "hermes",
	keys:     sizeKeys{experts: "num_experts", width: "moe_intermediate_size", shared: "shared_expert_intermediate_size"},
	defaults: defaults{rotaryFactor: 1},
	parse:    parseQwen3MoE,
}

// parseQwen3MoE reads qwen3_moe: softmax attention with normalised heads everywhere, no shared
// expert.
func parseQwen3MoE(r *reader, f *family, c *Config) {
	parseFullAttention(r, f, c)
	r.require("attention_bias", false)
	r.require("use_sliding_window", false)
	c.QKNorm = QKNormPerHead
	parseExperts(r, f, c)
	r.zero(f.keys.shared)
	r.compose(f, c, onlyFullAttention(r, c), parseSparseLayers(r, c))
}
