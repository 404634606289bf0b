package host

import "github.com/moeflux/moeflux-actor/gpu"

// attnPhase says what the chunks of an attention task are.
type attnPhase uint8

const (
	attnWhole attnPhase = iota // tiles
	attnSpans                  // spans of tiles: few rows that look far back
	attnMerge                  // key-value heads of tiles whose spans are done
)

// attnTask is attention. A tile is some rows of a segment and some query heads of one key-value
// head, which share the reading of keys and values. With few rows a tile has all heads: it then
// reads whole rows of pages in order, which memory delivers twice as fast as one head's parts of
// rows.
type attnTask struct {
	*vectors
	q, y                    []float32
	sinks                   []float32 // [heads], or nil
	op                      *gpu.Attention
	chosen                  []int32 // [rows, kvHeads, budget], or nil: what rows attend to
	budget                  int
	qRowStride, qHeadStride int
	heads, kvHeads          int
	dim, valueDim           int
	perKV                   int // key-value heads in a tile: one or all
	// query heads of each key-value head in a tile, and how many tiles they take
	perHead, parts int
	perRow         int // rows in a tile
	eachMerge      int // queries of a key-value head whose spans a chunk adds
	tiles          int
	window         int // 0: none
	// channels that share a scale of keys multiplied as codes; 0: they are float32
	group             int
	kernels           *kernels // that round queries
	scale, valueScale float32
	segments          []gpu.KVSegment

	phase   attnPhase
	spans   spanCut
	partial []float32 // [tiles, spans, partSize]: a span's stats and sums
}

// partSize is the size of a span's sums.
func (t *attnTask) partSize() int { return t.perKV * t.perRow * t.perHead * (t.valueDim + 2) }

// part returns the sums of a tile's span.
func (t *attnTask) part(tile, span, n int) (stats, acc []float32) {
	p := t.partial[(tile*t.spans.count+span)*t.partSize():]
	return p[:2*n], p[2*n:][:n*t.valueDim]
}

// attnTile is a tile, or the part of it that a chunk takes.
type attnTile struct {
	seg       *gpu.KVSegment
	row, rows int // of the operation
	kvHead    int // the first
	kvHeads   int
	head      int // the first query head of each key-value head
	heads     int // of each
}

func (t *attnTask) tile(i int) (tile attnTile) {
	group, across := t.heads/t.kvHeads, t.kvHeads/t.perKV
	tile.head = i % t.parts * t.perHead
	tile.heads = min(t.perHead, group-tile.head)
	tile.kvHead, tile.kvHeads = i/t.parts%across*t.perKV, t.perKV
	tile.seg, tile.row, tile.rows = t.rows(i / t.parts / across)
	return tile
}

func (t *attnTask) queries(tile *attnTile) queries {
	a := queries{vectors: t.vectors, kvHeads: tile.kvHeads, rows: tile.rows, heads: tile.heads, pos: tile.seg.Pos + tile.row - tile.seg.Row,
		dim: t.dim, valueDim: t.valueDim, width: t.valueDim, window: t.window, group: t.group}
	if t.chosen != nil { // one row, whose chosen positions count from 0
		a.pos, a.width = t.op.Attended(a.pos)-1, t.dim
	}
	return a
}

func (t *attnTask) do(s *scratch, chunk int) {
	switch t.phase {
	case attnSpans:
		t.doSpan(s, chunk)
	case attnMerge:
		t.doMerge(chunk)
	default:
		// The last rows first: they look back farthest.
		tile := t.tile(t.tiles - 1 - chunk)
		a := t.queries(&tile)
		t.load(s, &a, &tile)
		end := a.last() + 1
		t.attend(s, &a, &tile, 0, end, end)
		for g := range a.kvHeads {
			a.head(g)
			t.write(&a, &tile, g, 0, a.rows*a.heads)
		}
	}
}

// load brings a tile's queries into s.
func (t *attnTask) load(s *scratch, a *queries, tile *attnTile) {
	if t.sinks != nil {
		a.headsPerKV = t.heads / t.kvHeads
		a.sinks = t.sinks[tile.kvHead*a.headsPerKV+tile.head:]
	}
	a.lay(grow(&s.a, a.floats()))
	a.idle = &s.idle
	for g := range a.kvHeads {
		a.head(g)
		first := (tile.kvHead+g)*(t.heads/t.kvHeads) + tile.head
		for r := range a.rows {
			for i := range a.heads {
				x := t.q[(tile.row+r)*t.qRowStride+(first+i)*t.qHeadStride:][:t.dim]
				t.loadQuery(a, a.q[(r*a.heads+i)*t.dim:][:t.dim], x)
			}
		}
	}
}

// loadQuery writes a query times the scale, perhaps rounded, to dst.
func (t *attnTask) loadQuery(a *queries, dst, x []float32) {
	if a.group == 0 {
		a.norm(dst, x, nil, t.scale)
		return
	}
	scaled := a.pad[:t.dim]
	a.norm(scaled, x, nil, t.scale)
	t.kernels.roundQuery(dst, scaled, a.group)
}

// doSpan sums a span, all heads of a tile or one of them.
func (t *attnTask) doSpan(s *scratch, chunk int) {
	at := t.spans.chunk(chunk)
	i := t.tiles - 1 - at.tile
	tile := t.tile(i)
	a := t.queries(&tile)
	first, end := at.span*attnSpan, min((at.span+1)*attnSpan, a.last()+1)
	if first >= end {
		return
	}
	n := a.rows * a.heads
	stats, acc := t.part(i, at.span, a.kvHeads*n)
	if at.alone {
		tile.kvHead, tile.kvHeads = tile.kvHead+at.head, 1
		stats, acc = stats[2*n*at.head:], acc[n*t.valueDim*at.head:]
		a.kvHeads = 1
	}
	t.load(s, &a, &tile)
	a.all.stats, a.all.spanStats, a.all.acc, a.all.spanAcc = stats, stats, acc, acc
	a.head(0) // which load has selected in its own memory
	t.attend(s, &a, &tile, first, end, min(at.until*attnSpan, a.last()+1))
}

// doMerge adds the spans of some queries of a tile's key-value head.
func (t *attnTask) doMerge(chunk int) {
	from := chunk % t.merges() * t.eachMerge
	chunk /= t.merges()
	i, g := chunk/t.perKV, chunk%t.perKV
	tile := t.tile(i)
	a := t.queries(&tile)
	end := min(from+t.eachMerge, a.rows*a.heads)
	if from >= end { // a tile of fewer rows or heads than others
		return
	}
	n := a.kvHeads * a.rows * a.heads
	a.all.stats, a.all.acc = t.part(i, 0, n)
	a.head(g)
	for k := 1; k*attnSpan <= a.last(); k++ {
		a.all.spanStats, a.all.spanAcc = t.part(i, k, n)
		a.head(g)
		a.addSpanTo(max(from, (k*attnSpan-a.pos)*a.heads), end)
	}
	t.write(&a, &tile, g, from, end)
}

// attend takes the positions from first, where a span begins, to end. Those up to until follow on
// this thread.
func (t *attnTask) attend(s *scratch, a *queries, tile *attnTile, first, end, until int) {
	s.cache = tile.seg.In(&t.op.Cache)
	kv, at := &s.cache, tile.kvHead*t.dim
	values := kv.Values()
	if t.chosen != nil {
		l := chosenList{t.chosen[(tile.row*t.kvHeads+tile.kvHead)*t.budget:], max(t.op.Block, 1)}
		t.attendChosen(a, kv, &l, at, first, end)
		return
	}
	if a.rows*a.heads < packedValues {
		a.next, a.values = &s.next, &s.values
		t.attendFew(a, kv, tile, first, end, until)
		return
	}
	start, held := t.start(a, kv, first)
	rows := 0
	for p := start; p < end; p += attnBlock {
		if p%attnSpan == 0 || p == start {
			rows = a.span(p)
		}
		n, skip := min(attnBlock, end-p), max(0, held-p)
		a.loadKeys(kv, at, p, skip, n)
		a.fetch(a.packed[skip*a.width:], &values, values.VOffset, tile.kvHead*t.valueDim, a.valueDim, p+skip, n-skip)
		a.weigh(p, n, &valueRows{block: a.packed, first: p, width: a.valueDim})
		if t.spanEnds(p, end) {
			a.endSpan(p, rows)
		}
	}
}

// start returns where the first block begins from which on a tile's first row attends to positions,
// from first on, and the first position that may be looked at: with a window those of pages before
// it may be gone. What is before the first span counts from here on.
func (t *attnTask) start(a *queries, kv *gpu.KV, first int) (start, held int) {
	if t.window == 0 {
		return first, first
	}
	from := a.from(0)
	start = max(first, from/attnBlock*attnBlock)
	if start >= attnSpan {
		for g := range a.kvHeads {
			a.head(g)
			a.begin()
		}
		a.head(0)
	}
	return start, max(start, from/kv.PageRows*kv.PageRows)
}

// spanEnds reports whether the block at p is the last of a span whose sums are to be added here.
func (t *attnTask) spanEnds(p, end int) bool {
	return t.phase == attnWhole && ((p+attnBlock)%attnSpan == 0 || p+attnBlock >= end)
}

// attendFew is attend for so few queries that memory is slower than the computation: while it uses
// a block's keys it fetches the block's values, and while it uses the values it fetches the next
// block's keys.
func (t *attnTask) attendFew(a *queries, kv *gpu.KV, tile *attnTile, first, end, until int) {
	values, at, vAt := a.values, tile.kvHead*t.dim, tile.kvHead*t.valueDim
	*values = kv.Values()
	width, vWidth := a.kvHeads*a.dim, a.kvHeads*a.valueDim
	if kv.VOffset == kv.KOffset { // values are the beginning of the keys
		vWidth = width
	}
	rows := 0
	next := a.next
	*next = ahead{} // a chunk that panicked has left something
	start, held := t.start(a, kv, first)
	next.begin(t.vectors, kv, at, width, kv.KOffset, held, min(attnBlock, end-start)-(held-start))
	next.rest()
	for p := start; p < end; p += attnBlock {
		n, skip := min(attnBlock, end-p), max(0, held-p)
		next.begin(t.vectors, values, vAt, vWidth, values.VOffset, p+skip, n-skip)
		for g := range a.kvHeads {
			a.head(g)
			if p%attnSpan == 0 || p == start {
				rows = a.span(p)
			}
			a.loadKeys(kv, at+g*a.dim, p, skip, n)
			a.score(p, n)
			a.soften(p, n)
		}
		next.begin(t.vectors, kv, at, width, kv.KOffset, p+n, min(attnBlock, until-p-n))
		for g := range a.kvHeads {
			a.head(g)
			v := valueRows{kv: kv, chan0: vAt + g*a.valueDim}
			if kv.Format != gpu.KVF32 {
				a.fetch(a.packed[skip*a.width:], values, values.VOffset, v.chan0, a.valueDim, p+skip, n-skip)
				v = valueRows{block: a.packed, first: p, width: a.valueDim}
			}
			a.addValues(p, n, &v)
			if t.spanEnds(p, end) {
				a.endSpan(p, rows)
			}
		}
		next.rest()
	}
}

// write divides the weighted values of queries of a tile's key-value head g, those from from to
// before end, by the sum of the weights.
func (t *attnTask) write(a *queries, tile *attnTile, g, from, end int) {
	first := (tile.kvHead+g)*(t.heads/t.kvHeads) + tile.head
	for n := from; n < end; n++ {
		y := t.y[((tile.row+n/a.heads)*t.heads+first+n%a.heads)*t.valueDim:][:t.valueDim]
		a.norm(y, a.acc[n*t.valueDim:(n+1)*t.valueDim], nil, t.valueScale/a.stats[2*n+1])
	}
}

// rows returns the segment of the i-th band of rows, the band's first row and their number.
func (t *attnTask) rows(i int) (seg *gpu.KVSegment, row, rows int) {
	for j := range t.segments {
		s := &t.segments[j]
		n := chunks(s.Rows, t.perRow)
		if i < n {
			return s, s.Row + i*t.perRow, min(t.perRow, s.Rows-i*t.perRow)
		}
		i -= n
	}
	panic("a row beyond the last segment")
}
