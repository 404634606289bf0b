package model

// Glm4MoE is GLM-4.5, 4.5-Air, 4.6 and 4.7.
const Glm4MoE Arch = "glm4_moe"

var glm4MoE = family{
	arch: Glm4MoE, gguf: "glm4moe", toolCalls: "glm",
	keys:       deepseekKeys,
	defaults:   defaults{rotaryFactor: 0.5, normTopK: true},
	checkpoint: Checkpoint{FloatRouter: true},
	parse:      parseGlm4MoE,
}

// parseGlm4MoE reads glm4_moe: softmax attention with biases and partial rope, the router of
// deepseek_v3.
func parseGlm4MoE(r *reader, f *family, c *Config) {
	parseFullAttention(r, f, c)
	c.AttentionBias = r.bool("attention_bias", false)
	if r.bool("use_qk_norm", false) {
		c.QKNorm = QKNormPerHead
	}
	parseExperts(r, f, c)
	r.oneOf("scoring_func", "sigmoid")
	r.oneOf("topk_method", "noaux_tc")
	parseSigmoidRouter(r, f, c)
	parseSharedExperts(r, f, c)
	r.compose(f, c, onlyFullAttention(r, c), parseFirstDense(r, c))
}
