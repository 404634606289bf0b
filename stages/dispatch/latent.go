package dispatch

import (
	"slices"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/stages"
)

// latent is a layer of multi-head latent attention (architectures.md, 5.1). One vector of each
// position is kept: the latent, from which every head's key and value come, and the rotated key
// that all heads share.
//
// Decoding uses the folded form: queries are taken into the space of the latents, and sums of
// latents back out of it. Prompts that are long enough use the expanded form, which computes keys
// and values of each head once for many rows.
type latent struct {
	m              *model.Config
	index          int        // among the latent layers
	qa, qb, q      gpu.Matrix // compressed queries, or q alone
	qaNorm, kvNorm gpu.View
	kva, o         gpu.Matrix
	keys, values   gpu.Matrix
	split          bool     // keys and values are matrices of their own, the keys transposed
	indexer        *indexer // nil without one of its own
}

func newLatent(b *binder, m *model.Config, prefix string, kind model.Layer) *latent {
	x := &latent{m: m, index: kind.MixerIndex}
	if kind.Indexer == model.OwnIndexer {
		x.indexer = newIndexer(b, m, prefix+"indexer.", kind.IndexerIndex)
	}
	heads := m.NumAttentionHeads
	queries := heads * (m.QKNopeHeadDim + m.QKRopeHeadDim)
	if m.QLoraRank == 0 {
		x.q = b.matrix(prefix+"q_proj", queries, m.HiddenSize)
	} else {
		x.qa = b.matrix(prefix+"q_a_proj", m.QLoraRank, m.HiddenSize)
		x.qb = b.matrix(prefix+"q_b_proj", queries, m.QLoraRank)
		b.vector(&x.qaNorm, prefix+"q_a_layernorm.weight", m.QLoraRank)
	}
	x.kva = b.matrix(prefix+"kv_a_proj_with_mqa", m.LatentDim(), m.HiddenSize)
	b.vector(&x.kvNorm, prefix+"kv_a_layernorm.weight", m.KVLoraRank)
	if x.split = b.w.Has(prefix + "embed_q.weight"); x.split {
		x.keys = b.matrix(prefix+"embed_q", heads*m.KVLoraRank, m.QKNopeHeadDim)
		x.values = b.matrix(prefix+"unembed_out", heads*m.VHeadDim, m.KVLoraRank)
	} else {
		x.keys = b.matrix(prefix+"kv_b_proj", heads*(m.QKNopeHeadDim+m.VHeadDim), m.KVLoraRank)
		x.values = x.keys
	}
	x.o = b.matrix(prefix+"o_proj", m.HiddenSize, heads*m.VHeadDim)
	return x
}

// blocks returns how many rows of keys and values a head has, and which of the latter is its first
// value.
func (x *latent) blocks() (keyRows, valueRows, firstValue int) {
	if x.split {
		return x.m.KVLoraRank, x.m.VHeadDim, 0
	}
	both := x.m.QKNopeHeadDim + x.m.VHeadDim
	return both, both, x.m.QKNopeHeadDim
}

// views is what the mixer keeps in l.mixer: queries [rows, heads, nope and rotated], what goes to
// the cache [rows, latent and rotated], what the heads give, and scratch.
func (x *latent) views(l *lane) (q, kept, y, rest gpu.View) {
	m, heads := x.m, x.m.NumAttentionHeads
	q = l.mixer
	kept = q.Floats(l.rows * heads * (m.QKNopeHeadDim + m.QKRopeHeadDim))
	y = kept.Floats(l.rows * m.LatentDim())
	return q, kept, y, y.Floats(l.rows * heads * m.VHeadDim)
}

// foldedViews is what the folded form keeps in the scratch: queries [rows, heads, latent and
// rotated], and sums of latents [rows, heads, latent].
func (x *latent) foldedViews(scratch gpu.View, rows int) (folded, sums gpu.View) {
	return scratch, scratch.Floats(rows * x.m.NumAttentionHeads * x.m.LatentDim())
}

func (x *latent) tap(cmd *gpu.Commands, l *lane) {
	m, heads := x.m, x.m.NumAttentionHeads
	width := m.QKNopeHeadDim + m.QKRopeHeadDim
	q, kept, y, rest := x.views(l)
	l.tap(cmd, stages.DumpQ, q)
	l.tapVectors(cmd, stages.DumpQPe, q.Floats(m.QKNopeHeadDim), vectors{heads: heads, dim: m.QKRopeHeadDim, row: heads * width, head: width})
	l.tapVectors(cmd, stages.DumpKVLat, kept, vectors{heads: 1, dim: m.KVLoraRank, row: m.LatentDim(), head: m.LatentDim()})
	l.tapVectors(cmd, stages.DumpKPe, kept.Floats(m.KVLoraRank), vectors{heads: 1, dim: m.QKRopeHeadDim, row: m.LatentDim(), head: m.LatentDim()})
	l.tap(cmd, stages.DumpHeads, y)
	folded, sums := x.foldedViews(rest, l.rows)
	for _, s := range l.latent.inLatents() {
		at := vectors{heads: heads, dim: m.KVLoraRank, row: heads * m.LatentDim(), head: m.LatentDim(), first: s.Row, rows: s.Rows}
		l.tapVectors(cmd, stages.DumpQFolded, folded.Floats(s.Row*at.row), at)
		l.tapRows(cmd, stages.DumpLatents, s.Row, s.Rows, sums.Floats(s.Row*heads*m.KVLoraRank))
	}
}

// cache returns where the layer's latents and rotated keys lie.
func (x *latent) cache(l *lane) gpu.KVLayout { return l.layout.latentKV(x.index) }

func (x *latent) encode(cmd *gpu.Commands, l *lane) {
	m, rows, heads := x.m, l.rows, x.m.NumAttentionHeads
	width := m.QKNopeHeadDim + m.QKRopeHeadDim
	q, kept, y, rest := x.views(l)
	x.encodeProducts(cmd, l, q, kept, rest)
	l.tap(cmd, stages.DumpQLat, rest)
	if x.indexer != nil {
		x.indexer.encode(cmd, l, rest)
	}
	for _, c := range l.latent.chosen {
		l.tapRows(cmd, stages.DumpPositions, c.Row, c.Rows, l.positions.Floats(c.Row*m.IndexTopK))
	}
	gpu.Encode(cmd, gpu.RMSNorm{
		X: kept, Y: kept, W: x.kvNorm, Vectors: rows, Dim: m.KVLoraRank, XStride: m.LatentDim(), YStride: m.LatentDim(), Eps: model.LatentNormEps,
	})
	gpu.Encode(cmd, gpu.Rope{
		X: kept.Floats(m.KVLoraRank), Table: l.rope, Rows: rows, Heads: 1, Rotary: m.QKRopeHeadDim, RowStride: m.LatentDim(),
		HeadStride: m.QKRopeHeadDim, Interleaved: m.RopeInterleaved,
	})
	turn := gpu.Rope{
		X: q.Floats(m.QKNopeHeadDim), Table: l.rope, Rows: rows, Heads: heads, Rotary: m.QKRopeHeadDim, RowStride: heads * width,
		HeadStride: width, Interleaved: m.RopeInterleaved,
	}
	if m.QueryGrowth != nil {
		turn.X, turn.Table, turn.Rotary = q, l.queryRope, width
	}
	gpu.Encode(cmd, turn)
	s := &l.latent
	gpu.Encode(cmd, gpu.AppendKV{K: kept, Cache: x.cache(l), Segments: s.all})
	if len(s.folded)+len(s.chosen) > 0 {
		x.encodeFolded(cmd, l, q, rest, y)
	}
	if len(s.expanded) > 0 {
		x.encodeExpanded(cmd, l, q, y)
	}
	gpu.Encode(cmd, gpu.MatMul{W: x.o, X: y, Y: l.mixed, Rows: rows})
}

// encodeProducts computes queries and what is kept. Products of the same input follow one another,
// for devices that compute them together.
func (x *latent) encodeProducts(cmd *gpu.Commands, l *lane, q, kept, scratch gpu.View) {
	m, rows := x.m, l.rows
	if m.QLoraRank == 0 {
		gpu.Encode(cmd, gpu.MatMul{W: x.q, X: l.normed, Y: q, Rows: rows})
		gpu.Encode(cmd, gpu.MatMul{W: x.kva, X: l.normed, Y: kept, Rows: rows})
		return
	}
	gpu.Encode(cmd, gpu.MatMul{W: x.qa, X: l.normed, Y: scratch, Rows: rows})
	gpu.Encode(cmd, gpu.MatMul{W: x.kva, X: l.normed, Y: kept, Rows: rows})
	if x.indexer != nil {
		x.indexer.encodeInput(cmd, l, scratch)
	}
	gpu.Encode(cmd, gpu.RMSNorm{X: scratch, Y: scratch, W: x.qaNorm, Vectors: rows, Dim: m.QLoraRank, Eps: model.LatentNormEps})
	gpu.Encode(cmd, gpu.MatMul{W: x.qb, X: scratch, Y: q, Rows: rows})
	if x.indexer != nil {
		x.indexer.encodeQueries(cmd, l, scratch)
	}
}

// encodeFolded attends in the space of the latents. What is per head there is computed for the rows
// from the first to the last that need it. Rotated channels are copied right after their rotation,
// for devices that do both at once.
func (x *latent) encodeFolded(cmd *gpu.Commands, l *lane, q, scratch, y gpu.View) {
	m, heads := x.m, x.m.NumAttentionHeads
	width, kept := m.QKNopeHeadDim+m.QKRopeHeadDim, m.LatentDim()
	keyRows, valueRows, firstValue := x.blocks()
	first, n := rowsOf(l.latent.inLatents())
	folded, sums := x.foldedViews(scratch, l.rows)
	gpu.Encode(cmd, gpu.CopyHeads{
		X: q.Floats(first*heads*width + m.QKNopeHeadDim), Y: folded.Floats(first*heads*kept + m.KVLoraRank), Rows: n, Heads: heads, Dim: m.QKRopeHeadDim,
		XRowStride: heads * width, XHeadStride: width, YRowStride: heads * kept, YHeadStride: kept,
	})
	gpu.Encode(cmd, gpu.HeadMatMul{
		W: x.keys, X: q.Floats(first * heads * width), Y: folded.Floats(first * heads * kept), Rows: n, Heads: heads, In: m.QKNopeHeadDim, Out: m.KVLoraRank,
		HeadRows: keyRows, Transposed: !x.split, XRowStride: heads * width, XHeadStride: width, YRowStride: heads * kept, YHeadStride: kept,
	})
	x.encodeAttention(cmd, l, folded, sums)
	gpu.Encode(cmd, gpu.HeadMatMul{
		W: x.values, X: sums.Floats(first * heads * m.KVLoraRank), Y: y.Floats(first * heads * m.VHeadDim), Rows: n, Heads: heads, In: m.KVLoraRank, Out: m.VHeadDim,
		HeadRows: valueRows, FirstRow: firstValue, XRowStride: heads * m.KVLoraRank, XHeadStride: m.KVLoraRank,
		YRowStride: heads * m.VHeadDim, YHeadStride: m.VHeadDim,
	})
}

// encodeAttention attends to latents: to all positions, or to those that are chosen.
func (x *latent) encodeAttention(cmd *gpu.Commands, l *lane, folded, sums gpu.View) {
	m, s := x.m, &l.latent
	op := gpu.Attention{
		Q: folded, Y: sums, QRowStride: m.NumAttentionHeads * m.LatentDim(), QHeadStride: m.LatentDim(), Heads: m.NumAttentionHeads, KVHeads: 1,
		HeadDim: m.LatentDim(), ValueDim: m.KVLoraRank, Scale: float32(m.AttentionScale()),
		Cache: x.cache(l), Segments: s.folded,
	}
	if len(s.folded) > 0 {
		gpu.Encode(cmd, op)
	}
	if len(s.chosen) > 0 {
		op.Segments, op.Chosen, op.Budget = s.chosen, l.positions, m.IndexTopK
		gpu.Encode(cmd, op)
	}
}

// encodeExpanded attends to keys and values that are computed from the latents. It runs after the
// folded form, which may have written what it writes.
func (x *latent) encodeExpanded(cmd *gpu.Commands, l *lane, q, y gpu.View) {
	m, heads := x.m, x.m.NumAttentionHeads
	width := m.QKNopeHeadDim + m.QKRopeHeadDim
	keyRows, valueRows, firstValue := x.blocks()
	gpu.Encode(cmd, gpu.LatentAttention{
		Q: q, Y: y, QRowStride: heads * width, QHeadStride: width, Keys: x.keys, Values: x.values, KeyRows: keyRows, ValueRows: valueRows,
		FirstValue: firstValue, KeysTransposed: x.split, Heads: heads, Rank: m.KVLoraRank, Nope: m.QKNopeHeadDim, Rope: m.QKRopeHeadDim,
		ValueDim: m.VHeadDim, Scale: float32(m.AttentionScale()),
		Cache: x.cache(l), Segments: l.latent.expanded,
	})
}

// latentSegments is the part that layers of latent attention have in a step, told apart by form.
// Rows that choose their positions are in chosen: they use the folded form.
type latentSegments struct {
	all, folded, expanded, chosen []gpu.KVSegment
	latents                       []gpu.KVSegment // see inLatents
}

func (s *latentSegments) reset() {
	s.all, s.folded, s.expanded, s.chosen = s.all[:0], s.folded[:0], s.expanded[:0], s.chosen[:0]
}

// add adds a segment, whose rows choose positions from position budget on; 0: never.
func (s *latentSegments) add(seg gpu.KVSegment, expanded bool, budget int) {
	s.all = append(s.all, seg)
	all, some := splitAt(seg, budget)
	switch {
	case all.Rows > 0 && expanded:
		s.expanded = append(s.expanded, all)
	case all.Rows > 0:
		s.folded = append(s.folded, all)
	}
	if some.Rows > 0 {
		s.chosen = append(s.chosen, some)
	}
}

// inLatents returns the segments that use the folded form, in the order of their rows.
func (s *latentSegments) inLatents() []gpu.KVSegment {
	if len(s.chosen) == 0 {
		return s.folded
	}
	s.latents = append(append(s.latents[:0], s.folded...), s.chosen...)
	slices.SortFunc(s.latents, func(a, b gpu.KVSegment) int { return a.Row - b.Row })
	return s.latents
}

// rowsOf returns which rows segments have, which are in order: from the first to the last.
func rowsOf(segments []gpu.KVSegment) (first, n int) {
	last := segments[len(segments)-1]
	return segments[0].Row, last.Row + last.Rows - segments[0].Row
}

// expands reports whether a segment is computed in the expanded form: if its chunk, read in steps
// of at most chunkRows, takes fewer multiplications so. That depends on the caller's chunk alone,
// never on the company its rows travel in, and so do the bits.
func expands(m *model.Config, g *stages.Segment, chunkRows int) bool {
	if g.ChunkRows < 2 {
		return false
	}
	rows, end := min(g.ChunkRows, chunkRows), g.ChunkPos+g.ChunkRows
	if m.IndexTopK > 0 { // what lies behind is chosen from, by rows that use the folded form
		end = min(end, m.IndexTopK)
	}
	unfold := (m.QKNopeHeadDim + m.VHeadDim) * m.KVLoraRank
	expanded := end * (unfold + rows*(m.QKNopeHeadDim+m.QKRopeHeadDim+m.VHeadDim))
	folded := rows * (unfold + end*(m.KVLoraRank+m.LatentDim()))
	return expanded < folded
}
