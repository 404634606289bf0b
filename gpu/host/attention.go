package host

import (
	"math"

	"github.com/moeflux/moeflux-actor/gpu"
)

// keys and values return the page's memory, float32 [PageRows, Dim].
func keys(kv *gpu.KV, page int) []float32 {
	return floatsAt(kv.Pages[page].At(kv.KOffset), kv.PageRows*kv.Dim)
}

func values(kv *gpu.KV, page int) []float32 {
	return floatsAt(kv.Pages[page].At(kv.VOffset), kv.PageRows*kv.Dim)
}

func runAppendKV(o *gpu.AppendKV) {
	rows := 0
	for i := range o.Segments {
		rows = max(rows, o.Segments[i].Row+o.Segments[i].Rows)
	}
	dim := o.Segments[0].KV.Dim
	kStride, vStride := or(o.KStride, dim), or(o.VStride, dim)
	k := floatsAt(o.K, (rows-1)*kStride+dim)
	var v []float32 // none: a part of the keys
	if !o.V.IsZero() {
		v = floatsAt(o.V, (rows-1)*vStride+dim)
	}
	for i := range o.Segments {
		s := &o.Segments[i]
		for r := range s.Rows {
			page, at := (s.Pos+r)/s.KV.PageRows, (s.Pos+r)%s.KV.PageRows*dim
			copy(keys(&s.KV, page)[at:at+dim], k[(s.Row+r)*kStride:])
			if v != nil {
				copy(values(&s.KV, page)[at:at+dim], v[(s.Row+r)*vStride:])
			}
		}
	}
}

// attnTask is attention; a chunk is one row's query heads of one key-value head, or a part of them, which share the
// reading of its keys and values.
type attnTask struct {
	q, y                    []float32
	qRowStride, qHeadStride int
	heads, kvHeads          int
	dim, valueDim           int
	per, perRow             int // heads in a chunk, chunks of a row
	scale                   float32
	segments                []gpu.KVSegment
}

func (t *attnTask) do(s *scratch, chunk int) {
	seg, row := t.segment(chunk / t.perRow)
	group := t.heads / t.kvHeads
	perGroup := t.perRow / t.kvHeads
	g := chunk % t.perRow / perGroup
	first := chunk % perGroup * t.per
	h := g*group + first
	a := attending{kv: &seg.KV, at: g * t.dim, n: seg.Pos + row - seg.Row + 1, heads: min(t.per, group-first), dim: t.dim,
		valueDim: t.valueDim, q: t.q[row*t.qRowStride+h*t.qHeadStride:], qStride: t.qHeadStride, y: t.y[(row*t.heads+h)*t.valueDim:]}
	a.run(s, t.scale)
}

// segment returns the segment of the i-th row that is computed, and that row.
func (t *attnTask) segment(i int) (*gpu.KVSegment, int) {
	for j := range t.segments {
		s := &t.segments[j]
		if i < s.Rows {
			return s, s.Row + i
		}
		i -= s.Rows
	}
	panic("a row beyond the last segment")
}

// attending is some query heads that attend to n positions of one key-value head, whose channels begin at at in each
// row of the cache. Scores are sums of four lanes; the exponentials and the weighted values are summed in
// blocks of 64 positions, ascending, and the blocks ascending. Each head is computed as if alone.
type attending struct {
	kv         *gpu.KV
	at, n      int
	heads, dim int
	valueDim   int
	q          []float32 // head h at h·qStride
	qStride    int
	y          []float32 // [heads, valueDim]
}

func (a *attending) run(s *scratch, scale float32) {
	weights := grow(&s.a, a.heads*a.n)
	block := grow(&s.b, a.valueDim)
	a.scores(weights)
	for h := range a.heads {
		softmax(weights[h*a.n:(h+1)*a.n], scale)
		clear(a.y[h*a.valueDim : (h+1)*a.valueDim])
	}
	for p := 0; p < a.n; p += blockInputs {
		end := min(p+blockInputs, a.n)
		for h := range a.heads {
			clear(block)
			weigh(block, weights[h*a.n+p:h*a.n+end], a.kv, a.at, p)
			y := a.y[h*a.valueDim:][:a.valueDim]
			for d, v := range block {
				y[d] += v
			}
		}
	}
}

// scores writes q·k of each head and position to w [heads, n].
func (a *attending) scores(w []float32) {
	for p := 0; p < a.n; p += a.kv.PageRows {
		page := keys(a.kv, p/a.kv.PageRows)
		for j := range min(a.kv.PageRows, a.n-p) {
			k := page[j*a.kv.Dim+a.at:][:a.dim]
			h := 0
			for ; h+2 <= a.heads; h += 2 {
				w[h*a.n+p+j], w[(h+1)*a.n+p+j] = dotTwo(k, a.q[h*a.qStride:], a.q[(h+1)*a.qStride:])
			}
			if h < a.heads {
				w[h*a.n+p+j] = dot(k, a.q[h*a.qStride:])
			}
		}
	}
}

// softmax turns the products in w to weights: e^(scale·w - top), over their sum.
func softmax(w []float32, scale float32) {
	top := float32(math.Inf(-1))
	for j := range w {
		w[j] *= scale
		top = max(top, w[j])
	}
	var sum float32
	for p := 0; p < len(w); p += blockInputs {
		var part float32
		for j := p; j < min(p+blockInputs, len(w)); j++ {
			w[j] = float32(math.Exp(float64(w[j] - top)))
			part += w[j]
		}
		sum += part
	}
	for j := range w {
		w[j] /= sum
	}
}

// weigh adds a[j]·value at position p+j to acc, ascending, four positions at a time where a page has them.
func weigh(acc, a []float32, kv *gpu.KV, at, p int) {
	for len(a) > 0 {
		first := p % kv.PageRows
		run := min(len(a), kv.PageRows-first)
		v := values(kv, p/kv.PageRows)[first*kv.Dim:]
		j := 0
		for ; j+4 <= run; j += 4 {
			weighFour(acc, a[j:j+4], v[j*kv.Dim+at:], kv.Dim)
		}
		for ; j < run; j++ {
			w, row := a[j], v[j*kv.Dim+at:][:len(acc)]
			for d := range acc {
				acc[d] += float32(w * row[d])
			}
		}
		a, p = a[run:], p+run
	}
}

func weighFour(acc, a, v []float32, stride int) {
	n := len(acc)
	a0, a1, a2, a3 := a[0], a[1], a[2], a[3]
	v0, v1, v2, v3 := v[:n], v[stride:][:n], v[2*stride:][:n], v[3*stride:][:n]
	for d := range acc {
		t := acc[d] + float32(a0*v0[d])
		t += float32(a1 * v1[d])
		t += float32(a2 * v2[d])
		t += float32(a3 * v3[d])
		acc[d] = t
	}
}

func (x *executor) runAttention(o *gpu.Attention) {
	rows, count, positions := 0, 0, 0
	for i := range o.Segments {
		s := &o.Segments[i]
		rows = max(rows, s.Row+s.Rows)
		count += s.Rows
		positions += s.Rows * (s.Pos + s.Rows)
	}
	t := &x.attn
	*t = attnTask{qRowStride: o.QRowStride, qHeadStride: o.QHeadStride, heads: o.Heads, kvHeads: o.KVHeads, dim: o.HeadDim,
		valueDim: or(o.ValueDim, o.HeadDim), scale: o.Scale, segments: o.Segments}
	t.q = floatsAt(o.Q, (rows-1)*o.QRowStride+(o.Heads-1)*o.QHeadStride+o.HeadDim)
	t.y = floatsAt(o.Y, rows*o.Heads*t.valueDim)
	// A whole group a chunk, unless the threads would then go short.
	group := o.Heads / o.KVHeads
	parts := min(group, max(1, x.spread()/(count*o.KVHeads)))
	t.per = (group + parts - 1) / parts
	t.perRow = o.KVHeads * chunks(group, t.per)
	x.parallel(t, count*t.perRow, positions*o.Heads*o.HeadDim/2)
	*t = attnTask{}
}
