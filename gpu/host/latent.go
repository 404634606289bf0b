package host

import "github.com/moeflux/moeflux-actor/gpu"

// latentRows is how many rows of a segment attend to an expanded block together.
const latentRows = 512

// latentTask is attention over expanded latents; a chunk is one head.
type latentTask struct {
	*vectors
	op           *gpu.LatentAttention
	q, y         []float32
	keys, values matrix
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
	o := t.op
	a := queries{vectors: t.vectors, kvHeads: 1, rows: rows, heads: 1, pos: seg.Pos + r, dim: o.Nope + o.Rope, valueDim: o.ValueDim, width: o.ValueDim}
	a.lay(grow(&s.a, a.floats()))
	for i := range rows {
		x := t.q[(seg.Row+r+i)*o.QRowStride+h*o.QHeadStride:][:a.dim]
		t.norm(a.q[i*a.dim:(i+1)*a.dim], x, nil, o.Scale)
	}
	first := 0
	for p := 0; p <= a.last(); p += attnBlock {
		if p%attnSpan == 0 {
			first = a.span(p)
		}
		n := min(attnBlock, a.last()+1-p)
		t.expand(b, &seg.KV, p, n)
		a.kt = b.kt
		a.weigh(p, n, &valueRows{block: b.v, first: p, width: o.ValueDim})
		if (p+attnBlock)%attnSpan == 0 || p+attnBlock > a.last() {
			a.endSpan(p, first)
		}
	}
	for i := range rows {
		y := t.y[((seg.Row+r+i)*o.Heads+h)*o.ValueDim:][:o.ValueDim]
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
	rows, work := 0, 0
	for i := range o.Segments {
		s := &o.Segments[i]
		rows = max(rows, s.Row+s.Rows)

		work += (s.Pos + s.Rows) * ((o.Nope+o.ValueDim)*o.Rank + s.Rows*(o.Nope+o.Rope+o.ValueDim))
	}
	t.q = floatsAt(o.Q, (rows-1)*o.QRowStride+(o.Heads-1)*o.QHeadStride+o.Nope+o.Rope)
	t.y = floatsAt(o.Y, rows*o.Heads*o.ValueDim)
	x.parallel(t, o.Heads, x.vectors.multiplying(o.Heads*work))
	*t = latentTask{}
}
