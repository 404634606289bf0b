package convert

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/model"
)

// role is what a tensor of the model is for, which says how it is stored.
type role uint8

const (
	matrix     role = iota // [rows, cols]; quantised if asked for
	gateMatrix             // as matrix, but with 8-bit codes: routing decides on small differences
	norm                   // [rows] that scales a normalised vector; zero-centred in a raw checkpoint of some families
	vector                 // [rows], kept
	vectorF32              // [rows], stored as F32
	conv                   // [rows, cols taps], with an axis of one behind or, in a raw checkpoint, between
)

// spec is one tensor, or for a matrix up to three, that the architecture needs outside the routed experts.
type spec struct {
	name       string // as in the pack; of a matrix without ".weight"
	role       role
	rows, cols int
}

// family is one entry of the architecture table.
type family struct {
	arch model.Arch
	// dense lists everything but the routed experts, one layer after the other.
	dense func(*model.Config) []spec
	// zeroCentred: a raw checkpoint holds norms as w of 1+w. Raw checkpoints are known by the shape of their
	// convolutions.
	zeroCentred bool
}

var families = []family{
	{arch: model.Qwen35MoE, dense: qwen35Specs, zeroCentred: true},
}

func findFamily(a model.Arch) (*family, error) {
	for i := range families {
		if families[i].arch == a {
			return &families[i], nil
		}
	}
	return nil, fmt.Errorf("convert: no rule for architecture %q", a)
}

// qwen35Specs lists the tensors of the text tower of qwen3_5_moe.
func qwen35Specs(c *model.Config) []spec {
	h := c.HiddenSize
	out := []spec{
		{"model.embed_tokens", matrix, c.VocabSize, h},
		{"model.norm.weight", norm, h, 0},
	}
	if !c.TieWordEmbeddings {
		out = append(out, spec{"lm_head", matrix, c.VocabSize, h})
	}
	for i, layer := range c.Layers {
		p := fmt.Sprintf("model.layers.%d.", i)
		out = append(out,
			spec{p + "input_layernorm.weight", norm, h, 0},
			spec{p + "post_attention_layernorm.weight", norm, h, 0})
		if layer.Mixer == model.LinearAttention {
			out = append(out, deltaNetSpecs(c, p+"linear_attn.")...)
		} else {
			out = append(out, gatedAttentionSpecs(c, p+"self_attn.")...)
		}
		out = append(out, sharedExpertSpecs(c, p+"mlp.")...)
	}
	return out
}

func deltaNetSpecs(c *model.Config, p string) []spec {
	h, heads := c.HiddenSize, c.LinearNumValueHeads
	return []spec{
		{p + "in_proj_qkv", matrix, c.LinearConvDim(), h},
		{p + "in_proj_z", matrix, c.LinearValueDim(), h},
		{p + "in_proj_a", matrix, heads, h},
		{p + "in_proj_b", matrix, heads, h},
		{p + "conv1d.weight", conv, c.LinearConvDim(), c.LinearConvKernelDim},
		{p + "A_log", vectorF32, heads, 0},
		{p + "dt_bias", vector, heads, 0},
		{p + "norm.weight", vector, c.LinearValueHeadDim, 0}, // plain in every kind of checkpoint
		{p + "out_proj", matrix, h, c.LinearValueDim()},
	}
}

// gatedAttentionSpecs lists softmax attention whose query projection also makes the output gate.
func gatedAttentionSpecs(c *model.Config, p string) []spec {
	h, q := c.HiddenSize, c.NumAttentionHeads*c.HeadDim
	return []spec{
		{p + "q_proj", matrix, 2 * q, h},
		{p + "k_proj", matrix, c.KVDim(), h},
		{p + "v_proj", matrix, c.KVDim(), h},
		{p + "o_proj", matrix, h, q},
		{p + "q_norm.weight", norm, c.HeadDim, 0},
		{p + "k_norm.weight", norm, c.HeadDim, 0},
	}
}

// sharedExpertSpecs lists the router gate and the shared expert with its gate.
func sharedExpertSpecs(c *model.Config, p string) []spec {
	h, is := c.HiddenSize, c.SharedExpertIntermediateSize
	return []spec{
		{p + "gate", gateMatrix, c.NumExperts, h},
		{p + "shared_expert_gate", gateMatrix, 1, h},
		{p + "shared_expert.gate_proj", matrix, is, h},
		{p + "shared_expert.up_proj", matrix, is, h},
		{p + "shared_expert.down_proj", matrix, h, is},
	}
}
