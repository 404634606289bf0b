package model

// MiniMaxM2 is MiniMax-M2 to M2.7.
const MiniMaxM2 Arch = "minimax_m2"

var miniMaxM2 = family{
	arch: MiniMaxM2, gguf: "minimax-m2", toolCalls: "minimax",
	keys:     sizeKeys{experts: "num_local_experts", width: "intermediate_size", shared: "shared_intermediate_size"},
	defaults: defaults{rotaryFactor: 1, normTopK: true},
	checkpoint: Checkpoint{
		Rename: []string{
			".block_sparse_moe.e_score", ".mlp.gate.e_score", ".block_sparse_moe.", ".mlp.",
			".w1.", ".gate_proj.", ".w2.", ".down_proj.", ".w3.", ".up_proj.",
		},
		FloatRouter: true,
	},
	parse: parseMiniMaxM2,
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
	parseExperts(r, f, c)
	r.oneOf("scoring_func", "sigmoid")
	r.zero(f.keys.shared)
	c.Scoring = SigmoidScores
	c.CorrectionBias = r.bool("use_routing_bias", true)
	r.compose(f, c, onlyFullAttention(r, c), func(int) bool { return true })
}
