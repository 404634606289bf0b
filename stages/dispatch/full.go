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
	a                   model.Attention
	index               int // among the layers of its kind
	rotary              int // its channels in a rotary table of its own, or 0
	q, k, v, o          gpu.Matrix
	qBias, kBias, vBias gpu.View
	oBias, sinks        gpu.View
	qNorm, kNorm        gpu.View
	gate                gpu.Matrix    // of heads; without rows there is none
	indexer             *blockIndexer // nil without one
}

func newFull(b *binder, m *model.Config, prefix string, layer model.Layer) *full {
	a := m.Attention(layer.Mixer)
	f := &full{m: m, a: a, index: layer.MixerIndex}
	if a.Window > 0 {
		f.rotary = windowRotary(m)
	}
	if layer.Indexer == model.OwnIndexer {
		f.indexer = newBlockIndexer(b, m, prefix, layer.IndexerIndex)
	}
	if m.HeadGate {
		f.gate = b.matrix(prefix+"g_proj", a.Heads, m.HiddenSize)
	}
	heads := a.Heads * a.HeadDim
	queries := heads
	if m.AttnOutputGate {
		queries *= 2
	}
	f.q = b.matrix(prefix+"q_proj", queries, m.HiddenSize)
	f.k = b.matrix(prefix+"k_proj", a.KeyDim(), m.HiddenSize)
	f.v = b.matrix(prefix+"v_proj", a.ValuesDim(), m.HiddenSize)
	f.o = b.matrix(prefix+"o_proj", m.HiddenSize, a.Heads*a.ValueDim)
	b.bias(&f.qBias, m.AttentionBias, prefix+"q_proj.bias", queries)
	b.bias(&f.kBias, m.AttentionBias, prefix+"k_proj.bias", a.KeyDim())
	b.bias(&f.vBias, m.AttentionBias, prefix+"v_proj.bias", a.ValuesDim())
	b.bias(&f.oBias, m.OutputBias, prefix+"o_proj.bias", m.HiddenSize)
	b.bias(&f.sinks, a.Sinks, prefix+"sinks", a.Heads)
	switch m.QKNorm {
	case model.QKNormPerHead:
		b.vector(&f.qNorm, prefix+"q_norm.weight", a.HeadDim)
		b.vector(&f.kNorm, prefix+"k_norm.weight", a.HeadDim)
	case model.QKNormWhole:
		b.vector(&f.qNorm, prefix+"q_norm.weight", heads)
		b.vector(&f.kNorm, prefix+"k_norm.weight", a.KeyDim())
	}
	return f
}

// queryStride returns the floats from one head's query to the next: with an output gate, each is
// followed by its gate.
func (x *full) queryStride() int {
	if x.m.AttnOutputGate {
		return 2 * x.a.HeadDim
	}
	return x.a.HeadDim
}

// views is what the mixer keeps in l.mixer: queries [rows, heads, stride], keys, values, and what
// the heads give.
func (x *full) views(l *lane) (q, k, v, y gpu.View) {
	q = l.mixer
	k = q.Floats(l.rows * x.a.Heads * x.queryStride())
	v = k.Floats(l.rows * x.a.KeyDim())
	return q, k, v, v.Floats(l.rows * x.a.ValuesDim())
}

// rope returns the layer's rotary table.
func (x *full) rope(l *lane) gpu.View {
	if x.rotary > 0 {
		return l.windowRope
	}
	return l.rope
}

// slices returns the layer's part of a step, in pieces that are computed one after the other.
func (x *full) slices(l *lane) []fullSegments {
	if x.a.Window > 0 {
		return l.windows
	}
	kind := attendsAll
	if x.indexer != nil {
		kind = choosesBlocks
	}
	return l.full[kind : kind+1]
}

// cache returns where the layer's keys and values lie.
func (x *full) cache(l *lane) gpu.KVLayout {
	if x.a.Window > 0 {
		return l.layout.windowKV(x.index)
	}
	return l.layout.fullKV(x.index)
}

func (x *full) encode(cmd *gpu.Commands, l *lane) {
	m, a, rows := x.m, &x.a, l.rows
	heads, dim, stride := a.Heads, a.HeadDim, x.queryStride()
	q, k, v, y := x.views(l)
	gpu.Encode(cmd, gpu.MatMul{W: x.q, X: l.normed, Bias: x.qBias, Y: q, Rows: rows})
	gpu.Encode(cmd, gpu.MatMul{W: x.k, X: l.normed, Bias: x.kBias, Y: k, Rows: rows})
	gpu.Encode(cmd, gpu.MatMul{W: x.v, X: l.normed, Bias: x.vBias, Y: v, Rows: rows})
	scratch := y.Floats(rows * heads * a.ValueDim)
	if x.indexer != nil {
		x.indexer.encodeProducts(cmd, l, scratch)
	}
	gate := scratch.Floats(rows * indexerFloats(m))
	if m.HeadGate {
		gpu.Encode(cmd, gpu.MatMul{W: x.gate, X: l.normed, Y: gate, Rows: rows})
	}
	if m.NormAfterRope {
		x.encodeRope(cmd, l, q, k)
		x.encodeNorms(cmd, q, k, rows)
	} else {
		x.encodeNorms(cmd, q, k, rows)
		x.encodeRope(cmd, l, q, k)
	}
	valueDim := 0
	if a.ValueDim != dim {
		valueDim = a.ValueDim
	}
	slices, cache := x.slices(l), x.cache(l)
	for i := range slices {
		if len(slices[i].all) == 0 {
			break
		}
		gpu.Encode(cmd, gpu.AppendKV{K: k, V: v, Cache: cache, Segments: slices[i].all})
		if x.indexer != nil {
			x.indexer.encode(cmd, l, scratch)
		}
		x.encodeAttention(cmd, l, &slices[i], gpu.Attention{
			Q: q, Sinks: x.sinks, Y: y, QRowStride: heads * stride, QHeadStride: stride, Heads: heads, KVHeads: a.KVHeads, HeadDim: dim,
			ValueDim: valueDim, Window: a.Window, Scale: float32(m.AttentionScale()), ValueScale: m.ValueScale,
			Cache: cache,
		})
	}
	l.tap(cmd, stages.DumpHeads, y)
	if m.AttnOutputGate {
		gpu.Encode(cmd, gpu.SigmoidGate{
			X: y, G: q.Floats(dim), Rows: rows, Heads: heads, Dim: dim, GRowStride: heads * stride, GHeadStride: stride,
		})
	}
	if m.HeadGate {
		gpu.Encode(cmd, gpu.SigmoidGate{
			X: y, G: gate, Rows: rows, Heads: heads, Dim: a.ValueDim, GRowStride: heads, GHeadStride: 1, PerHead: true,
		})
	}
	gpu.Encode(cmd, gpu.MatMul{W: x.o, X: y, Bias: x.oBias, Y: l.mixed, Rows: rows})
}

// encodeRope rotates queries and keys.
func (x *full) encodeRope(cmd *gpu.Commands, l *lane, q, k gpu.View) {
	m, a, stride := x.m, &x.a, x.queryStride()
	if a.RotaryDim == 0 {
		return
	}
	gpu.Encode(cmd, gpu.Rope{
		X: q, Table: x.rope(l), Rows: l.rows, Heads: a.Heads, Rotary: a.RotaryDim, RowStride: a.Heads * stride, HeadStride: stride,
		Interleaved: m.RopeInterleaved,
	})
	gpu.Encode(cmd, gpu.Rope{
		X: k, Table: x.rope(l), Rows: l.rows, Heads: a.KVHeads, Rotary: a.RotaryDim, RowStride: a.KeyDim(), HeadStride: a.HeadDim,
		Interleaved: m.RopeInterleaved,
	})
}

// encodeAttention attends to all positions, or to those that are chosen.
func (x *full) encodeAttention(cmd *gpu.Commands, l *lane, s *fullSegments, op gpu.Attention) {
	if op.Segments = s.dense; len(s.dense) > 0 {
		gpu.Encode(cmd, op)
	}
	if len(s.chosen) == 0 {
		return
	}
	m := x.m
	op.Segments, op.Chosen, op.Budget, op.Block = s.chosen, l.positions, m.IndexTopK, m.IndexBlock
	gpu.Encode(cmd, op)
	for _, c := range s.chosen {
		l.tapRows(cmd, stages.DumpPositions, c.Row, c.Rows, l.positions.Floats(c.Row*m.IndexLists()*m.IndexTopK))
	}
}

func (x *full) tap(cmd *gpu.Commands, l *lane) {
	m, a, stride := x.m, &x.a, x.queryStride()
	q, k, v, y := x.views(l)
	heads := vectors{heads: a.Heads, dim: a.HeadDim, row: a.Heads * stride, head: stride}
	l.tapVectors(cmd, stages.DumpQ, q, heads)
	l.tap(cmd, stages.DumpK, k)
	l.tap(cmd, stages.DumpV, v)
	if m.AttnOutputGate {
		l.tapVectors(cmd, stages.DumpQGate, q.Floats(a.HeadDim), heads)
		l.tap(cmd, stages.DumpHeadsGated, y)
	}
}

// encodeNorms normalises queries and keys, head by head or whole rows.
func (x *full) encodeNorms(cmd *gpu.Commands, q, k gpu.View, rows int) {
	m, a, stride := x.m, &x.a, x.queryStride()
	switch m.QKNorm {
	case model.QKNormPerHead:
		gpu.Encode(cmd, gpu.RMSNorm{
			X: q, Y: q, W: x.qNorm, Vectors: rows * a.Heads, Dim: a.HeadDim, XStride: stride, YStride: stride, Eps: m.RMSNormEps,
		})
		gpu.Encode(cmd, gpu.RMSNorm{X: k, Y: k, W: x.kNorm, Vectors: rows * a.KVHeads, Dim: a.HeadDim, Eps: m.RMSNormEps})
	case model.QKNormWhole:
		gpu.Encode(cmd, gpu.RMSNorm{X: q, Y: q, W: x.qNorm, Vectors: rows, Dim: a.Heads * a.HeadDim, Eps: m.RMSNormEps})
		gpu.Encode(cmd, gpu.RMSNorm{X: k, Y: k, W: x.kNorm, Vectors: rows, Dim: a.KeyDim(), Eps: m.RMSNormEps})
	}
}
