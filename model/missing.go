package model

import (
	"slices"
	"strings"
)

// Missing returns what the engine lacks for a family that people ask for, by its model_type; "" if
// it lacks nothing, or nobody has looked into it.
func Missing(modelType string) string { return missing[modelType] }

// MissingGGUF is Missing by what GGUF files name as general.architecture.
func MissingGGUF(architecture string) string {
	if modelType, other := missingGGUF[architecture]; other {
		return missing[modelType]
	}
	return missing[strings.ReplaceAll(architecture, "-", "_")]
}

// Refused returns the model_types of the families that Missing knows, sorted.
func Refused() []string {
	var out []string
	for modelType := range missing {
		out = append(out, modelType)
	}
	slices.Sort(out)
	return out
}

// missing is what the engine lacks for families that people ask for, by model_type.
var missing = map[string]string{
	"bailing_hybrid":   "linear attention with a fixed decay for each head",
	"deepseek_v4":      "compressed attention, hyper-connections and layers routed by hash",
	"deepseek_v41":     "compressed attention, hyper-connections, layers routed by hash and engram tables",
	"gemma4":           gemma4Lacks,
	"gemma4_text":      gemma4Lacks,
	"glm5_next":        "the delta rule with a decay for each channel, and hyper-connections",
	"granitemoehybrid": "Mamba-2 layers",
	"inkling_mm_model": inklingLacks,
	"inkling_model":    inklingLacks,
	"kimi_k3":          "the delta rule with a decay for each channel, experts in a latent space with their own activation, and residuals of attention",
	"kimi_linear":      "the delta rule with a decay for each channel",
	"laguna":           "gates of attention by softplus",
	"nemotron_h":       "Mamba-2 layers, and experts with a squared ReLU",
	"qwen4_exp":        "hyper-connections, sparse attention and the n-gram embedding",
	"step3p7":          "the names of its text part; that of step3p5 is supported",
}

const (
	gemma4Lacks  = "heads of two widths, keys that are values, GELU, a bound of logits, and scalars of layers"
	inklingLacks = "short convolutions, and windows relative to positions"
)

// missingGGUF is what config.json calls families that GGUF files name otherwise.
var missingGGUF = map[string]string{
	"deepseek4": "deepseek_v4", "granitehybrid": "granitemoehybrid", "nemotron_h_moe": "nemotron_h",
}
