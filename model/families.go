package model

import (
	"fmt"
	"slices"
	"strings"
)

// family is one entry of the architecture table: what config.json calls it and how it is read.
type family struct {
	arch Arch
	// aliases are further model_types of the family: those of a nested text_config and of the
	// configuration around it.
	aliases []string
	// gguf is what general.architecture of a GGUF file calls the family; "" if another has that.
	gguf string
	// rotaryFactor is the partial_rotary_factor of a configuration that does not name one.
	rotaryFactor float64
	// normTopK is the norm_topk_prob of a configuration that does not name one.
	normTopK bool
	// parse reads the fields of this family into c, after the common ones.
	parse func(r *reader, f *family, c *Config)
}

// families lists the supported architectures.
var families = []family{
	{arch: Qwen35MoE, aliases: []string{"qwen3_5_moe_text"}, gguf: "qwen35moe", rotaryFactor: 0.25, normTopK: true, parse: parseQwen35MoE},
	{arch: Qwen3Next, gguf: "qwen3next", rotaryFactor: 0.25, normTopK: true, parse: parseQwen3Next},
	{arch: Qwen3MoE, gguf: "qwen3moe", rotaryFactor: 1, parse: parseQwen3MoE},
	{arch: DeepseekV3, gguf: "deepseek2", normTopK: true, parse: parseDeepseekV3},
	{arch: KimiK2, aliases: []string{"kimi_k25"}, normTopK: true, parse: parseDeepseekV3},
	{arch: Glm4MoE, gguf: "glm4moe", rotaryFactor: 0.5, normTopK: true, parse: parseGlm4MoE},
	{arch: MiniMaxM2, gguf: "minimax-m2", rotaryFactor: 1, normTopK: true, parse: parseMiniMaxM2},
}

// Known returns the supported architectures, sorted.
func Known() []Arch {
	var out []Arch
	for _, f := range families {
		out = append(out, f.arch)
	}
	slices.Sort(out)
	return out
}

// ArchOfGGUF returns the family of what a GGUF file names as general.architecture, and false if
// none has it. Files of Kimi K2 go under the name of DeepSeek, whose architecture theirs is.
func ArchOfGGUF(name string) (Arch, bool) {
	for _, f := range families {
		if name != "" && f.gguf == name {
			return f.arch, true
		}
	}
	return "", false
}

// GGUFName returns what GGUF files name a family, "" if they have no name for it.
func GGUFName(a Arch) string {
	for _, f := range families {
		if f.arch == a {
			return f.gguf
		}
	}
	return ""
}

// UnknownArchError reports a model_type that no table entry serves.
type UnknownArchError struct {
	File      string // that names it
	ModelType string
	Known     []Arch
}

func (e *UnknownArchError) Error() string {
	known := make([]string, len(e.Known))
	for i, a := range e.Known {
		known[i] = string(a)
	}
	return fmt.Sprintf("model: %s: model_type %q is not supported; supported: %s", e.File, e.ModelType, strings.Join(known, ", "))
}

// findFamily returns the table entry of a model_type, nil if there is none.
func findFamily(modelType string) *family {
	for i := range families {
		f := &families[i]
		if modelType != "" && (modelType == string(f.arch) || slices.Contains(f.aliases, modelType)) {
			return f
		}
	}
	return nil
}
