package host

import "github.com/moeflux/moeflux-actor/gpu"

// attnPhase is what an attention task's chunks are.
type attnPhase uint8

const (
	attnWhole attnPhase = iota // tiles
	attnSpans                  // spans of tiles: few rows that look far back
	attnMerge                  // tiles, whose spans are done
)

// attnTask is attention. A tile is some rows of a segment and some query heads of one key-value head, which share the
// reading of keys and values.
type attnTask struct {
	*vectors
	q, y                    []float32
	qRowStride, qHeadStride int
	heads, kvHeads          int
	dim, valueDim           int
	perHead, parts          int // query heads in a tile, such parts of a key-value head's
	perRow                  int // rows in a tile
	tiles                   int
	scale                   float32
	segments                []gpu.KVSegment

	phase   attnPhase
	spans   int
	partial []float32 // [tiles, spans, partSize]: a span's stats and sums
}

// partSize is the size of a span's sums.
func (t *attnTask) partSize() int { return t.perRow * t.perHead * (t.valueDim + 2) }

// part returns the sums of a tile's span.
func (t *attnTask) part(tile, span, n int) (stats, acc []float32) {
	p := t.partial[(tile*t.spans+span)*t.partSize():]
	return p[:2*n], p[2*n:][:n*t.valueDim]
}

func (t *attnTask) do(s *scratch, chunk int) {
	span := 0
	if t.phase == attnSpans {
		chunk, span = chunk/t.spans, chunk%t.spans
	}
	// The last rows first: they look back farthest.
	tile := t.tiles - 1 - chunk
	group := t.heads / t.kvHeads
	g := tile / t.parts % t.kvHeads
	h := tile % t.parts * t.perHead
	seg, row, rows := t.rows(tile / t.parts / t.kvHeads)
	a := queries{vectors: t.vectors, rows: rows, heads: min(t.perHead, group-h), pos: seg.Pos + row - seg.Row, dim: t.dim, valueDim: t.valueDim}
	h += g * group
	n := a.rows * a.heads
	if t.phase == attnMerge {
		a.stats, a.acc = t.part(tile, 0, n)
		for k := 1; k*attnSpan <= a.last(); k++ {
			stats, acc := t.part(tile, k, n)
			a.addSpan(stats, acc, max(0, k*attnSpan-a.pos))
		}
		t.write(&a, row, h)
		return
	}
	first, end := 0, a.last()+1
	if t.phase == attnSpans {
		first, end = span*attnSpan, min((span+1)*attnSpan, end)
		if first >= end {
			return
		}
	}
	a.lay(grow(&s.a, a.floats()))
	for r := range a.rows {
		for i := range a.heads {
			x := t.q[(row+r)*t.qRowStride+(h+i)*t.qHeadStride:][:t.dim]
			a.norm(a.q[(r*a.heads+i)*t.dim:][:t.dim], x, nil, t.scale)
		}
	}
	if t.phase == attnSpans {
		a.stats, a.acc = t.part(tile, span, n)
		a.spanStats, a.spanAcc = a.stats, a.acc
	}
	t.attend(&a, &seg.KV, g*t.dim, first, end)
	if t.phase == attnWhole {
		t.write(&a, row, h)
	}
}

// attend takes positions from first, where a span begins, to end.
func (t *attnTask) attend(a *queries, kv *gpu.KV, at, first, end int) {
	rows := 0
	few := a.rows*a.heads < packedValues // they take no longer than memory does
	for p := first; p < end; p += attnBlock {
		if p%attnSpan == 0 {
			rows = a.span(p)
		}
		n := min(attnBlock, end-p)
		if few {
			t.bring(kv, kv.VOffset, at, a.valueDim, p, n)
		}
		a.transposeKeys(a.kt, a.pad, kv, at, a.dim, p, n)
		v := valueRows{kv: kv, chan0: at}
		if a.rows*a.heads >= packedValues || kv.Format != gpu.KVF32 {
			a.fetch(a.packed, kv, kv.VOffset, at, a.valueDim, p, n)
			v = valueRows{block: a.packed, first: p, width: a.valueDim}
		}
		if next := p + n; few && next < end {
			t.bring(kv, kv.KOffset, at, a.dim, next, min(attnBlock, end-next))
		}
		a.weigh(p, n, &v)
		if t.phase == attnWhole && ((p+attnBlock)%attnSpan == 0 || p+attnBlock >= end) {
			a.endSpan(p, rows)
		}
	}
}

// write divides the weighted values by the sum of the weights.
func (t *attnTask) write(a *queries, row, h int) {
	for r := range a.rows {
		for i := range a.heads {
			n := r*a.heads + i
			y := t.y[((row+r)*t.heads+h+i)*t.valueDim:][:t.valueDim]
			a.norm(y, a.acc[n*t.valueDim:(n+1)*t.valueDim], nil, 1/a.stats[2*n+1])
		}
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

func (x *executor) runAttention(o *gpu.Attention) {
	t := &x.attn
	*t = attnTask{vectors: x.vectors, qRowStride: o.QRowStride, qHeadStride: o.QHeadStride, heads: o.Heads, kvHeads: o.KVHeads, dim: o.HeadDim,
		valueDim: or(o.ValueDim, o.HeadDim), scale: o.Scale, segments: o.Segments}
	rows, count, last, ns := 0, 0, 0, 0
	for i := range o.Segments {
		s := &o.Segments[i]
		rows = max(rows, s.Row+s.Rows)
		count += s.Rows
		last = max(last, s.Pos+s.Rows)
		ns += x.vectors.multiplying((s.Pos+s.Rows)*s.Rows*o.Heads*(o.HeadDim+t.valueDim)) + x.vectors.moving((s.Pos+s.Rows)*o.KVHeads*o.HeadDim*2)
	}
	t.q = floatsAt(o.Q, (rows-1)*o.QRowStride+(o.Heads-1)*o.QHeadStride+o.HeadDim)
	t.y = floatsAt(o.Y, rows*o.Heads*t.valueDim)
	t.cut(x, count, last, ns)
	if t.phase == attnSpans {
		t.partial = grow(&x.partial, t.tiles*t.spans*t.partSize())
		x.parallel(t, t.tiles*t.spans, ns)
		t.phase = attnMerge
	}
	x.parallel(t, t.tiles, ns)
	*t = attnTask{}
}

// cut chooses tiles for work that takes ns: as large as the cache holds, more of them where threads would go short.
func (t *attnTask) cut(x *executor, rows, last, ns int) {
	group := t.heads / t.kvHeads
	most := max(8, tileFloats/(t.dim+2*t.valueDim))
	t.perHead = min(group, most)
	t.perRow = max(1, most/t.perHead)
	threads := len(x.pool.workers) + 1
	spread := threads > 1 && ns >= inlineNS
	if spread {
		t.perRow = min(t.perRow, max(1, rows*t.kvHeads/x.spread()))
	}
	t.count(group)
	if !spread || t.tiles >= 2*threads {
		return
	}
	if t.spans = chunks(last, attnSpan); t.spans > 1 {
		t.phase = attnSpans
	} else if t.tiles < threads {
		t.perHead = max(1, t.perHead*t.tiles/threads)
		t.count(group)
	}
}

func (t *attnTask) count(group int) {
	t.parts, t.tiles = chunks(group, t.perHead), 0
	for i := range t.segments {
		t.tiles += chunks(t.segments[i].Rows, t.perRow) * t.kvHeads * t.parts
	}
}
