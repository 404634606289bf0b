package synth

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/moeflux/moeflux-actor/model"
)

// object is a JSON object that keeps the spelling of the values that are not changed.
type object = map[string]any

// decodeObject reads a JSON object and keeps the spelling of its numbers.
func decodeObject(what string, raw []byte) (object, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var o object
	if err := d.Decode(&o); err != nil {
		return nil, fmt.Errorf("synth: %s is not a JSON object: %w", what, err)
	}
	if o == nil {
		return nil, &OptionError{What: what + " is null", Want: "a JSON object"}
	}
	return o, nil
}

// intOf returns an integer of an object, 0 if there is none.
func intOf(o object, k string) int {
	n, _ := o[k].(json.Number)
	i, err := n.Int64()
	if err != nil {
		return 0
	}
	return int(i)
}

// build makes config.json and generation_config.json of the wanted size, with how matrices are
// quantised. Building from the result again gives the same.
func (o *Options) build() (config, generation []byte, cfg *model.Config, err error) {
	top, err := decodeObject("the shape's config.json", o.Shape.Config)
	if err != nil {
		return nil, nil, nil, err
	}
	text, prefix := top, "model."
	nested, isNested := top["text_config"].(object)
	if isNested {
		text, prefix = nested, "language_model.model."
	}
	o.resize(text, isNested)
	gen := object{}
	if o.Shape.Generation != nil {
		if gen, err = decodeObject("the shape's generation_config.json", o.Shape.Generation); err != nil {
			return nil, nil, nil, err
		}
	}
	vocab := intOf(text, "vocab_size")
	for _, place := range []object{top, text, gen} {
		fitTokens(place, vocab)
	}
	// The first parse finds the layers that the quantisation names.
	if _, _, cfg, err = o.encode(top, gen); err != nil {
		return nil, nil, nil, err
	}
	q := quantization(cfg, prefix)
	top["quantization"], top["quantization_config"] = q, q
	return o.encode(top, gen)
}

// encode writes both files and reads them as the engine will.
func (o *Options) encode(top, gen object) (config, generation []byte, cfg *model.Config, err error) {
	if config, err = json.MarshalIndent(top, "", "  "); err != nil {
		return nil, nil, nil, fmt.Errorf("synth: config.json: %w", err)
	}
	if o.Shape.Generation != nil {
		if generation, err = json.MarshalIndent(gen, "", "  "); err != nil {
			return nil, nil, nil, fmt.Errorf("synth: generation_config.json: %w", err)
		}
	}
	if cfg, err = model.ParseConfig(config, generation); err != nil {
		return nil, nil, nil, fmt.Errorf("synth: shape %s: %w", o.Shape.Name, err)
	}
	return config, generation, cfg, nil
}

// resize changes layers, vocabulary and experts of the text part. listed means that it lists the
// kinds of its layers, as nested ones do.
func (o *Options) resize(text object, listed bool) {
	set := func(k string, v int) { text[k] = json.Number(fmt.Sprint(v)) }
	if o.Layers > 0 {
		set("num_hidden_layers", o.Layers)
	}
	layers := intOf(text, "num_hidden_layers")
	// With no more layers than the model has dense ones, none would have experts.
	if dense := intOf(text, "first_k_dense_replace"); dense > 0 {
		set("first_k_dense_replace", min(dense, max(0, layers-1)))
	}
	if types := layerTypes(text, layers); types != nil && (listed || text["layer_types"] != nil) {
		text["layer_types"] = types
	}
	if o.Vocab > 0 {
		set("vocab_size", o.Vocab)
	}
	if o.Experts > 0 {
		for _, k := range []string{"num_experts", "n_routed_experts", "num_local_experts"} {
			if _, ok := text[k]; ok {
				set(k, o.Experts)
			}
		}
		set("num_experts_per_tok", min(intOf(text, "num_experts_per_tok"), o.Experts))
	}
}

// layerTypes returns the kinds of n layers, by the interval of full attention or by continuing the
// shape's own list. It returns nil if the shape has neither.
func layerTypes(text object, layers int) []any {
	listed, _ := text["layer_types"].([]any)
	every := intOf(text, "full_attention_interval")
	var out []any
	for i := range layers {
		switch {
		case every > 0 && (i+1)%every == 0:
			out = append(out, "full_attention")
		case every > 0:
			out = append(out, "linear_attention")
		case len(listed) > 0:
			out = append(out, listed[i%len(listed)])
		}
	}
	return out
}

// fitTokens moves token ids that a smaller vocabulary lacks to its end, each to its own id as far
// as there are enough.
func fitTokens(o object, vocab int) {
	fit := func(v any, i int) any {
		n, ok := v.(json.Number)
		if id, err := n.Int64(); ok && err == nil && id >= int64(vocab) && vocab > 0 {
			return json.Number(fmt.Sprint(max(0, vocab-1-i)))
		}
		return v
	}
	for _, k := range []string{"eos_token_id", "bos_token_id", "pad_token_id"} {
		switch v := o[k].(type) {
		case json.Number:
			o[k] = fit(v, 0)
		case []any:
			for i := range v {
				v[i] = fit(v[i], i)
			}
		}
	}
}

// quantization is the entry that says how matrices are stored: with 4 bits, or 8 where mlx-lm uses
// 8.
func quantization(cfg *model.Config, prefix string) object {
	q := object{"group_size": groupSize, "bits": 4, "mode": "affine"}
	for _, layer := range cfg.MoELayers() {
		for _, name := range gates8(cfg) {
			q[fmt.Sprintf("%slayers.%d.mlp.%s", prefix, layer, name)] = object{"group_size": groupSize, "bits": 8}
		}
	}
	return q
}

// gates8 names the matrices of a layer that are stored with 8 bits. Some families have none: their
// router is not a linear layer and stays BF16.
func gates8(cfg *model.Config) []string {
	switch {
	case cfg.Arch.Checkpoint().FloatRouter:
		return nil
	case cfg.SharedExpert == model.SharedExpertGated:
		return []string{"gate", "shared_expert_gate"}
	default:
		return []string{"gate"}
	}
}

// specialTokens returns the ids that begin or end a text. The chain leaves them out.
func specialTokens(cfg *model.Config) []int32 {
	out := slices.Clone(cfg.EOSTokenIDs)
	if cfg.BOSTokenID >= 0 && !slices.Contains(out, cfg.BOSTokenID) {
		out = append(out, cfg.BOSTokenID)
	}
	return out
}
