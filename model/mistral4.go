package model

// Mistral4 is Mistral Small 4, the text part.
const Mistral4 Arch = "mistral4"

var mistral4 = family{
	arch: Mistral4, toolCalls: "mistral",
	keys:       deepseekKeys,
	defaults:   defaults{normTopK: true},
	checkpoint: Checkpoint{FloatRouter: true},
	parse:      parseMistral4,
}

// parseMistral4 reads mistral4: latent attention whose queries grow with their position, a softmax
// router, experts shared by all tokens.
func parseMistral4(r *reader, f *family, c *Config) {
	parseLatentAttention(r, c)
	parseExperts(r, f, c)
	r.oneOf("scoring_func", "softmax")
	r.intOr("n_group", 1, 1, 1)
	r.intOr("topk_group", 1, 1, 1)
	c.RoutedScalingFactor = float32(r.floatOr("routed_scaling_factor", 1e-6, 1e6, 1))
	parseSharedExperts(r, f, c)
	r.compose(f, c, uniform(c, LatentAttention), parseFirstDense(r, c))
}
