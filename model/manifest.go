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
	switch {
	case r.has("model_type"):
	case r.has("kv_lora_rank"):
		r.imply("model_type", `"`+DeepseekV3+`"`)
	case r.has("linear_num_value_heads"):
		r.imply("model_type", `"`+Qwen35MoE+`"`)
	default:
		r.fail("model_type", "missing, and neither kv_lora_rank nor linear_num_value_heads tells what the model is")
		return nil, errors.Join(errs...)
	}
	modelType, _ := r.string("model_type", r.obj["model_type"])
	f := findFamily(modelType)
	if f == nil {
		return nil, unknownArch(r.file, modelType)
	}
	if f.imply != nil {
		f.imply(r)
	}
	return parse(r, generation)
}

// imply sets a key that the object lacks.
func (r *reader) imply(key string, value any) {
	if !r.has(key) {
		r.obj[key] = json.RawMessage(fmt.Sprint(value))
	}
}
