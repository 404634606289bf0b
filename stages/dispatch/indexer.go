package dispatch

import (
	"fmt"
	"math"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/stages"
)

// indexer chooses the positions that rows attend to, where there are more than the model's budget:
// for its own layer, and for those above it that have none. Up to the budget rows attend to all
// positions as they would without an indexer, so only the keys are computed for them.
type indexer struct {
	m             *model.Config
	index         int // among the indexers
	q, k, weights gpu.Matrix
	kNorm, kBias  gpu.View
}

func newIndexer(b *binder, m *model.Config, prefix string, index int) *indexer {
	x := &indexer{m: m, index: index}
	x.q = b.matrix(prefix+"wq_b", m.IndexNHeads*m.IndexHeadDim, m.QLoraRank)
	x.k = b.matrix(prefix+"wk", m.IndexHeadDim, m.HiddenSize)
	x.weights = b.matrix(prefix+"weights_proj", m.IndexNHeads, m.HiddenSize)
	b.vector(&x.kNorm, prefix+"k_norm.weight", m.IndexHeadDim)
	b.vector(&x.kBias, prefix+"k_norm.bias", m.IndexHeadDim)
	return x
}

// indexerFloats returns the float32s of scratch that a row of an indexer needs.
func indexerFloats(m *model.Config) int { return (m.IndexNHeads+1)*m.IndexHeadDim + m.IndexNHeads }

// indexSegments is one indexer's part of a step: all rows, and those that choose.
type indexSegments struct{ all, chosen []gpu.KVSegment }

func (s *indexSegments) add(seg gpu.KVSegment, budget int) {
	s.all = append(s.all, seg)
	if _, some := splitAt(seg, budget); some.Rows > 0 {
		s.chosen = append(s.chosen, some)
	}
}

// splitAt splits a segment into the rows before position budget, which attend to all positions, and
// those from there on, which choose some. A budget of 0 has no end.
func splitAt(seg gpu.KVSegment, budget int) (all, some gpu.KVSegment) {
	all, some = seg, seg
	if budget > 0 {
		all.Rows = min(max(budget-seg.Pos, 0), seg.Rows)
	}
	some.Row, some.Pos, some.Rows = seg.Row+all.Rows, seg.Pos+all.Rows, seg.Rows-all.Rows
	return all, some
}

// checkChoices reports a probe that leaves out a layer which has to choose positions for another.
func checkChoices(m *model.Config, b *stages.Batch) error {
	last := b.Segments[len(b.Segments)-1]
	if b.Probe == nil || m.IndexTopK == 0 || last.Pos+last.Rows <= m.IndexTopK {
		return nil
	}
	mixes := func(layer int) bool { return b.Probe.Runs(layer) && !(b.Probe.Gives(layer) && b.Probe.Experts) }
	own := 0
	for i, l := range m.Layers {
		if l.Indexer == model.OwnIndexer {
			own = i
		}
		if l.Indexer == model.LowerIndexer && mixes(i) && !mixes(own) {
			return fmt.Errorf("dispatch: layer %d attends to the positions that layer %d chooses, beyond the first %d: compute both", i, own, m.IndexTopK)
		}
	}
	return nil
}

// encode keeps the rows' keys and chooses positions. At scratch are the compressed queries [rows,
// QLoraRank], which stay; what follows them is used.
func (x *indexer) encode(cmd *gpu.Commands, l *lane, scratch gpu.View) {
	m, rows := x.m, l.rows
	k := scratch.Floats(rows * m.QLoraRank)
	cmd.EncodeMatMul(gpu.MatMul{W: x.k, X: l.normed, Y: k, Rows: rows})
	cmd.EncodeLayerNorm(gpu.LayerNorm{X: k, Y: k, W: x.kNorm, B: x.kBias, Vectors: rows, Dim: m.IndexHeadDim, Eps: model.LatentNormEps})
	cmd.EncodeRope(gpu.Rope{
		X: k, Table: l.rope, Rows: rows, Heads: 1, Rotary: m.QKRopeHeadDim, RowStride: m.IndexHeadDim, HeadStride: m.IndexHeadDim,
		Interleaved: m.IndexerRopeInterleaved,
	})
	s := &l.index[x.index]
	cmd.EncodeAppendKV(gpu.AppendKV{K: k, Segments: s.all})
	if len(s.chosen) > 0 {
		x.encodeChoice(cmd, l, scratch, k.Floats(rows*m.IndexHeadDim))
	}
}

// encodeChoice computes queries and weights of the rows from the first to the last that choose.
func (x *indexer) encodeChoice(cmd *gpu.Commands, l *lane, compressed, scratch gpu.View) {
	m, segments := x.m, l.index[x.index].chosen
	first, n := rowsOf(segments)
	width := m.IndexNHeads * m.IndexHeadDim
	q, weights := scratch, scratch.Floats(l.rows*width)
	cmd.EncodeMatMul(gpu.MatMul{W: x.q, X: compressed.Floats(first * m.QLoraRank), Y: q.Floats(first * width), Rows: n})
	cmd.EncodeMatMul(gpu.MatMul{W: x.weights, X: l.normed.Floats(first * m.HiddenSize), Y: weights.Floats(first * m.IndexNHeads), Rows: n})
	cmd.EncodeRope(gpu.Rope{
		X: q.Floats(first * width), Table: l.rope.Floats(first * m.RotaryDim), Rows: n, Heads: m.IndexNHeads, Rotary: m.QKRopeHeadDim,
		RowStride: width, HeadStride: m.IndexHeadDim, Interleaved: m.IndexerRopeInterleaved,
	})
	// That the weights are divided by the root of the number of heads, too, changes no choice.
	cmd.EncodeChoose(gpu.Choose{
		Q: q, Weights: weights, Chosen: l.positions, Heads: m.IndexNHeads, Dim: m.IndexHeadDim, K: m.IndexTopK,
		Scale: float32(1 / math.Sqrt(float64(m.IndexHeadDim))), Segments: segments,
	})
}
