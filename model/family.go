package model

import (
	"fmt"
	"slices"
	"strings"
)

// families lists the supported architectures. Each has a file of its own: what config.json calls
// it, how that is read, and what is particular about its checkpoints.
var families = []*family{
	&qwen35MoE, &qwen3Next, &qwen3MoE, &deepseekV3, &kimiK2, &glm4MoE, &deepseekV32, &glmMoEDSA, &miniMaxM2, &hyV3, &mistral4,
	&gptOss, &miMoV2Flash, &miniMaxM3, &step35, &hunyuanV1MoE,
}

// family is one architecture.
type family struct {
	arch Arch
	// aliases are further model_types of the family: those of a nested text_config and of the
	// configuration around it.
	aliases []string
	// gguf is what general.architecture of a GGUF file calls the family; "" if another has that.
	gguf string
	// toolCalls is the form of calls that the family is trained on, as Arch.ToolCalls says.
	toolCalls  string
	keys       sizeKeys
	activation string // what hidden_act may be; "": silu
	defaults   defaults
	// norm is what config.json calls the epsilon of norms; "" is rms_norm_eps.
	norm       string
	checkpoint Checkpoint
	// parse reads the fields of this family into c, after the common ones.
	parse func(r *reader, f *family, c *Config)
	// imply fills in what ParseManifestConfig says; nil where manifests leave nothing out.
	imply func(r *reader)
}

// sizeKeys are what config.json calls sizes that not all families call the same.
type sizeKeys struct {
	experts string // routed experts of a layer
	width   string // of one
	// shared is the width of the shared expert or, if counted, how many of width it is made of
	shared  string
	counted bool
	// Further keys of those who have names of their own; "": as others call them.
	kvHeads, picks, dense string
}

// What most families call the experts that a token picks, and the width of dense layers.
const (
	picksKey = "num_experts_per_tok"
	denseKey = "intermediate_size"
)

// defaults are the values of keys that a configuration may leave out.
type defaults struct {
	rotaryFactor float64 // partial_rotary_factor
	normTopK     bool    // norm_topk_prob
}

// Checkpoint says how checkpoints of a family store a model, where that differs between families.
type Checkpoint struct {
	// Rename is pairs of parts of tensors' names, as strings.NewReplacer takes them: those of the
	// checkpoint, and those that all families have in a pack.
	Rename []string
	// ZeroCentred means that norms are stored as w of 1+w in checkpoints as they were trained.
	// Those that mlx-lm converted hold 1+w; the shape of a convolution tells which it is.
	ZeroCentred bool
	// AlwaysCentred means that norms are stored as w of 1+w in all checkpoints, those of mlx-lm
	// included.
	AlwaysCentred bool
	// CentredByMean means that they are so in checkpoints as they were trained, and that mlx-lm
	// adds the 1 to those whose mean is below a half. Its checkpoints have experts stacked, under a
	// name of its own.
	CentredByMean bool
	// FloatRouter means that routers are never quantised: they work on the numbers as trained.
	FloatRouter bool
	// InTurns means that experts that are stacked as they were trained have gate and up in turns,
	// and if they are not quantised, their inputs as the first axis.
	InTurns bool
	// Moeflux means that moeflux runs the family, and reads the manifest of a pack as it writes it.
	Moeflux bool
}

// Checkpoint returns how checkpoints of the architecture store a model; the zero value if there is
// no such architecture.
func (a Arch) Checkpoint() Checkpoint {
	if f := findFamily(string(a)); f != nil {
		return f.checkpoint
	}
	return Checkpoint{}
}

// ToolCalls names the form in which models of the architecture write calls of tools where their
// chat template does not show it: a Format of package tokenizer/chat/tools, or "".
func (a Arch) ToolCalls() string {
	if f := findFamily(string(a)); f != nil {
		return f.toolCalls
	}
	return ""
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
	if f := findFamily(string(a)); f != nil {
		return f.gguf
	}
	return ""
}

// findFamily returns the table entry of a model_type, nil if there is none.
func findFamily(modelType string) *family {
	for _, f := range families {
		if modelType != "" && (modelType == string(f.arch) || slices.Contains(f.aliases, modelType)) {
			return f
		}
	}
	return nil
}

// UnknownArchError reports a model_type that no table entry serves.
type UnknownArchError struct {
	File      string // that names it
	ModelType string
	// Missing is what the engine lacks for it, "" if nobody has looked into it.
	Missing string
	Known   []Arch
}

func unknownArch(file, modelType string) *UnknownArchError {
	return &UnknownArchError{File: file, ModelType: modelType, Missing: Missing(modelType), Known: Known()}
}

func (e *UnknownArchError) Error() string {
	known := make([]string, len(e.Known))
	for i, a := range e.Known {
		known[i] = string(a)
	}
	why := ""
	if e.Missing != "" {
		why = ": the engine lacks " + e.Missing
	}
	return fmt.Sprintf("model: %s: model_type %q is not supported%s; supported: %s", e.File, e.ModelType, why, strings.Join(known, ", "))
}
