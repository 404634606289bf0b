package model

// GptOss is gpt-oss-20b and gpt-oss-120b.
const GptOss Arch = "gpt_oss"

var gptOss = family{
	arch: GptOss, gguf: "gpt-oss", toolCalls: "harmony",
	keys:     sizeKeys{experts: "num_local_experts", width: "intermediate_size"},
	defaults: defaults{rotaryFactor: 1, normTopK: true},
	checkpoint: Checkpoint{
		Rename: []string{
			".mlp.router.", ".mlp.gate.",
			".mlp.experts.gate_up_proj_bias", ".mlp.switch_mlp.gate_up_proj.bias", ".mlp.experts.down_proj_bias", ".mlp.switch_mlp.down_proj.bias",
			// as mlx-lm stores them
			".mlp.experts.gate_proj.", ".mlp.switch_mlp.gate_proj.", ".mlp.experts.up_proj.", ".mlp.switch_mlp.up_proj.",
			".mlp.experts.down_proj.", ".mlp.switch_mlp.down_proj.",
		},
		FloatRouter: true, InTurns: true,
	},
	parse: parseGptOss,
}

// parseGptOss reads gpt_oss: softmax attention with biases and sinks, a softmax router with a bias,
// and experts with biases and bounded gates. Every other layer has a window unless layer_types says
// otherwise.
func parseGptOss(r *reader, f *family, c *Config) {
	parseFullAttention(r, f, c)
	c.AttentionBias = r.bool("attention_bias", true)
	c.OutputBias, c.AttentionSinks = c.AttentionBias, true
	parseExperts(r, f, c)
	r.require("norm_topk_prob", true)
	c.RouterBias, c.ExpertBias = true, true
	mixers := parseSliding(r, c, func(layer int) bool { return layer%2 == 0 })
	r.compose(f, c, mixers, func(int) bool { return true })
	clamp := Clamp{Limit: r.floatOr("swiglu_limit", 0, 1e6, 7), Alpha: 1.702}
	for i := range c.Layers {
		c.Layers[i].Clamp = clamp
	}
}
