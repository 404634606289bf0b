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

// indexSegments is the part that indexers have in a step: all rows, and those that choose.
type indexSegments struct{ all, chosen []gpu.KVSegment }

// choosing returns the rows from the first to the last that choose, if any does.
func (s *indexSegments) choosing() (first, n int) {
	if len(s.chosen) > 0 {
		return rowsOf(s.chosen)
	}
	return 0, 0
}

func (s *indexSegments) reset() { s.all, s.chosen = s.all[:0], s.chosen[:0] }

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
	if b.Probe == nil || m.IndexTopK == 0 || last.Pos+last.Rows <= m.IndexBudget() {
		return nil
	}
	mixes := func(layer int) bool { return b.Probe.Runs(layer) && !(b.Probe.Gives(layer) && b.Probe.Experts) }
	own := 0
	for i, l := range m.Layers {
		if l.Indexer == model.OwnIndexer {
			own = i
		}
		if l.Indexer == model.LowerIndexer && mixes(i) && !mixes(own) {
			return fmt.Errorf("dispatch: layer %d attends to the positions that layer %d chooses, beyond the first %d: compute both", i, own, m.IndexBudget())
		}
	}
	return nil
}

// views is what an indexer keeps in scratch memory behind the compressed queries [rows, QLoraRank]:
// keys [rows, dim], queries [rows, heads, dim] and weights [rows, heads].
func (x *indexer) views(l *lane, scratch gpu.View) (k, q, weights gpu.View) {
	m := x.m
	k = scratch.Floats(l.rows * m.QLoraRank)
	q = k.Floats(l.rows * m.IndexHeadDim)
	return k, q, q.Floats(l.rows * m.IndexNHeads * m.IndexHeadDim)
}

// encodeInput computes what comes from the layer's input: keys, and weights of the rows that
// choose.
func (x *indexer) encodeInput(cmd *gpu.Commands, l *lane, scratch gpu.View) {
	m := x.m
	k, _, weights := x.views(l, scratch)
	gpu.Encode(cmd, gpu.MatMul{W: x.k, X: l.normed, Y: k, Rows: l.rows})
	if first, n := l.index.choosing(); n > 0 {
		gpu.Encode(cmd, gpu.MatMul{W: x.weights, X: l.normed.Floats(first * m.HiddenSize), Y: weights.Floats(first * m.IndexNHeads), Rows: n})
	}
}

// encodeQueries computes the queries of the rows that choose.
func (x *indexer) encodeQueries(cmd *gpu.Commands, l *lane, compressed gpu.View) {
	m, width := x.m, x.m.IndexNHeads*x.m.IndexHeadDim
	_, q, _ := x.views(l, compressed)
	if first, n := l.index.choosing(); n > 0 {
		gpu.Encode(cmd, gpu.MatMul{W: x.q, X: compressed.Floats(first * m.QLoraRank), Y: q.Floats(first * width), Rows: n})
	}
}

// encode keeps the rows' keys and chooses positions, after the products.
func (x *indexer) encode(cmd *gpu.Commands, l *lane, scratch gpu.View) {
	m, rows, s, cache := x.m, l.rows, &l.index, l.layout.indexKV(x.index)
	k, q, weights := x.views(l, scratch)
	gpu.Encode(cmd, gpu.LayerNorm{X: k, Y: k, W: x.kNorm, B: x.kBias, Vectors: rows, Dim: m.IndexHeadDim, Eps: model.LatentNormEps})
	gpu.Encode(cmd, gpu.Rope{
		X: k, Table: l.rope, Rows: rows, Heads: 1, Rotary: m.QKRopeHeadDim, RowStride: m.IndexHeadDim, HeadStride: m.IndexHeadDim,
		Interleaved: m.IndexerRopeInterleaved,
	})
	gpu.Encode(cmd, gpu.AppendKV{K: k, Cache: cache, Segments: s.all})
	first, n := s.choosing()
	if n == 0 {
		return
	}
	width := m.IndexNHeads * m.IndexHeadDim
	gpu.Encode(cmd, gpu.Rope{
		X: q.Floats(first * width), Table: l.rope.Floats(first * m.RotaryDim), Rows: n, Heads: m.IndexNHeads, Rotary: m.QKRopeHeadDim,
		RowStride: width, HeadStride: m.IndexHeadDim, Interleaved: m.IndexerRopeInterleaved,
	})
	// That the weights are divided by the root of the number of heads, too, changes no choice.
	gpu.Encode(cmd, gpu.Choose{
		Q: q, Weights: weights, Chosen: l.positions, Heads: m.IndexNHeads, Dim: m.IndexHeadDim, K: m.IndexTopK,
		Scale: float32(1 / math.Sqrt(float64(m.IndexHeadDim))), Cache: cache, Segments: s.chosen,
	})
}
