package model

import (
	"encoding/json"
	"errors"
	"fmt"
)

// ParseManifestConfig reads the config object of a manifest of weights, which stands for
// config.json in directories that were packed without one. generation is as in ParseConfig. Keys
// that such manifests leave out, because the programs that read them have them compiled in, are
// filled in: model_type from the keys that are there, the longest context, and the ids that end a
// text. Errors are as of ParseConfig.
func ParseManifestConfig(config, generation []byte) (*Config, error) {
	var errs []error
	r := newReader("model_weights.json", "config.", config, &errs)
	if r == nil {
		return nil, errors.Join(errs...)
	}
	set := func(key string, value any) {
		if !r.has(key) {
			r.obj[key] = json.RawMessage(fmt.Sprint(value))
		}
	}
	switch {
	case r.has("model_type"):
	case r.has("kv_lora_rank"):
		set("model_type", `"`+DeepseekV3+`"`)
	case r.has("linear_num_value_heads"):
		set("model_type", `"`+Qwen35MoE+`"`)
	default:
		r.fail("model_type", "missing, and neither kv_lora_rank nor linear_num_value_heads tells what the model is")
		return nil, errors.Join(errs...)
	}
	modelType, _ := r.string("model_type", r.obj["model_type"])
	f := findFamily(modelType)
	if f == nil {
		return nil, &UnknownArchError{File: r.file, ModelType: modelType, Known: Known()}
	}
	switch f.arch {
	case Qwen35MoE:
		set("max_position_embeddings", 262144) // of every published model of this family
	case DeepseekV3:
		if n := stretched(r); n > 0 {
			set("max_position_embeddings", n)
		}
	}
	// The ids of the published vocabularies.
	switch vocab := string(r.obj["vocab_size"]); {
	case f.arch == Qwen35MoE && vocab == "248320":
		set("eos_token_id", "[248044, 248046]")
	case f.arch == DeepseekV3 && (vocab == "128815" || vocab == "129280"):
		set("bos_token_id", 0)
		set("eos_token_id", 1)
	}
	return parse(r, generation)
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
