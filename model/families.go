package model

import (
	"fmt"
	"slices"
	"strings"
)

// family is one entry of the architecture table: what config.json calls it and how it is read.
type family struct {
	arch Arch
	// textType is the model_type of a nested text_config; "" if the family has none.
	textType string
	// rotaryFactor is the partial_rotary_factor of a configuration that does not name one.
	rotaryFactor float64
	// normTopK is the norm_topk_prob of a configuration that does not name one.
	normTopK bool
	// parse reads the fields of this family into c, after the common ones.
	parse func(r *reader, f *family, c *Config)
}

// families lists the supported architectures.
var families = []family{
	{arch: Qwen35MoE, textType: "qwen3_5_moe_text", rotaryFactor: 0.25, normTopK: true, parse: parseQwen35MoE},
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

// UnknownArchError reports a model_type that no table entry serves.
type UnknownArchError struct {
	ModelType string // as in config.json
	Known     []Arch
}

func (e *UnknownArchError) Error() string {
	known := make([]string, len(e.Known))
	for i, a := range e.Known {
		known[i] = string(a)
	}
	return fmt.Sprintf("model: config.json: model_type %q is not supported; supported: %s", e.ModelType, strings.Join(known, ", "))
}

// findFamily returns the table entry of a model_type, which may also be that of the nested text part.
func findFamily(modelType string) *family {
	for i := range families {
		f := &families[i]
		if modelType != "" && (modelType == string(f.arch) || modelType == f.textType) {
			return f
		}
	}
	return nil
}

// parseQwen35MoE reads the text tower of qwen3_5_moe: softmax attention with output gate and partial
// rope every few layers, gated delta-net between, mixture of experts with one shared expert in every layer.
func parseQwen35MoE(r *reader, f *family, c *Config) {
	parseSoftmaxAttention(r, f, c)
	r.require("attn_output_gate", true)
	c.AttnOutputGate, c.QKNorm, c.SharedExpert = true, QKNormPerHead, SharedExpertGated
	c.NGroup, c.TopKGroup, c.RoutedScalingFactor = 1, 1, 1

	c.LinearNumKeyHeads = r.int("linear_num_key_heads", 1, maxHeads)
	c.LinearNumValueHeads = r.int("linear_num_value_heads", 1, maxHeads)
	c.LinearKeyHeadDim = r.int("linear_key_head_dim", 1, maxHeadDim)
	c.LinearValueHeadDim = r.int("linear_value_head_dim", 1, maxHeadDim)
	// A kernel of one tap could not be told apart from its transposed form in a checkpoint.
	c.LinearConvKernelDim = r.int("linear_conv_kernel_dim", 2, maxConvKernel)
	if k, v := c.LinearNumKeyHeads, c.LinearNumValueHeads; k > 0 && v > 0 && v%k != 0 {
		r.fail("linear_num_value_heads", "%d does not divide among linear_num_key_heads %d", v, k)
	}

	parseExperts(r, f, c)
	c.SharedExpertIntermediateSize = r.int("shared_expert_intermediate_size", 1, maxWidth)
	if raw, ok := r.get("mlp_only_layers"); ok && len(r.ints("mlp_only_layers", raw)) > 0 {
		r.fail("mlp_only_layers", "layers without experts are not supported in %s", f.arch)
	}
	parseLayers(r, c)
}

// parseSoftmaxAttention reads heads and rotary embedding.
func parseSoftmaxAttention(r *reader, f *family, c *Config) {
	c.NumAttentionHeads = r.int("num_attention_heads", 1, maxHeads)
	c.NumKeyValueHeads = r.int("num_key_value_heads", 1, maxHeads)
	c.HeadDim = r.int("head_dim", 1, maxHeadDim)
	if n, kv := c.NumAttentionHeads, c.NumKeyValueHeads; n > 0 && kv > 0 && n%kv != 0 {
		r.fail("num_attention_heads", "%d does not divide among num_key_value_heads %d", n, kv)
	}
	r.require("attention_bias", false)
	parseRope(r, f, c)
}

// parseExperts reads the routed experts.
func parseExperts(r *reader, f *family, c *Config) {
	c.NumExperts = r.int("num_experts", 1, maxExperts)
	c.NumExpertsPerTok = r.int("num_experts_per_tok", 1, maxExperts)
	c.MoEIntermediateSize = r.int("moe_intermediate_size", 1, maxWidth)
	c.NormTopKProb = r.bool("norm_topk_prob", f.normTopK)
	if k, n := c.NumExpertsPerTok, c.NumExperts; k > 0 && n > 0 && k > n {
		r.fail("num_experts_per_tok", "%d is more than num_experts %d", k, n)
	}
}

// parseLayers reads the kind of each layer, from layer_types or, where absent, full_attention_interval.
func parseLayers(r *reader, c *Config) {
	raw, listed := r.get("layer_types")
	var names []string
	switch {
	case listed:
		var ok bool
		if names, ok = r.strings("layer_types", raw); !ok {
			return
		}
		if len(names) != c.NumHiddenLayers && c.NumHiddenLayers > 0 {
			r.fail("layer_types", "%d entries for num_hidden_layers %d", len(names), c.NumHiddenLayers)
			return
		}
	default:
		if _, ok := r.get("full_attention_interval"); !ok {
			r.fail("layer_types", "missing, and so is full_attention_interval")
			return
		}
		every := r.int("full_attention_interval", 1, maxLayers)
		if every == 0 {
			return
		}
		for i := range c.NumHiddenLayers {
			if (i+1)%every == 0 {
				names = append(names, "full_attention")
			} else {
				names = append(names, "linear_attention")
			}
		}
	}
	var count [numMixers]int
	for i, name := range names {
		var m Mixer
		switch name {
		case "linear_attention":
			m = LinearAttention
		case "full_attention":
			m = FullAttention
		default:
			r.fail("layer_types", "layer %d is %q; known are linear_attention and full_attention", i, name)
			continue
		}
		c.Layers = append(c.Layers, Layer{Mixer: m, MixerIndex: count[m], MoEIndex: i})
		count[m]++
	}
}

// parseRope reads the rotary embedding from rope_parameters, its older name rope_scaling, or flat keys. Values
// in the object win. mrope sections change nothing for text, whose three positions are equal.
func parseRope(r *reader, f *family, c *Config) {
	sub := r.object("rope_parameters")
	if scaling := r.object("rope_scaling"); sub == nil {
		sub = scaling
	} else if scaling != nil {
		ropeType(scaling)
	}
	if sub != nil {
		ropeType(sub)
	}
	pick := func(key string) *reader {
		if sub != nil {
			if _, ok := sub.get(key); ok {
				return sub
			}
		}
		return r
	}
	c.RopeTheta = pick("rope_theta").float("rope_theta", 1, 1e12)
	factor := f.rotaryFactor
	if p := pick("partial_rotary_factor"); p.has("partial_rotary_factor") {
		factor = p.float("partial_rotary_factor", 0, 1)
	}
	c.RotaryDim = int(float64(c.HeadDim) * factor)
	if c.HeadDim > 0 && factor > 0 && (c.RotaryDim < 2 || c.RotaryDim%2 != 0) {
		r.fail("partial_rotary_factor", "%v of head_dim %d gives %d rotary channels, want an even number above 0",
			factor, c.HeadDim, c.RotaryDim)
	}
}

// ropeType refuses every frequency scheme but the plain one.
func ropeType(r *reader) {
	for _, key := range []string{"rope_type", "type"} {
		raw, ok := r.get(key)
		if !ok {
			continue
		}
		// "mrope" is what older files call the plain frequencies with position sections.
		if s, ok := r.string(key, raw); ok && s != "default" && s != "mrope" {
			r.fail(key, "%q is not supported in this architecture, only \"default\"", s)
		}
	}
}
