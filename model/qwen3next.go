package model

// Qwen3Next is Qwen3-Next and Qwen3-Coder-Next.
const Qwen3Next Arch = "qwen3_next"

var qwen3Next = family{
	arch: Qwen3Next, gguf: "qwen3next", toolCalls: "hermes",
	keys:       sizeKeys{experts: "num_experts", width: "moe_intermediate_size", shared: "shared_expert_intermediate_size"},
	defaults:   defaults{rotaryFactor: 0.25, normTopK: true},
	checkpoint: Checkpoint{ZeroCentred: true},
	parse:      parseQwen3Next,
}

// parseQwen3Next reads qwen3_next: the arithmetic of qwen3_5_moe, but layers may be dense.
func parseQwen3Next(r *reader, f *family, c *Config) {
	parseHybrid(r, f, c)
	r.compose(f, c, parseLayerTypes(r, c), parseSparseLayers(r, c))
}
