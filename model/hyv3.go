package model

// HyV3 is Hy3, and Hy-MT2 with experts.
const HyV3 Arch = "hy_v3"

var hyV3 = family{
	arch: HyV3, gguf: "hy_v3", toolCalls: "hunyuan",
	keys:     sizeKeys{experts: "num_experts", width: "moe_intermediate_size", shared: "num_shared_experts", counted: true},
	defaults: defaults{rotaryFactor: 1, normTopK: true},
	checkpoint: Checkpoint{
		Rename: []string{
			".mlp.router.gate.", ".mlp.gate.", ".mlp.expert_bias", ".mlp.gate.e_score_correction_bias",
			".mlp.shared_mlp.", ".mlp.shared_experts.",
		},
		FloatRouter: true,
	},
	parse: parseHyV3,
}

// parseHyV3 reads hy_v3: softmax attention with normalised heads, the router of deepseek_v3 without
// groups, experts shared by all tokens, and a dense layer first. Its enable_…_fp32 keys say where
// others round.
func parseHyV3(r *reader, f *family, c *Config) {
	parseFullAttention(r, f, c)
	r.require("attention_bias", false)
	r.require("mlp_bias", false)
	if r.bool("qk_norm", true) {
		c.QKNorm = QKNormPerHead
	}
	parseExperts(r, f, c)
	if width := r.intOr("expert_hidden_dim", 1, maxWidth, c.MoEIntermediateSize); width != c.MoEIntermediateSize {
		r.fail("expert_hidden_dim", "%d, but moe_intermediate_size is %d", width, c.MoEIntermediateSize)
	}
	r.require("moe_router_use_sigmoid", true)
	c.Scoring = SigmoidScores
	c.CorrectionBias = r.bool("moe_router_enable_expert_bias", true)
	c.NormTopKProb = r.bool("route_norm", f.defaults.normTopK)
	c.RoutedScalingFactor = float32(r.float("router_scaling_factor", 1e-6, 1e6))
	parseSharedExperts(r, f, c)
	r.compose(f, c, onlyFullAttention(r, c), parseMLPTypes(r, c, 1))
}
