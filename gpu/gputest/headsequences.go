package gputest

import (
	"fmt"
	"math"

	"github.com/moeflux/moeflux-actor/gpu"
)

// headsShape is the way of queries, keys and values to attention.
type headsShape struct {
	rows, heads, kvHeads, dim, rotary int
	normed                            bool
	gated                             bool // queries have gates between them
	interleaved                       bool
	group                             int // see cacheShape
}

func (h *headsShape) name() string {
	return fmt.Sprintf("heads/rows=%d/heads=%d,%d/dim=%d/rotary=%d/normed=%t/gated=%t/interleaved=%t/int8=%d", h.rows, h.heads, h.kvHeads, h.dim, h.rotary, h.normed,
		h.gated, h.interleaved, h.group)
}

// vectors are [rows, heads] vectors of dim channels, stride apart, of which some are normalised and
// some rotated in place.
type vectors struct {
	o                     *operand
	rows, heads, dim, row int
	stride                int
	want, limit           []float64
}

// place puts random vectors in memory.
func (s *setup) vectors(name string, rows, heads, dim, stride int) *vectors {
	row := heads * stride
	data := s.normal((rows-1)*row + (heads-1)*stride + dim)
	v := &vectors{s.inout(name, data), rows, heads, dim, row, stride, float64s(data), make([]float64, len(data))}
	v.o.where(func(i int) bool { return i%stride < dim })
	return v
}

// each calls f for each vector's first number.
func (v *vectors) each(f func(row, at int)) {
	for r := range v.rows {
		for h := range v.heads {
			f(r, r*v.row+h*v.stride)
		}
	}
}

// norm normalises the first n channels.
func (v *vectors) norm(s *setup, n int) {
	w := s.normal(n)
	v.each(func(_, at int) {
		x := v.want[at : at+n]
		factor := 1 / math.Sqrt(meanSquare(x)+eps)
		for i := range x {
			x[i] *= factor * float64(w[i])
			v.limit[at+i] = normTolerance(n) * math.Abs(x[i])
		}
	})
	gpu.Encode(&s.cmds, gpu.RMSNorm{X: v.o.view(), Y: v.o.view(), W: s.input(v.o.name+" norm", w).view(), Vectors: v.rows * v.heads, Dim: n,
		XStride: v.stride, YStride: v.stride, Eps: eps})
}

// turns places a rotary table.
func (s *setup) turns(rows, rotary int) (table []float32, o *operand) {
	for range rows * rotary / 2 {
		sin, cos := math.Sincos(s.rng.Float64() * 100)
		table = append(table, float32(cos), float32(sin))
	}
	return table, s.input("turns", table)
}

// rope rotates channels from first on.
func (v *vectors) rope(s *setup, first, rotary int, table []float32, o *operand, interleaved bool) {
	v.each(func(row, at int) {
		for i := range rotary / 2 {
			a, b := at+first+i, at+first+i+rotary/2
			if interleaved {
				a, b = at+first+2*i, at+first+2*i+1
			}
			cos, sin := float64(table[row*rotary+2*i]), float64(table[row*rotary+2*i+1])
			x, y, dx, dy := v.want[a], v.want[b], v.limit[a], v.limit[b]
			v.want[a], v.want[b] = x*cos-y*sin, x*sin+y*cos
			v.limit[a] = dx*math.Abs(cos) + dy*math.Abs(sin) + ropeTolerance*(math.Abs(x*cos)+math.Abs(y*sin))
			v.limit[b] = dx*math.Abs(sin) + dy*math.Abs(cos) + ropeTolerance*(math.Abs(x*sin)+math.Abs(y*cos))
		}
	})
	gpu.Encode(&s.cmds, gpu.Rope{X: v.o.view().Floats(first), Table: o.view(), Rows: v.rows, Heads: v.heads, Rotary: rotary, RowStride: v.row, HeadStride: v.stride,
		Interleaved: interleaved})
}

// expectVectors says what must be there, after the last step.
func (v *vectors) expectVectors() {
	for i := range v.limit {
		v.limit[i] += tiny
	}
	v.o.expect(v.want, v.limit)
}

// heads: norms and rotation of queries and keys, and keys and values to the cache, where they must
// be what is in memory, rounded as the cache rounds.
func heads(s *setup, h headsShape) {
	const pos = 3
	stride := h.dim
	if h.gated {
		stride = 2 * h.dim
	}
	q, k := s.vectors("Q", h.rows, h.heads, h.dim, stride), s.vectors("K", h.rows, h.kvHeads, h.dim, h.dim)
	v := s.normal(h.rows * h.kvHeads * h.dim)
	c := s.cache("sequence", cacheShape{4, h.kvHeads * h.dim, h.group, 0}, pos+h.rows, pos)
	if h.normed {
		q.norm(s, h.dim)
		k.norm(s, h.dim)
	}
	if h.rotary > 0 {
		table, o := s.turns(h.rows, h.rotary)
		q.rope(s, 0, h.rotary, table, o, h.interleaved)
		k.rope(s, 0, h.rotary, table, o, h.interleaved)
	}
	q.expectVectors()
	k.expectVectors()
	gpu.Encode(&s.cmds, gpu.AppendKV{K: k.o.view(), V: s.input("V", v).view(), Cache: c.kv.KVLayout, Segments: []gpu.KVSegment{{Rows: h.rows, Pos: pos, Pages: c.kv.Pages}}})
	s.runCached(c, pos, k.o, v)
}

// wholeNorms: norms of whole rows of queries and keys, and rotation of their heads.
func wholeNorms(s *setup, rows, heads, dim, rotary int) {
	q, k := s.vectors("Q", rows, 1, heads*dim, heads*dim), s.vectors("K", rows, 1, dim, dim)
	q.norm(s, heads*dim)
	k.norm(s, dim)
	q.heads, q.dim, q.stride, k.stride = heads, dim, dim, dim
	table, o := s.turns(rows, rotary)
	q.rope(s, 0, rotary, table, o, false)
	k.rope(s, 0, rotary, table, o, false)
	q.expectVectors()
	k.expectVectors()
	s.run()
}

// latents: what latent attention keeps of a row, and queries' rotated channels, which are copied,
// too.
func latents(s *setup, rows, heads, rank, rotary, nope, group int) {
	const pos = 3
	kept, q := s.vectors("kept", rows, 1, rank+rotary, rank+rotary), s.vectors("Q", rows, heads, nope+rotary, nope+rotary)
	c := s.cache("sequence", cacheShape{4, rank + rotary, group, 0}, pos+rows, pos)
	c.kv.VOffset = c.kv.KOffset
	table, o := s.turns(rows, rotary)
	kept.norm(s, rank)
	kept.rope(s, rank, rotary, table, o, true)
	q.rope(s, nope, rotary, table, o, true)
	kept.expectVectors()
	q.expectVectors()
	width := rank + rotary
	folded := s.output("folded", rows*heads*width).where(func(i int) bool { return i%width >= rank })
	want, limit := make([]float64, rows*heads*width), make([]float64, rows*heads*width)
	for v := range rows * heads {
		copy(want[v*width+rank:(v+1)*width], q.want[v*q.stride+nope:])
		copy(limit[v*width+rank:(v+1)*width], q.limit[v*q.stride+nope:])
	}
	folded.expect(want, limit)
	gpu.Encode(&s.cmds, gpu.AppendKV{K: kept.o.view(), Cache: c.kv.KVLayout, Segments: []gpu.KVSegment{{Rows: rows, Pos: pos, Pages: c.kv.Pages}}})
	gpu.Encode(&s.cmds, gpu.CopyHeads{X: q.o.view().Floats(nope), Y: folded.view().Floats(rank), Rows: rows, Heads: heads, Dim: rotary,
		XRowStride: q.row, XHeadStride: q.stride, YRowStride: heads * width, YHeadStride: width})
	s.runCached(c, pos, kept.o, nil)
}

// runCached runs the commands, and wants the rows of k and v in the cache from position pos on, as
// the device left them.
func (s *setup) runCached(c *cache, pos int, k *operand, v []float32) {
	s.t.Helper()
	for _, p := range c.pages {
		p.where(func(int) bool { return true })
	}
	s.run()
	split := func(x []float32) (rows [][]float32) {
		for i := 0; i < len(x); i += c.kv.Dim {
			rows = append(rows, x[i:i+c.kv.Dim])
		}
		return rows
	}
	var values [][]float32
	if v != nil {
		values = split(v)
	}
	c.expect(pos, split(k.floats()), values)
	for _, p := range c.pages {
		p.check(s.t)
	}
}
