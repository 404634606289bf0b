package dispatch

import (
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model"
)

// blockIndexer chooses the blocks of positions that the heads of full attention attend to, where
// there are more than the model's budget. Up to the budget rows attend to all positions as they
// would without an indexer, so only the keys are computed for them.
type blockIndexer struct {
	m            *model.Config
	index        int // among the indexers
	q, k         gpu.Matrix
	qNorm, kNorm gpu.View
}

func newBlockIndexer(b *binder, m *model.Config, prefix string, index int) *blockIndexer {
	x := &blockIndexer{m: m, index: index}
	x.q = b.matrix(prefix+"index_q_proj", m.IndexNHeads*m.IndexHeadDim, m.HiddenSize)
	x.k = b.matrix(prefix+"index_k_proj", m.IndexHeadDim, m.HiddenSize)
	b.vector(&x.qNorm, prefix+"index_q_norm.weight", m.IndexHeadDim)
	b.vector(&x.kNorm, prefix+"index_k_norm.weight", m.IndexHeadDim)
	return x
}

// views is what the indexer keeps in scratch memory: keys [rows, dim] and queries [rows, heads,
// dim].
func (x *blockIndexer) views(l *lane, scratch gpu.View) (k, q gpu.View) {
	return scratch, scratch.Floats(l.rows * x.m.IndexHeadDim)
}

// encodeProducts computes the keys of all rows and the queries of those that choose.
func (x *blockIndexer) encodeProducts(cmd *gpu.Commands, l *lane, scratch gpu.View) {
	m, width := x.m, x.m.IndexNHeads*x.m.IndexHeadDim
	k, q := x.views(l, scratch)
	gpu.Encode(cmd, gpu.MatMul{W: x.k, X: l.normed, Y: k, Rows: l.rows})
	if first, n := l.index.choosing(); n > 0 {
		gpu.Encode(cmd, gpu.MatMul{W: x.q, X: l.normed.Floats(first * m.HiddenSize), Y: q.Floats(first * width), Rows: n})
	}
}

// encode keeps the rows' keys and chooses blocks, after the products.
func (x *blockIndexer) encode(cmd *gpu.Commands, l *lane, scratch gpu.View) {
	m, s := x.m, &l.index
	k, q := x.views(l, scratch)
	x.turn(cmd, l, k, x.kNorm, 0, l.rows, 1)
	gpu.Encode(cmd, gpu.AppendKV{K: k, Cache: l.layout.indexKV(x.index), Segments: s.all})
	first, n := s.choosing()
	if n == 0 {
		return
	}
	x.turn(cmd, l, q, x.qNorm, first, n, m.IndexNHeads)
	gpu.Encode(cmd, gpu.Choose{
		Q: q, Chosen: l.positions, Heads: m.IndexNHeads, Dim: m.IndexHeadDim, K: m.IndexTopK, Block: m.IndexBlock, Local: m.IndexLocal,
		Scale: 1, Cache: l.layout.indexKV(x.index), Segments: s.chosen,
	})
}

// turn normalises and rotates the heads of n rows from row first on.
func (x *blockIndexer) turn(cmd *gpu.Commands, l *lane, v, norm gpu.View, first, n, heads int) {
	m, width := x.m, heads*x.m.IndexHeadDim
	v = v.Floats(first * width)
	gpu.Encode(cmd, gpu.RMSNorm{X: v, Y: v, W: norm, Vectors: n * heads, Dim: m.IndexHeadDim, Eps: m.RMSNormEps})
	if m.RotaryDim > 0 {
		gpu.Encode(cmd, gpu.Rope{
			X: v, Table: l.rope.Floats(first * m.RotaryDim), Rows: n, Heads: heads, Rotary: m.RotaryDim, RowStride: width, HeadStride: m.IndexHeadDim,
			Interleaved: m.RopeInterleaved,
		})
	}
}

// fullSegments is the part that layers of full attention have in a step: all rows, those that
// attend to all positions, and those that choose.
type fullSegments struct{ all, dense, chosen []gpu.KVSegment }

func (s *fullSegments) reset() { s.all, s.dense, s.chosen = s.all[:0], s.dense[:0], s.chosen[:0] }

// add adds a segment, whose rows choose from position budget on; 0: never.
func (s *fullSegments) add(seg gpu.KVSegment, budget int) {
	s.all = append(s.all, seg)
	all, some := splitAt(seg, budget)
	if all.Rows > 0 {
		s.dense = append(s.dense, all)
	}
	if some.Rows > 0 {
		s.chosen = append(s.chosen, some)
	}
}

// Which segments of bench.full a layer of full attention has.
const (
	attendsAll    = 0
	choosesBlocks = 1 // it has an indexer
)
