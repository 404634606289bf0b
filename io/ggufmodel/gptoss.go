package ggufmodel

import (
	"slices"

	"github.com/moeflux/moeflux-actor/io/gguf"
	"github.com/moeflux/moeflux-actor/model"
)

// gptOss adds what is its own. Files do not say how gates are bounded, and that YaRN's ramp is not
// rounded to whole channels: all published models are alike in that. Metadata of converters is
// described in conversion/gpt_oss.py of llama.cpp, and what its reader takes as given in
// src/models/openai-moe.cpp.
func gptOss(k *keys, c object) {
	k.heads(c)
	k.experts(c, "num_local_experts", "intermediate_size", 3)
	k.refuse("expert_weights_scale", 1)
	c["attention_bias"] = k.tensor("blk.0.attn_q.bias")
	c["sliding_window"] = k.int("attention.sliding_window")
	c["layer_types"] = k.layerTypes(c["num_hidden_layers"].(int), 2)
	if y, ok := c["rope_scaling"].(object); ok {
		y["truncate"] = false
	}
	if base := k.floatOr("rope.freq_base", 0); k.floatOr("rope.freq_base_swa", base) != base {
		k.fail("rope.freq_base_swa", "differs from rope.freq_base, which is not supported in this architecture")
	}
	k.harmonyEnds(c)
}

// layerTypes returns which layers have a window. The key of the pattern is a period, of which the
// last layer has none, or a truth value for each layer; a file without it has that of the family.
func (k *keys) layerTypes(layers, period int) []string {
	const key = "attention.sliding_window_pattern"
	slides := func(layer int) bool { return layer%period < period-1 }
	if v, ok := k.get(key); ok && v.Type == gguf.Array {
		var list []bool
		for e := range v.Elements() {
			b, ok := e.Bool()
			if !ok {
				break
			}
			list = append(list, b)
		}
		if len(list) != layers || v.Len != layers {
			k.fail(key, "is not a truth value for each of %d layers", layers)
			return nil
		}
		slides = func(layer int) bool { return list[layer] }
	} else if period = k.intOr(key, period); period < 1 {
		k.fail(key, "is %d: a period is at least 1", period)
		return nil
	}
	out := make([]string, layers)
	for i := range out {
		out[i] = model.FullAttention.String()
		if slides(i) {
			out[i] = model.WindowAttention.String()
		}
	}
	return out
}

// harmonyEnds has an answer end with <|return|> or <|call|>, if the file has a tokenizer with both.
// Keys name one of them, and some name <|end|>, which ends a message within an answer.
func (k *keys) harmonyEnds(c object) {
	v, ok := k.file.Metadata().Get("tokenizer.ggml.tokens")
	if !ok {
		return
	}
	ids, id := map[string]int64{}, int64(0)
	for e := range v.Elements() {
		if s, _ := e.Text(); s == "<|return|>" || s == "<|call|>" || s == "<|end|>" {
			ids[s] = id
		}
		id++
	}
	if _, hasReturn := ids["<|return|>"]; !hasReturn {
		return
	}
	if _, hasCall := ids["<|call|>"]; !hasCall {
		return
	}
	ends, _ := c["eos_token_id"].([]int64)
	end, hasEnd := ids["<|end|>"]
	ends = slices.DeleteFunc(ends, func(id int64) bool { return hasEnd && id == end })
	for _, s := range []string{"<|return|>", "<|call|>"} {
		if !slices.Contains(ends, ids[s]) {
			ends = append(ends, ids[s])
		}
	}
	c["eos_token_id"] = ends
}
