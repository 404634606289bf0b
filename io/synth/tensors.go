package synth

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// role is what a matrix or vector is for. It decides the content.
type role uint8

const (
	inner role = iota // matrix: random, keeps the magnitude of its input
	// matrix: random and small; writes to the hidden state but not to the wire
	writes
	embedding  // matrix: codes on the wire, otherwise random
	head       // matrix: reads the token's code, a little of everything else
	routerGate // matrix: reads only the wire
	sharedGate // matrix: random and small, one row
	hiddenNorm // vector: keeps the wire, cancels the ballast
	otherNorm  // vector: about 1
	convTaps   // vector: the taps of each channel lie together
	decay      // vector: A_log
	timeStep   // vector: dt_bias
	bias       // vector: small
	correction // vector: the correction bias of the router
)

// matrixSpec is one matrix of the pack outside the routed experts.
type matrixSpec struct {
	name       string // without ".weight"
	role       role
	rows, cols int
	bits       int  // 4 or 8: codes in groups of 64; 16: BF16
	layer      int  // for routers: index among the layers with experts
	byHead     bool // each head multiplies by rows of its own, so the rows stay in order
}

// format returns how the matrix is stored, in rows.
func (s *matrixSpec) format() quant.Format {
	if s.bits == 16 {
		return quant.BF16
	}
	return quant.Affine(s.bits, groupSize)
}

// vectorSpec is one vector of the pack.
type vectorSpec struct {
	name  string
	role  role
	shape []int
	f32   bool // else BF16
	layer int  // for correction biases: index among the layers with experts
}

// lister collects what a configuration needs.
type lister struct {
	c        *model.Config
	matrices []matrixSpec
	vectors  []vectorSpec
}

// list returns everything but the routed experts, layer after layer, under the names of a pack.
func list(c *model.Config) *lister {
	l, h := &lister{c: c}, c.HiddenSize
	l.matrix("model.embed_tokens", embedding, c.VocabSize, h)
	for i, layer := range c.Layers {
		p := fmt.Sprintf("model.layers.%d.", i)
		l.vector(p+"input_layernorm.weight", hiddenNorm, h)
		switch layer.Mixer {
		case model.LinearAttention:
			l.deltaNet(p + "linear_attn.")
		case model.FullAttention, model.WindowAttention:
			l.attention(c.Attention(layer.Mixer), p+"self_attn.")
			if layer.Indexer == model.OwnIndexer {
				l.blockIndexer(p + "self_attn.")
			}
		default:
			l.latent(p + "self_attn.")
			if layer.Indexer == model.OwnIndexer {
				l.indexer(p + "self_attn.indexer.")
			}
		}
		l.vector(p+"post_attention_layernorm.weight", hiddenNorm, h)
		if layer.FFN == model.DenseMLP {
			l.mlp(p+"mlp.", c.IntermediateSize)
		} else {
			l.experts(p+"mlp.", layer.MoEIndex)
		}
	}
	l.vector("model.norm.weight", hiddenNorm, h)
	l.matrix("lm_head", head, c.VocabSize, h)
	return l
}

// matrices returns the matrices of a configuration.
func matrices(c *model.Config) []matrixSpec { return list(c).matrices }

func (l *lister) matrix(name string, r role, rows, cols int) *matrixSpec {
	l.matrices = append(l.matrices, matrixSpec{name: name, role: r, rows: rows, cols: cols, bits: 4})
	return &l.matrices[len(l.matrices)-1]
}

func (l *lister) vector(name string, r role, shape ...int) *vectorSpec {
	l.vectors = append(l.vectors, vectorSpec{name: name, role: r, shape: shape})
	return &l.vectors[len(l.vectors)-1]
}

func (l *lister) mlp(p string, width int) {
	l.matrix(p+"gate_proj", inner, width, l.c.HiddenSize)
	l.matrix(p+"up_proj", inner, width, l.c.HiddenSize)
	l.matrix(p+"down_proj", writes, l.c.HiddenSize, width)
}

func (l *lister) deltaNet(p string) {
	c, h, heads := l.c, l.c.HiddenSize, l.c.LinearNumValueHeads
	l.matrix(p+"in_proj_qkv", inner, c.LinearConvDim(), h)
	l.matrix(p+"in_proj_z", inner, c.LinearValueDim(), h)
	l.matrix(p+"in_proj_b", inner, heads, h)
	l.matrix(p+"in_proj_a", inner, heads, h)
	l.vector(p+"conv1d.weight", convTaps, c.LinearConvDim(), c.LinearConvKernelDim, 1)
	l.vector(p+"A_log", decay, heads).f32 = true
	l.vector(p+"dt_bias", timeStep, heads)
	l.vector(p+"norm.weight", otherNorm, c.LinearValueHeadDim)
	l.matrix(p+"out_proj", writes, h, c.LinearValueDim())
}

func (l *lister) blockIndexer(p string) {
	c := l.c
	l.matrix(p+"index_q_proj", inner, c.IndexNHeads*c.IndexHeadDim, c.HiddenSize)
	l.matrix(p+"index_k_proj", inner, c.IndexHeadDim, c.HiddenSize)
	l.vector(p+"index_q_norm.weight", otherNorm, c.IndexHeadDim)
	l.vector(p+"index_k_norm.weight", otherNorm, c.IndexHeadDim)
}

func (l *lister) attention(a model.Attention, p string) {
	c, h := l.c, l.c.HiddenSize
	q, kv := a.Heads*a.HeadDim, a.KeyDim()
	rows := q
	if c.AttnOutputGate {
		rows *= 2
	}
	l.matrix(p+"q_proj", inner, rows, h)
	l.matrix(p+"k_proj", inner, kv, h)
	l.matrix(p+"v_proj", inner, a.ValuesDim(), h)
	l.matrix(p+"o_proj", writes, h, a.Heads*a.ValueDim)
	if c.HeadGate {
		l.matrix(p+"g_proj", inner, a.Heads, h)
	}
	if c.AttentionBias {
		l.vector(p+"q_proj.bias", bias, rows)
		l.vector(p+"k_proj.bias", bias, kv)
		l.vector(p+"v_proj.bias", bias, a.ValuesDim())
	}
	switch c.QKNorm {
	case model.QKNormPerHead:
		l.vector(p+"q_norm.weight", otherNorm, c.HeadDim)
		l.vector(p+"k_norm.weight", otherNorm, c.HeadDim)
	case model.QKNormWhole:
		l.vector(p+"q_norm.weight", otherNorm, q)
		l.vector(p+"k_norm.weight", otherNorm, kv)
	}
}

func (l *lister) latent(p string) {
	c, h := l.c, l.c.HiddenSize
	heads, query := c.NumAttentionHeads, c.NumAttentionHeads*(c.QKNopeHeadDim+c.QKRopeHeadDim)
	if c.QLoraRank > 0 {
		l.matrix(p+"q_a_proj", inner, c.QLoraRank, h)
		l.vector(p+"q_a_layernorm.weight", otherNorm, c.QLoraRank)
		l.matrix(p+"q_b_proj", inner, query, c.QLoraRank)
	} else {
		l.matrix(p+"q_proj", inner, query, h)
	}
	l.matrix(p+"kv_a_proj_with_mqa", inner, c.LatentDim(), h)
	l.vector(p+"kv_a_layernorm.weight", otherNorm, c.KVLoraRank)
	l.matrix(p+"kv_b_proj", inner, heads*(c.QKNopeHeadDim+c.VHeadDim), c.KVLoraRank).byHead = true
	l.matrix(p+"o_proj", writes, h, heads*c.VHeadDim)
}

func (l *lister) indexer(p string) {
	c := l.c
	l.matrix(p+"wq_b", inner, c.IndexNHeads*c.IndexHeadDim, c.QLoraRank)
	l.matrix(p+"wk", inner, c.IndexHeadDim, c.HiddenSize)
	l.matrix(p+"weights_proj", inner, c.IndexNHeads, c.HiddenSize).bits = 16
	l.vector(p+"k_norm.weight", otherNorm, c.IndexHeadDim)
	l.vector(p+"k_norm.bias", bias, c.IndexHeadDim)
}

// experts lists the router and the shared expert.
func (l *lister) experts(p string, layer int) {
	c, h := l.c, l.c.HiddenSize
	gate := l.matrix(p+"gate", routerGate, c.NumExperts, h)
	gate.layer, gate.bits = layer, 8
	if len(gates8(c)) == 0 {
		gate.bits = 16
	}
	if c.CorrectionBias {
		v := l.vector(p+"gate.e_score_correction_bias", correction, c.NumExperts)
		v.layer, v.f32 = layer, true
	}
	switch c.SharedExpert {
	case model.SharedExpertGated:
		l.mlp(p+"shared_expert.", c.SharedExpertIntermediateSize)
		l.matrix(p+"shared_expert_gate", sharedGate, 1, h).bits = 8
	case model.SharedExpertUngated:
		l.mlp(p+"shared_experts.", c.SharedExpertIntermediateSize)
	}
}
