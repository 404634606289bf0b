package model

// KimiK2 is Kimi K2 to K2.7: the architecture of DeepSeek V3 in other sizes, with another
// tokenizer.
const KimiK2 Arch = "kimi_k2"

var kimiK2 = family{
	arch: KimiK2, aliases: []string{"kimi_k25"}, toolCalls: "kimi",
	keys:       deepseekKeys,
	defaults:   defaults{normTopK: true},
	checkpoint: Checkpoint{FloatRouter: true},
	parse:      parseDeepseekV3,
}
