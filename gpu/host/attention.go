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

// attnTask is attention; a chunk is one query head of one row.
type attnTask struct {
	q, y                    []float32
	qRowStride, qHeadStride int
	heads, kvHeads          int
	dim, valueDim           int
	scale                   float32
	segments                []gpu.KVSegment
}

func (t *attnTask) do(s *scratch, chunk int) {
	seg, row := t.segment(chunk / t.heads)
	h := chunk % t.heads
	at := h / (t.heads / t.kvHeads) * t.dim
	q := t.q[row*t.qRowStride+h*t.qHeadStride:][:t.dim]
	y := t.y[(row*t.heads+h)*t.valueDim:][:t.valueDim]
	n := seg.Pos + row - seg.Row + 1
	attend(s, &seg.KV, q, y, at, n, t.scale)
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

// attend computes one head's attention over n positions, whose channels begin at at in each row of the cache. Scores
// are sums of four lanes; the exponentials and the weighted values are summed in blocks of 64 positions,
// ascending, and the blocks ascending.
func attend(s *scratch, kv *gpu.KV, q, y []float32, at, n int, scale float32) {
	a := grow(&s.a, n)
	top := float32(math.Inf(-1))
	for p := 0; p < n; p += kv.PageRows {
		k := keys(kv, p/kv.PageRows)
		for j := range min(kv.PageRows, n-p) {
			v := scale * dot(q, k[j*kv.Dim+at:])
			a[p+j] = v
			top = max(top, v)
		}
	}
	var sum float32
	for p := 0; p < n; p += blockInputs {
		var part float32
		for j := p; j < min(p+blockInputs, n); j++ {
			a[j] = float32(math.Exp(float64(a[j] - top)))
			part += a[j]
		}
		sum += part
	}
	clear(y)
	block := grow(&s.b, len(y))
	for p := 0; p < n; p += blockInputs {
		clear(block)
		weigh(block, a[p:min(p+blockInputs, n)], kv, at, p)
		for d, v := range block {
			y[d] += v
		}
	}
	for d := range y {
		y[d] /= sum
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
	x.parallel(t, count*o.Heads, positions*o.Heads*o.HeadDim)
	*t = attnTask{}
}
