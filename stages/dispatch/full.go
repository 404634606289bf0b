package dispatch

import (
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/stages"
)

// full is a softmax attention layer (architectures.md, 1.5, 2.3, 4, 7, 8), with whichever of output
// gate, norms of queries and keys, biases and sinks the model has.
type full struct {
	m                   *model.Config
	index               int // among the full layers
	q, k, v, o          gpu.Matrix
	qBias, kBias, vBias gpu.View
	oBias, sinks        gpu.View
	qNorm, kNorm        gpu.View
}

func newFull(b *binder, m *model.Config, prefix string, index int) *full {
	f := &full{m: m, index: index}
	heads := m.NumAttentionHeads * m.HeadDim
	queries := heads
	if m.AttnOutputGate {
		queries *= 2
	}
	f.q = b.matrix(prefix+"q_proj", queries, m.HiddenSize)
	f.k = b.matrix(prefix+"k_proj", m.KVDim(), m.HiddenSize)
	f.v = b.matrix(prefix+"v_proj", m.KVDim(), m.HiddenSize)
	f.o = b.matrix(prefix+"o_proj", m.HiddenSize, heads)
	b.bias(&f.qBias, m.AttentionBias, prefix+"q_proj.bias", queries)
	b.bias(&f.kBias, m.AttentionBias, prefix+"k_proj.bias", m.KVDim())
	b.bias(&f.vBias, m.AttentionBias, prefix+"v_proj.bias", m.KVDim())
	b.bias(&f.oBias, m.OutputBias, prefix+"o_proj.bias", m.HiddenSize)
	b.bias(&f.sinks, m.AttentionSinks, prefix+"sinks", m.NumAttentionHeads)
	switch m.QKNorm {
	case model.QKNormPerHead:
		b.vector(&f.qNorm, prefix+"q_norm.weight", m.HeadDim)
		b.vector(&f.kNorm, prefix+"k_norm.weight", m.HeadDim)
	case model.QKNormWhole:
		b.vector(&f.qNorm, prefix+"q_norm.weight", heads)
		b.vector(&f.kNorm, prefix+"k_norm.weight", m.KVDim())
	}
	return f
}

// queryStride returns the floats from one head's query to the next: with an output gate, each is
// followed by its gate.
func (x *full) queryStride() int {
	if x.m.AttnOutputGate {
		return 2 * x.m.HeadDim
	}
	return x.m.HeadDim
}

// views is what the mixer keeps in l.mixer: queries [rows, heads, stride], keys, values, and what
// the heads give.
func (x *full) views(l *lane) (q, k, v, y gpu.View) {
	q = l.mixer
	k = q.Floats(l.rows * x.m.NumAttentionHeads * x.queryStride())
	v = k.Floats(l.rows * x.m.KVDim())
	return q, k, v, v.Floats(l.rows * x.m.KVDim())
}

func (x *full) encode(cmd *gpu.Commands, l *lane) {
	m, rows := x.m, l.rows
	heads, dim, stride := m.NumAttentionHeads, m.HeadDim, x.queryStride()
	q, k, v, y := x.views(l)
	cmd.EncodeMatMul(gpu.MatMul{W: x.q, X: l.normed, Bias: x.qBias, Y: q, Rows: rows})
	cmd.EncodeMatMul(gpu.MatMul{W: x.k, X: l.normed, Bias: x.kBias, Y: k, Rows: rows})
	cmd.EncodeMatMul(gpu.MatMul{W: x.v, X: l.normed, Bias: x.vBias, Y: v, Rows: rows})
	x.encodeNorms(cmd, q, k, rows)
	if m.RotaryDim > 0 {
		cmd.EncodeRope(gpu.Rope{
			X: q, Table: l.rope, Rows: rows, Heads: heads, Rotary: m.RotaryDim, RowStride: heads * stride, HeadStride: stride,
			Interleaved: m.RopeInterleaved,
		})
		cmd.EncodeRope(gpu.Rope{
			X: k, Table: l.rope, Rows: rows, Heads: m.NumKeyValueHeads, Rotary: m.RotaryDim, RowStride: m.KVDim(), HeadStride: dim,
			Interleaved: m.RopeInterleaved,
		})
	}
	segments := l.kv[x.index]
	cmd.EncodeAppendKV(gpu.AppendKV{K: k, V: v, Segments: segments})
	cmd.EncodeAttention(gpu.Attention{
		Q: q, Sinks: x.sinks, Y: y, QRowStride: heads * stride, QHeadStride: stride, Heads: heads, KVHeads: m.NumKeyValueHeads, HeadDim: dim,
		Scale: float32(m.AttentionScale()), Segments: segments,
	})
	l.tap(cmd, stages.DumpHeads, y)
	if m.AttnOutputGate {
		cmd.EncodeSigmoidGate(gpu.SigmoidGate{
			X: y, G: q.Floats(dim), Rows: rows, Heads: heads, Dim: dim, GRowStride: heads * stride, GHeadStride: stride,
		})
	}
	cmd.EncodeMatMul(gpu.MatMul{W: x.o, X: y, Bias: x.oBias, Y: l.mixed, Rows: rows})
}

func (x *full) tap(cmd *gpu.Commands, l *lane) {
	m, stride := x.m, x.queryStride()
	q, k, v, y := x.views(l)
	heads := vectors{heads: m.NumAttentionHeads, dim: m.HeadDim, row: m.NumAttentionHeads * stride, head: stride}
	l.tapVectors(cmd, stages.DumpQ, q, heads)
	l.tap(cmd, stages.DumpK, k)
	l.tap(cmd, stages.DumpV, v)
	if m.AttnOutputGate {
		l.tapVectors(cmd, stages.DumpQGate, q.Floats(m.HeadDim), heads)
		l.tap(cmd, stages.DumpHeadsGated, y)
	}
}

// encodeNorms normalises queries and keys, head by head or whole rows.
func (x *full) encodeNorms(cmd *gpu.Commands, q, k gpu.View, rows int) {
	m, stride := x.m, x.queryStride()
	switch m.QKNorm {
	case model.QKNormPerHead:
		cmd.EncodeRMSNorm(gpu.RMSNorm{
			X: q, Y: q, W: x.qNorm, Vectors: rows * m.NumAttentionHeads, Dim: m.HeadDim, XStride: stride, YStride: stride, Eps: m.RMSNormEps,
		})
		cmd.EncodeRMSNorm(gpu.RMSNorm{X: k, Y: k, W: x.kNorm, Vectors: rows * m.NumKeyValueHeads, Dim: m.HeadDim, Eps: m.RMSNormEps})
	case model.QKNormWhole:
		cmd.EncodeRMSNorm(gpu.RMSNorm{X: q, Y: q, W: x.qNorm, Vectors: rows, Dim: m.NumAttentionHeads * m.HeadDim, Eps: m.RMSNormEps})
		cmd.EncodeRMSNorm(gpu.RMSNorm{X: k, Y: k, W: x.kNorm, Vectors: rows, Dim: m.KVDim(), Eps: m.RMSNormEps})
	}
}
