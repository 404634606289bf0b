package convert

import (
	"fmt"
	"slices"

	"github.com/moeflux/moeflux-actor/model"
)

// role is what a tensor of the model is for. It decides how the tensor is stored.
type role uint8

const (
	matrix role = iota // [rows, cols]; quantised if asked for
	// like matrix, but with 8-bit codes: routing depends on small differences
	gateMatrix
	// like matrix, but never quantised: these routers, and weights of indexers, work on the numbers
	// as trained
	floatMatrix
	// [rows] that scales a normalised vector; zero-centred in raw checkpoints of some families
	norm
	vector // [rows], kept as it is
	decay  // [rows], A_log, stored as F32
	// [rows, cols] with cols taps, and an axis of 1 after them or, in raw checkpoints, between
	conv
)

// spec is a vector or matrix that the architecture needs besides the routed experts. A matrix is up
// to three tensors.
type spec struct {
	name       string // as in the pack; for a matrix without ".weight"
	role       role
	rows, cols int
	byHead     bool  // each head multiplies by rows of its own, so the rows stay in order
	stack      int   // if above 0, the source has the rows in a stack of this many matrices
	from       *part // if not nil, the rows are part of another matrix in the source
	pieces     *pieces
}

// part is rows of a matrix or vector in the source.
type part struct {
	name string // as in the pack, without ".weight"
	rows int    // of the whole
	take []rowRange
}

// dense lists everything but the routed experts, layer by layer.
func dense(c *model.Config, src *source) []spec {
	h := c.HiddenSize
	out := []spec{
		{name: "model.embed_tokens", rows: c.VocabSize, cols: h},
		{name: "model.norm.weight", role: norm, rows: h},
	}
	if !c.TieWordEmbeddings {
		out = append(out, spec{name: "lm_head", rows: c.VocabSize, cols: h})
	}
	for i, layer := range c.Layers {
		p := fmt.Sprintf("model.layers.%d.", i)
		out = append(out,
			spec{name: p + "input_layernorm.weight", role: norm, rows: h},
			spec{name: p + "post_attention_layernorm.weight", role: norm, rows: h})
		out = append(out, mixerSpecs(c, src, p, layer)...)
		if layer.FFN == model.DenseMLP {
			out = append(out, mlpSpecs(p+"mlp.", h, c.IntermediateSize)...)
		} else {
			out = append(out, routerSpecs(c, src, p+"mlp.")...)
		}
	}
	return out
}

// mlpSpecs lists one SwiGLU.
func mlpSpecs(p string, hidden, width int) []spec {
	return []spec{
		{name: p + "gate_proj", rows: width, cols: hidden},
		{name: p + "up_proj", rows: width, cols: hidden},
		{name: p + "down_proj", rows: hidden, cols: width},
	}
}

// routerSpecs lists the router, the biases of routed experts and the shared expert with its gate,
// as far as the model has them.
func routerSpecs(c *model.Config, src *source, p string) []spec {
	h, router := c.HiddenSize, gateMatrix
	if c.Arch.Checkpoint().FloatRouter {
		router = floatMatrix
	}
	out := []spec{{name: p + "gate", role: router, rows: c.NumExperts, cols: h}}
	if c.RouterBias {
		out = append(out, spec{name: p + "gate.bias", role: vector, rows: c.NumExperts})
	}
	if c.CorrectionBias {
		out = append(out, spec{name: p + "gate.e_score_correction_bias", role: vector, rows: c.NumExperts})
	}
	if c.ExpertBias {
		out = append(out, expertBiasSpecs(c, src, p+"switch_mlp.")...)
	}
	switch c.SharedExpert {
	case model.SharedExpertGated:
		out = append(out, spec{name: p + "shared_expert_gate", role: gateMatrix, rows: 1, cols: h})
		out = append(out, mlpSpecs(p+"shared_expert.", h, c.SharedExpertIntermediateSize)...)
	case model.SharedExpertUngated:
		out = append(out, mlpSpecs(p+"shared_experts.", h, c.SharedExpertIntermediateSize)...)
	}
	return out
}

// expertBiasSpecs lists the biases of a layer's routed experts. Those of gates and ups may come in
// turns, as one tensor.
func expertBiasSpecs(c *model.Config, src *source, p string) []spec {
	n, inner := c.NumExperts, c.NumExperts*c.MoEIntermediateSize
	out := []spec{
		{name: p + "gate_proj.bias", role: vector, rows: inner, stack: n},
		{name: p + "up_proj.bias", role: vector, rows: inner, stack: n},
		{name: p + "down_proj.bias", role: vector, rows: n * c.HiddenSize, stack: n},
	}
	if both := p + "gate_up_proj.bias"; src.has(both) {
		for i := range out[:2] {
			out[i].from = &part{name: both, rows: 2 * inner, take: []rowRange{{first: i, n: inner, step: 2}}}
		}
	}
	return out
}

// mixerSpecs lists the tensors of one layer's mixer.
func mixerSpecs(c *model.Config, src *source, p string, layer model.Layer) []spec {
	switch layer.Mixer {
	case model.LinearAttention:
		return deltaNetSpecs(c, src, p+"linear_attn.")
	case model.LatentAttention:
		out := latentSpecs(c, src, p+"self_attn.")
		if layer.Indexer == model.OwnIndexer {
			out = append(out, indexerSpecs(c, p+"self_attn.indexer.")...)
		}
		return out
	default:
		out := attentionSpecs(c, c.Attention(layer.Mixer), p+"self_attn.")
		if layer.Indexer == model.OwnIndexer {
			out = append(out, blockIndexerSpecs(c, p+"self_attn.")...)
		}
		return out
	}
}

func deltaNetSpecs(c *model.Config, src *source, p string) []spec {
	h, heads := c.HiddenSize, c.LinearNumValueHeads
	out := projectionSpecs(c, p)
	if src.has(p + "in_proj_qkvz.weight") {
		regroupInputs(c, p, out[:2])
	}
	if src.has(p + "in_proj_ba.weight") {
		regroupGates(c, p, out[2:])
	}
	out = append(out,
		spec{name: p + "conv1d.weight", role: conv, rows: c.LinearConvDim(), cols: c.LinearConvKernelDim},
		spec{name: p + "A_log", role: decay, rows: heads},
		spec{name: p + "dt_bias", role: vector, rows: heads},
		// plain in every kind of checkpoint
		spec{name: p + "norm.weight", role: vector, rows: c.LinearValueHeadDim},
		spec{name: p + "out_proj", rows: h, cols: c.LinearValueDim()})
	if src.tiled {
		untile(c, out)
	}
	return out
}

// projectionSpecs lists the four projections of gated delta-net's input.
func projectionSpecs(c *model.Config, p string) []spec {
	h, heads := c.HiddenSize, c.LinearNumValueHeads
	return []spec{
		{name: p + "in_proj_qkv", rows: c.LinearConvDim(), cols: h},
		{name: p + "in_proj_z", rows: c.LinearValueDim(), cols: h},
		{name: p + "in_proj_a", rows: heads, cols: h},
		{name: p + "in_proj_b", rows: heads, cols: h},
	}
}

// rowsOfGroups returns n rows of every group of rows, from first on.
func rowsOfGroups(groups, size, first, n int) []rowRange {
	out := make([]rowRange, groups)
	for i := range out {
		out[i] = rowRange{first: i*size + first, n: n}
	}
	return out
}

// regroupInputs makes the projections qkv and z parts of the one that qwen3_next is trained with,
// whose rows are interleaved by key head: for each, in_proj_qkvz has its query, its key, and the
// values and output gates of the value heads that share it.
func regroupInputs(c *model.Config, p string, projections []spec) {
	dk, dv, heads := c.LinearKeyHeadDim, c.LinearValueHeadDim, c.LinearNumKeyHeads
	each := c.LinearNumValueHeads / heads // value heads of a key head
	group := 2*dk + 2*each*dv
	rows := func(first, n int) []rowRange { return rowsOfGroups(heads, group, first, n) }
	for i, take := range [][]rowRange{slices.Concat(rows(0, dk), rows(dk, dk), rows(2*dk, each*dv)), rows(2*dk+each*dv, each*dv)} {
		projections[i].from = &part{name: p + "in_proj_qkvz", rows: heads * group, take: take}
	}
}

// regroupGates makes the projections a and b parts of in_proj_ba, which has for each key head b,
// then a, of the value heads that share it.
func regroupGates(c *model.Config, p string, projections []spec) {
	heads := c.LinearNumKeyHeads
	each := c.LinearNumValueHeads / heads
	for i, first := range []int{each, 0} {
		take := rowsOfGroups(heads, 2*each, first, each)
		projections[i].from = &part{name: p + "in_proj_ba", rows: heads * 2 * each, take: take}
	}
}

// attentionSpecs lists softmax attention. If its output is gated, the query projection has for each
// head the query, then the gate.
func attentionSpecs(c *model.Config, a model.Attention, p string) []spec {
	h, q := c.HiddenSize, a.Heads*a.HeadDim
	queries := q
	if c.AttnOutputGate {
		queries = 2 * q
	}
	out := []spec{
		{name: p + "q_proj", rows: queries, cols: h},
		{name: p + "k_proj", rows: a.KeyDim(), cols: h},
		{name: p + "v_proj", rows: a.ValuesDim(), cols: h},
		{name: p + "o_proj", rows: h, cols: a.Heads * a.ValueDim},
	}
	if c.HeadGate {
		out = append(out, spec{name: p + "g_proj", rows: a.Heads, cols: h})
	}
	if c.AttentionBias {
		out = append(out,
			spec{name: p + "q_proj.bias", role: vector, rows: queries},
			spec{name: p + "k_proj.bias", role: vector, rows: a.KeyDim()},
			spec{name: p + "v_proj.bias", role: vector, rows: a.ValuesDim()})
	}
	if c.OutputBias {
		out = append(out, spec{name: p + "o_proj.bias", role: vector, rows: h})
	}
	if a.Sinks {
		out = append(out, spec{name: p + "sinks", role: vector, rows: a.Heads})
	}
	qn, kn := c.HeadDim, c.HeadDim
	switch c.QKNorm {
	case model.NoQKNorm:
		return out
	case model.QKNormWhole:
		qn, kn = q, a.KeyDim()
	}
	return append(out,
		spec{name: p + "q_norm.weight", role: norm, rows: qn},
		spec{name: p + "k_norm.weight", role: norm, rows: kn})
}

// latentSpecs lists latent attention. The matrix that computes keys and values from the latent
// vector comes whole, or as mlx-lm splits it: embed_q, each head's key part transposed, and
// unembed_out, the value part.
func latentSpecs(c *model.Config, src *source, p string) []spec {
	h, heads := c.HiddenSize, c.NumAttentionHeads
	queries := heads * (c.QKNopeHeadDim + c.QKRopeHeadDim)
	out := []spec{
		{name: p + "kv_a_proj_with_mqa", rows: c.LatentDim(), cols: h},
		{name: p + "kv_a_layernorm.weight", role: vector, rows: c.KVLoraRank},
		{name: p + "o_proj", rows: h, cols: heads * c.VHeadDim},
	}
	if c.QLoraRank > 0 {
		out = append(out,
			spec{name: p + "q_a_proj", rows: c.QLoraRank, cols: h},
			spec{name: p + "q_a_layernorm.weight", role: vector, rows: c.QLoraRank},
			spec{name: p + "q_b_proj", rows: queries, cols: c.QLoraRank})
	} else {
		out = append(out, spec{name: p + "q_proj", rows: queries, cols: h})
	}
	if src.has(p+"embed_q.weight") || src.has(p+"unembed_out.weight") {
		return append(out,
			spec{name: p + "embed_q", rows: heads * c.KVLoraRank, cols: c.QKNopeHeadDim, stack: heads, byHead: true},
			spec{name: p + "unembed_out", rows: heads * c.VHeadDim, cols: c.KVLoraRank, stack: heads, byHead: true})
	}
	return append(out, spec{name: p + "kv_b_proj", rows: heads * (c.QKNopeHeadDim + c.VHeadDim), cols: c.KVLoraRank, byHead: true})
}

// indexerSpecs lists the indexer that chooses positions for latent attention.
func indexerSpecs(c *model.Config, p string) []spec {
	return []spec{
		{name: p + "wq_b", rows: c.IndexNHeads * c.IndexHeadDim, cols: c.QLoraRank},
		{name: p + "wk", rows: c.IndexHeadDim, cols: c.HiddenSize},
		{name: p + "weights_proj", role: floatMatrix, rows: c.IndexNHeads, cols: c.HiddenSize},
		{name: p + "k_norm.weight", role: vector, rows: c.IndexHeadDim},
		{name: p + "k_norm.bias", role: vector, rows: c.IndexHeadDim},
	}
}

// blockIndexerSpecs lists the indexer that chooses blocks of positions for softmax attention.
func blockIndexerSpecs(c *model.Config, p string) []spec {
	return []spec{
		{name: p + "index_q_proj", rows: c.IndexNHeads * c.IndexHeadDim, cols: c.HiddenSize},
		{name: p + "index_k_proj", rows: c.IndexHeadDim, cols: c.HiddenSize},
		{name: p + "index_q_norm.weight", role: norm, rows: c.IndexHeadDim},
		{name: p + "index_k_norm.weight", role: norm, rows: c.IndexHeadDim},
	}
}
