package model

import "encoding/json"

// DeepseekV3 is DeepSeek V3, R1 and V3.1, and Cogito.
const DeepseekV3 Arch = "deepseek_v3"

var deepseekV3 = family{
	arch: DeepseekV3, gguf: "deepseek2", toolCalls: "deepseek",
	keys:       deepseekKeys,
	defaults:   defaults{normTopK: true},
	checkpoint: Checkpoint{FloatRouter: true},
	parse:      parseDeepseekV3, imply: implyDeepseekV3,
}

// deepseekKeys are the names that DeepSeek's configurations and those of their kin have.
var deepseekKeys = sizeKeys{experts: "n_routed_experts", width: "moe_intermediate_size", shared: "n_shared_experts", counted: true}

// parseDeepseekV3 reads deepseek_v3 and kimi_k2: latent attention, sigmoid router with groups and
// correction bias, experts shared by all tokens without a gate, dense layers first.
func parseDeepseekV3(r *reader, f *family, c *Config) {
	parseLatentAttention(r, c)
	parseExperts(r, f, c)
	r.oneOf("scoring_func", "sigmoid")
	r.oneOf("topk_method", "noaux_tc")
	parseSigmoidRouter(r, f, c)
	parseSharedExperts(r, f, c)
	r.compose(f, c, uniform(c, LatentAttention), parseFirstDense(r, c))
}

// implyDeepseekV3 fills in the context that rope_scaling stretches to, and the ids of the published
// vocabularies.
func implyDeepseekV3(r *reader) {
	if n := stretched(r); n > 0 {
		r.imply("max_position_embeddings", n)
	}
	if vocab := string(r.obj["vocab_size"]); vocab == "128815" || vocab == "129280" {
		r.imply("bos_token_id", 0)
		r.imply("eos_token_id", 1)
	}
}

// stretched returns the context that rope_scaling stretches to, 0 if it does not say.
func stretched(r *reader) int {
	var y struct {
		Factor   float64 `json:"factor"`
		Original float64 `json:"original_max_position_embeddings"`
	}
	raw, ok := r.get("rope_scaling")
	if !ok || json.Unmarshal(raw, &y) != nil {
		return 0 // reported when it is parsed
	}
	if n := y.Factor * y.Original; n >= 1 && n <= maxPositions {
		return int(n)
	}
	return 0
}
