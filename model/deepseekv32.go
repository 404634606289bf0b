package model

// DeepseekV32 is DeepSeek V3.2.
const DeepseekV32 Arch = "deepseek_v32"

var deepseekV32 = family{
	// V3.2-Exp calls tools as its template shows, V3.2 in a form of its own that nobody reads yet.
	arch: DeepseekV32, gguf: "deepseek32",
	keys:       deepseekKeys,
	defaults:   defaults{normTopK: true},
	checkpoint: Checkpoint{FloatRouter: true},
	parse:      parseDeepseekV32,
}

// parseDeepseekV32 reads deepseek_v32: deepseek_v3, with an indexer in every layer. What the
// indexer rotates is paired by halves, unlike what attention does.
func parseDeepseekV32(r *reader, f *family, c *Config) {
	parseDeepseekV3(r, f, c)
	parseIndexer(r, c, false)
	for i := range c.Layers {
		c.Layers[i].Indexer, c.Layers[i].IndexerIndex = OwnIndexer, i
	}
}
