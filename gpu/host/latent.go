package host

import "github.com/moeflux/moeflux-actor/gpu"

// latentRows is how many rows of a segment attend to an expanded block together.
const latentRows = 512

// latentTask is attention over expanded latents. A chunk is one head, or a span of its positions
// where there are few heads for the threads, see latentSpans.
type latentTask struct {
	*vectors
	op           *gpu.LatentAttention
	q, y         []float32
	keys, values matrix
	spans        latentSpans
}

// latentHead is the weights of one head and the block that they expand.
type latentHead struct {
	keys    []float32 // [Nope, Rank]
	values  []float32 // [Rank, ValueDim]
	latents []float32 // keys of the cache [Rank+Rope, attnBlock]
	pad     []float32 // [lanes, Rank+Rope]
	rows    []float32 // latents that are not kept as float32 [attnBlock, Rank]
	kt      []float32 // [Nope+Rope, attnBlock]
	v       []float32 // [attnBlock, ValueDim]
}

func (t *latentTask) do(s *scratch, h int) {
	if t.spans.count > 0 {
		t.doSpan(s, h)
		return
	}
	o := t.op
	b := t.load(s, h)
	for i := range o.Segments {
		seg := &o.Segments[i]
		for r := 0; r < seg.Rows; r += latentRows {
			t.attend(s, &b, seg, h, r, min(latentRows, seg.Rows-r))
		}
	}
}

// load dequantises the head's weights.
func (t *latentTask) load(s *scratch, h int) latentHead {
	o := t.op
	width := o.Rank + o.Rope
	mem := grow(&s.b, lineUp(o.Nope*o.Rank)+lineUp(o.ValueDim*o.Rank)+lineUp(width*attnBlock)+lineUp(t.lanes*width)+
		lineUp((o.Nope+o.Rope)*attnBlock)+lineUp(attnBlock*o.ValueDim)+lineFloats+lineUp(t.lanes*max(o.Rank, o.Nope))+lineUp(attnBlock*o.Rank))
	mem = aligned(mem)
	take := func(n int) []float32 { return floats(&mem, lineUp(n))[:n] }
	b := latentHead{latents: take(width * attnBlock), pad: take(t.lanes * width), kt: take((o.Nope + o.Rope) * attnBlock), v: take(attnBlock * o.ValueDim),
		rows: take(attnBlock * o.Rank)}
	row := take(t.lanes * max(o.Rank, o.Nope))
	b.keys = take(o.Nope * o.Rank)
	b.values = take(o.Rank * o.ValueDim)
	if o.KeysTransposed {
		t.loadTransposed(b.keys, row, &t.keys, h*o.KeyRows, o.Rank, o.Nope)
	} else {
		for d := range o.Nope {
			t.row(b.keys[d*o.Rank:(d+1)*o.Rank], &t.keys, h*o.KeyRows+d)
		}
	}
	t.loadTransposed(b.values, row, &t.values, h*o.ValueRows+o.FirstValue, o.ValueDim, o.Rank)
	return b
}

// loadTransposed writes n rows of m from row first on, of cols elements each, to dst [cols, n]. row
// is [lanes, cols].
func (t *latentTask) loadTransposed(dst, row []float32, m *matrix, first, n, cols int) {
	for r := 0; r < n; r += t.lanes {
		some := min(t.lanes, n-r)
		for i := range some {
			t.row(row[i*cols:(i+1)*cols], m, first+r+i)
		}
		t.transposeAll(dst[r:], row, n, cols, some, cols)
	}
}

// attend takes rows of a segment, from its row r on, through all positions that they attend to.
func (t *latentTask) attend(s *scratch, b *latentHead, seg *gpu.KVSegment, h, r, rows int) {
	a := t.queries(s, seg, h, r, rows)
	s.cache = seg.In(&t.op.Cache)
	for p := 0; p <= a.last(); p += attnSpan {
		first := a.span(p)
		t.weighSpan(&a, b, &s.cache, p)
		a.endSpan(p, first)
	}
	t.write(&a, seg.Row+r, h)
}

// queries returns the queries of a head for rows of a segment, from its row r on.
func (t *latentTask) queries(s *scratch, seg *gpu.KVSegment, h, r, rows int) queries {
	o := t.op
	a := queries{vectors: t.vectors, kvHeads: 1, rows: rows, heads: 1, pos: seg.Pos + r, dim: o.Nope + o.Rope, valueDim: o.ValueDim, width: o.ValueDim}
	a.lay(grow(&s.a, a.floats()))
	for i := range rows {
		x := t.q[(seg.Row+r+i)*o.QRowStride+h*o.QHeadStride:][:a.dim]
		t.norm(a.q[i*a.dim:(i+1)*a.dim], x, nil, o.Scale)
	}
	return a
}

// weighSpan takes the blocks of the span that begins at position p.
func (t *latentTask) weighSpan(a *queries, b *latentHead, kv *gpu.KV, p int) {
	for end := min(a.last()+1, p+attnSpan); p < end; p += attnBlock {
		n := min(attnBlock, end-p)
		t.expand(b, kv, p, n)
		a.kt = b.kt
		a.weigh(p, n, &valueRows{block: b.v, first: p, width: t.op.ValueDim})
	}
}

// write writes what a head's totals give for rows of the operation, from row on.
func (t *latentTask) write(a *queries, row, h int) {
	o := t.op
	for i := range a.rows {
		y := t.y[((row+i)*o.Heads+h)*o.ValueDim:][:o.ValueDim]
		t.norm(y, a.acc[i*o.ValueDim:(i+1)*o.ValueDim], nil, 1/a.stats[2*i+1])
	}
}

// expand computes the keys and values of n positions from p on.
func (t *latentTask) expand(b *latentHead, kv *gpu.KV, p, n int) {
	o := t.op
	t.transposeKeys(b.latents, b.pad, kv, 0, o.Rank+o.Rope, p, 0, n)
	t.multiply(b.kt, b.keys, b.latents, attnBlock, o.Rank, attnBlock, o.Nope, o.Rank, n, false)
	copy(b.kt[o.Nope*attnBlock:], b.latents[o.Rank*attnBlock:])
	if kv.Format != gpu.KVF32 {
		t.fetch(b.rows, kv, kv.KOffset, 0, o.Rank, p, n)
		t.multiply(b.v, b.rows, b.values, o.ValueDim, o.Rank, o.ValueDim, n, o.Rank, o.ValueDim, false)
		return
	}
	for j := 0; j < n; {
		row := (p + j) % kv.PageRows
		run := min(n-j, kv.PageRows-row)
		latents := keys(kv, (p+j)/kv.PageRows)[row*kv.Dim:]
		t.multiply(b.v[j*o.ValueDim:], latents, b.values, o.ValueDim, kv.Dim, o.ValueDim, run, o.Rank, o.ValueDim, false)
		j += run
	}
}

func (x *executor) runLatentAttention(o *gpu.LatentAttention) {
	t := &x.latent
	*t = latentTask{vectors: x.vectors, op: o, keys: matrixOf(&o.Keys), values: matrixOf(&o.Values)}
	rows, last, work := 0, 0, 0
	for i := range o.Segments {
		s := &o.Segments[i]
		rows = max(rows, s.Row+s.Rows)
		last = max(last, s.Pos+s.Rows)
		work += (s.Pos + s.Rows) * ((o.Nope+o.ValueDim)*o.Rank + s.Rows*(o.Nope+o.Rope+o.ValueDim))
	}
	t.q = floatsAt(o.Q, (rows-1)*o.QRowStride+(o.Heads-1)*o.QHeadStride+o.Nope+o.Rope)
	t.y = floatsAt(o.Y, rows*o.Heads*o.ValueDim)
	ns := x.vectors.multiplying(o.Heads * work)
	if count := latentRound(o.Heads, chunks(last, attnSpan), x.threads, ns); count > 0 {
		x.runLatentSpans(t, count, rows, last, ns)
	} else {
		x.parallel(t, o.Heads, ns)
	}
	*t = latentTask{}
}
