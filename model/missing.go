package model

// Missing returns what the engine lacks for a family that people ask for, by its model_type; "" if
// it lacks nothing, or nobody has looked into it.
func Missing(modelType string) string { return missing[modelType] }

// missing is what the engine lacks for families that people ask for, by model_type.
var missing = map[string]string{
	"bailing_hybrid":   "linear attention with a fixed decay for each head",
	"deepseek_v4":      "compressed attention, hyper-connections and layers routed by hash",
	"glm5_next":        "the delta rule with a decay for each channel, and hyper-connections",
	"granitemoehybrid": "Mamba-2 layers",
	"kimi_linear":      "the delta rule with a decay for each channel",
	"nemotron_h":       "Mamba-2 layers, and experts with a squared ReLU",
	"qwen4_exp":        "hyper-connections, sparse attention and the n-gram embedding",
	"step3p7":          "the names of its text part; that of step3p5 is supported",
}
