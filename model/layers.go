package model

import "cmp"

// parseLayerTypes reads the mixer of each layer of a hybrid model, from layer_types or, where
// absent, full_attention_interval. It returns nil if they are not known.
func parseLayerTypes(r *reader, c *Config) []Mixer {
	if raw, listed := r.get("layer_types"); listed {
		names, ok := r.strings("layer_types", raw)
		if !ok {
			return nil
		}
		if len(names) != c.NumHiddenLayers && c.NumHiddenLayers > 0 {
			r.fail("layer_types", "%d entries for num_hidden_layers %d", len(names), c.NumHiddenLayers)
			return nil
		}
		mixers := make([]Mixer, len(names))
		for i, name := range names {
			switch name {
			case LinearAttention.String():
			case FullAttention.String():
				mixers[i] = FullAttention
			default:
				r.fail("layer_types", "layer %d is %q; known are linear_attention and full_attention", i, name)
				return nil
			}
		}
		return mixers
	}
	if !r.has("full_attention_interval") {
		r.fail("layer_types", "missing, and so is full_attention_interval")
		return nil
	}
	every := r.int("full_attention_interval", 1, maxLayers)
	if every == 0 {
		return nil
	}
	mixers := make([]Mixer, c.NumHiddenLayers)
	for i := range mixers {
		if (i+1)%every == 0 {
			mixers[i] = FullAttention
		}
	}
	return mixers
}

// onlyFullAttention returns softmax attention for every layer; layer_types, if there, must say the
// same.
func onlyFullAttention(r *reader, c *Config) []Mixer {
	if raw, ok := r.get("layer_types"); ok {
		names, _ := r.strings("layer_types", raw)
		for i, name := range names {
			if name != FullAttention.String() {
				r.fail("layer_types", "layer %d is %q; %s has full_attention alone", i, name, c.Arch)
				break
			}
		}
	}
	return uniform(c, FullAttention)
}

func uniform(c *Config, m Mixer) []Mixer {
	out := make([]Mixer, c.NumHiddenLayers)
	for i := range out {
		out[i] = m
	}
	return out
}

// parseSparseLayers returns which layers have experts as the Qwen families say it: every
// decoder_sparse_step-th, but not those in mlp_only_layers.
func parseSparseLayers(r *reader, c *Config) func(int) bool {
	step := r.intOr("decoder_sparse_step", 1, maxLayers, 1)
	dense := map[int]bool{}
	if raw, ok := r.get("mlp_only_layers"); ok {
		for _, i := range r.ints("mlp_only_layers", raw) {
			if i < 0 || i >= int64(c.NumHiddenLayers) {
				r.fail("mlp_only_layers", "layer %d of num_hidden_layers %d", i, c.NumHiddenLayers)
				continue
			}
			dense[int(i)] = true
		}
	}
	return func(i int) bool { return !dense[i] && (i+1)%max(step, 1) == 0 }
}

// parseFirstDense returns which layers have experts as DeepSeek and its kin say it: every
// moe_layer_freq-th from first_k_dense_replace on.
func parseFirstDense(r *reader, c *Config) func(int) bool {
	first := r.int("first_k_dense_replace", 0, maxLayers)
	freq := r.intOr("moe_layer_freq", 1, maxLayers, 1)
	return func(i int) bool { return i >= first && i%max(freq, 1) == 0 }
}

// parseMLPTypes returns which layers have experts as mlp_layer_types lists it, or without that list
// from first_k_dense_replace on, which is dense if the configuration does not say.
func parseMLPTypes(r *reader, c *Config, dense int) func(int) bool {
	raw, listed := r.get("mlp_layer_types")
	if !listed {
		first := r.intOr("first_k_dense_replace", 0, maxLayers, dense)
		return func(i int) bool { return i >= first }
	}
	names, ok := r.strings("mlp_layer_types", raw)
	if ok && len(names) != c.NumHiddenLayers && c.NumHiddenLayers > 0 {
		r.fail("mlp_layer_types", "%d entries for num_hidden_layers %d", len(names), c.NumHiddenLayers)
	}
	for i, name := range names {
		if name != "sparse" && name != "dense" {
			r.fail("mlp_layer_types", "layer %d is %q; known are sparse and dense", i, name)
			break
		}
	}
	return func(i int) bool { return i >= len(names) || names[i] == "sparse" }
}

// compose fills in the layers, and reads the width of the dense ones if there are any.
func (r *reader) compose(f *family, c *Config, mixers []Mixer, moe func(int) bool) {
	var count [numMixers]int
	experts := 0
	for i, m := range mixers {
		l := Layer{Mixer: m, MixerIndex: count[m], FFN: DenseMLP, MoEIndex: experts}
		count[m]++
		if moe(i) {
			l.FFN = MixtureOfExperts
			experts++
		}
		c.Layers = append(c.Layers, l)
	}
	if experts < len(c.Layers) {
		c.IntermediateSize = r.int(cmp.Or(f.keys.dense, denseKey), 1, maxWidth)
	}
	if experts == 0 && len(c.Layers) > 0 {
		r.fail("num_hidden_layers", "none of the %d layers has experts", len(c.Layers))
	}
}
