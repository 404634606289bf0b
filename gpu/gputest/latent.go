package gputest

import (
	"fmt"
	"math"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// latentShape is one case of the operations of latent attention.
type latentShape struct {
	format                       quant.Format
	heads, rank, nope, rope, dim int
	transposed                   bool // keys lie as [rank, nope] in a matrix of their own
	pageRows                     int
	segments                     [][2]int // position and rows
	group                        int      // see cacheShape
}

func latentCases() []testCase {
	var all []testCase
	for _, f := range formats() {
		for _, transposed := range []bool{false, true} {
			for _, rows := range []int{1, 3} {
				name := fmt.Sprintf("headmatmul/format=%v/transposed=%v/rows=%d", f, transposed, rows)
				all = append(all, testCase{name, func(s *setup) { headMatMul(s, f, transposed, rows) }})
			}
		}
	}
	all = append(all,
		testCase{"copyheads", func(s *setup) { copyHeads(s, 3, 2, 5) }},
		testCase{"matmul/bias", func(s *setup) { biased(s, 13, 128, 3) }},
		testCase{"matmul/bias/rows=1", func(s *setup) { biased(s, 259, 64, 1) }})
	q4, bf := quant.Affine(4, 64), quant.BF16
	for _, l := range []latentShape{
		{format: bf, heads: 1, rank: 8, nope: 4, rope: 2, dim: 3, pageRows: 3, segments: [][2]int{{0, 1}}},
		{format: bf, heads: 3, rank: 64, nope: 32, rope: 16, dim: 24, pageRows: 16, segments: [][2]int{{0, 5}, {70, 2}}},
		{format: q4, heads: 2, rank: 64, nope: 64, rope: 32, dim: 64, pageRows: 64, segments: [][2]int{{60, 9}, {0, 1}}},
		{format: q4, heads: 2, rank: 64, nope: 64, rope: 32, dim: 64, pageRows: 64, segments: [][2]int{{190, 3}}, transposed: true},
		{format: bf, heads: 2, rank: 32, nope: 16, rope: 8, dim: 16, pageRows: 100, segments: [][2]int{{0, 200}}, transposed: true},
		{format: bf, heads: 64, rank: 32, nope: 16, rope: 16, dim: 16, pageRows: 64, segments: [][2]int{{900, 1}}},
	} {
		all = append(all, l.cases()...)
		for _, l.group = range []int{2, 16} {
			if l.rank%l.group == 0 && l.rope%l.group == 0 {
				all = append(all, l.cases()...)
			}
		}
	}
	all = append(all,
		testCase{"appendkv/keysonly", func(s *setup) { appendKeys(s, cacheShape{2, 7, 0, 0}, 3) }},
		testCase{"appendkv/keysonly/int8", func(s *setup) { appendKeys(s, cacheShape{2, 21, 7, 0}, 3) }})
	return all
}

func (l latentShape) cases() []testCase {
	name := fmt.Sprintf("latentattention/format=%v/heads=%d/rank=%d/at=%v/transposed=%v", l.format, l.heads, l.rank, l.segments, l.transposed)
	if l.group > 0 {
		name += fmt.Sprintf("/int8=%d", l.group)
	}
	return []testCase{{name, func(s *setup) { latentAttention(s, l) }}, {"valuedim/" + name, func(s *setup) { sharedAttention(s, l) }}}
}

// headMatMul: Y[r, h, o] = Σ_i W[h·HeadRows+FirstRow+o, i]·X[r, h, i], or with o and i changed
// about.
func headMatMul(s *setup, f quant.Format, transposed bool, rows int) {
	const heads, used, first, headRows, cols = 3, 37, 2, 40, 128
	w := s.matrix("W", heads*headRows+1, cols, f)
	in, out := cols, used
	if transposed {
		in, out = used, cols
	}
	xHead, xRow, yHead, yRow := in+1, heads*(in+1)+2, out+3, heads*(out+3)
	data := s.normal((rows-1)*xRow + (heads-1)*xHead + in)
	n := (rows-1)*yRow + (heads-1)*yHead + out
	want, limit := make([]float64, n), make([]float64, n)
	values, magnitudes := w.known()
	for r := range rows {
		for h := range heads {
			for o := range out {
				at := r*yRow + h*yHead + o
				for i := range in {
					cell := (h*headRows+first+o)*cols + i
					if transposed {
						cell = (h*headRows+first+i)*cols + o
					}
					x := float64(data[r*xRow+h*xHead+i])
					want[at] += values[cell] * x
					limit[at] += (dequantTolerance + sumTolerance(in)) * magnitudes[cell] * math.Abs(x)
				}
				limit[at] += tiny
			}
		}
	}
	x, y := s.input("X", data), s.output("Y", n)
	y.where(func(i int) bool { return i%yRow%yHead < out }).expect(want, limit)
	gpu.Encode(&s.cmds, gpu.HeadMatMul{
		W: w.Matrix, X: x.view(), Y: y.view(), Rows: rows, Heads: heads, In: in, Out: out, HeadRows: headRows, FirstRow: first,
		Transposed: transposed, XRowStride: xRow, XHeadStride: xHead, YRowStride: yRow, YHeadStride: yHead,
	})
	s.run()
}

// copyHeads: Y[r, h, d] = X[r, h, d].
func copyHeads(s *setup, rows, heads, dim int) {
	xHead, xRow, yHead, yRow := dim+4, heads*(dim+4)+1, dim+1, heads*(dim+1)+3
	data := s.normal((rows-1)*xRow + (heads-1)*xHead + dim)
	n := (rows-1)*yRow + (heads-1)*yHead + dim
	want := make([]float32, n)
	for r := range rows {
		for h := range heads {
			copy(want[r*yRow+h*yHead:][:dim], data[r*xRow+h*xHead:])
		}
	}
	x, y := s.input("X", data), s.output("Y", n)
	y.where(func(i int) bool { return i%yRow < heads*yHead && i%yRow%yHead < dim }).expectExactly(want)
	gpu.Encode(&s.cmds, gpu.CopyHeads{X: x.view(), Y: y.view(), Rows: rows, Heads: heads, Dim: dim, XRowStride: xRow,
		XHeadStride: xHead, YRowStride: yRow, YHeadStride: yHead})
	s.run()
}

// biased: Y[r, o] = Σ_i W[o, i]·X[r, i] + Bias[o].
func biased(s *setup, out, in, rows int) {
	w := s.matrix("W", out, in, quant.Affine(4, 64))
	data, bias := s.normal(rows*in), s.normal(out)
	var want, limit []float64
	for r := range rows {
		v, l := w.times(float64s(data[r*in:(r+1)*in]), nil)
		for o := range v {
			v[o] += float64(bias[o])
			l[o] += unit * (math.Abs(v[o]) + math.Abs(float64(bias[o])))
		}
		want, limit = append(want, v...), append(limit, l...)
	}
	x, b, y := s.input("X", data), s.input("Bias", bias), s.output("Y", rows*out)
	y.expect(want, limit)
	gpu.Encode(&s.cmds, gpu.MatMul{W: w.Matrix, X: x.view(), Bias: b.view(), Y: y.view(), Rows: rows})
	s.run()
}

// latents makes a cache whose rows are keys alone, [rank, rope], filled for n positions.
func (s *setup) latents(name string, l *latentShape, n int) *cache {
	c := s.cache(name, cacheShape{l.pageRows, l.rank + l.rope, l.group, 0}, n, n)
	c.kv.VOffset = c.kv.KOffset
	c.v = c.k
	return c
}

// latentAttention: keys and values are expanded from the latents, head by head.
func latentAttention(s *setup, l latentShape) {
	a := attentionShape{segments: l.segments}
	first, rows := a.rows()
	width := l.nope + l.rope
	rowStride := l.heads*(width+2) + 1
	data := s.normal((rows-1)*rowStride + (l.heads-1)*(width+2) + width)
	both := l.nope + l.dim + 1
	op := gpu.LatentAttention{
		QRowStride: rowStride, QHeadStride: width + 2, Heads: l.heads, Rank: l.rank, Nope: l.nope, Rope: l.rope, ValueDim: l.dim,
		Scale: float32(1 / math.Sqrt(float64(width))), KeysTransposed: l.transposed,
	}
	values := s.matrix("Values", l.heads*both, l.rank, l.format)
	keys := values
	op.KeyRows, op.ValueRows, op.FirstValue = both, both, l.nope
	if l.transposed {
		keys = s.matrix("Keys", l.heads*l.rank, l.nope, l.format)
		op.KeyRows = l.rank
	}
	op.Keys, op.Values = keys.Matrix, values.Matrix
	q, y := s.input("Q", data), s.output("Y", rows*l.heads*l.dim)
	op.Q, op.Y = q.view(), y.view()
	want, limit, used := make([]float64, rows*l.heads*l.dim), make([]float64, rows*l.heads*l.dim), make([]bool, rows)
	for i, seg := range l.segments {
		c := s.latents(fmt.Sprintf("sequence %d", i), &l, seg[0]+seg[1])
		op.Cache, op.Segments = c.kv.KVLayout, append(op.Segments, gpu.KVSegment{Row: first[i], Rows: seg[1], Pos: seg[0], Pages: c.kv.Pages})
		for r := range seg[1] {
			used[first[i]+r] = true
		}
		if s.unchecked {
			continue
		}
		for h := range l.heads {
			e := l.expand(c, keys, values, h)
			for r := range seg[1] {
				at, out := (first[i]+r)*rowStride+h*(width+2), ((first[i]+r)*l.heads+h)*l.dim
				e.attend(data[at:at+width], seg[0]+r+1, float64(op.Scale), want[out:out+l.dim], limit[out:out+l.dim])
			}
		}
	}
	y.where(func(i int) bool { return used[i/(l.heads*l.dim)] }).expect(want, limit)
	gpu.Encode(&s.cmds, op)
	s.run()
}

// expanded is one head's keys and values with what they may be off by.
type expanded struct{ k, v, kOff, vOff [][]float64 }

func (l *latentShape) expand(c *cache, keys, values *weights, h int) *expanded {
	e := new(expanded)
	both := l.nope + l.dim + 1
	for _, row := range c.k {
		var k, kOff, v, vOff []float64
		sum := func(w *weights, cell func(i int) int) (x, off float64) {
			known, magnitudes := w.known()
			for i := range l.rank {
				x += known[cell(i)] * float64(row[i])
				off += (dequantTolerance + sumTolerance(l.rank)) * magnitudes[cell(i)] * math.Abs(float64(row[i]))
			}
			return x, off
		}
		for d := range l.nope {
			x, off := sum(keys, func(i int) int {
				if l.transposed {
					return (h*l.rank+i)*l.nope + d
				}
				return (h*both+d)*l.rank + i
			})
			k, kOff = append(k, x), append(kOff, off)
		}
		for d := range l.rope {
			k, kOff = append(k, float64(row[l.rank+d])), append(kOff, 0)
		}
		for d := range l.dim {
			x, off := sum(values, func(i int) int { return (h*both+l.nope+d)*l.rank + i })
			v, vOff = append(v, x), append(vOff, off)
		}
		e.k, e.kOff, e.v, e.vOff = append(e.k, k), append(e.kOff, kOff), append(e.v, v), append(e.vOff, vOff)
	}
	return e
}

// attend computes one head over n positions.
func (e *expanded) attend(q []float32, n int, scale float64, y, limit []float64) {
	scores, top, off := make([]float64, n), math.Inf(-1), 0.0
	for j := range n {
		magnitude, inherited := 0.0, 0.0
		for d, v := range q {
			p := scale * float64(v) * e.k[j][d]
			scores[j] += p
			magnitude += math.Abs(p)
			inherited += scale * math.Abs(float64(v)) * e.kOff[j][d]
		}
		top = max(top, scores[j])
		off = max(off, sumTolerance(len(q))*magnitude+inherited)
	}
	sum := 0.0
	for j := range scores {
		scores[j] = math.Exp(scores[j] - top)
		sum += scores[j]
	}
	for d := range y {
		magnitude, inherited := 0.0, 0.0
		for j, w := range scores {
			y[d] += w / sum * e.v[j][d]
			magnitude += w / sum * math.Abs(e.v[j][d])
			inherited += w / sum * e.vOff[j][d]
		}
		limit[d] = magnitude*attentionTolerance(n, off) + inherited + tiny
	}
}

// sharedAttention is attention whose values are the first channels of the keys.
func sharedAttention(s *setup, l latentShape) {
	a := attentionShape{segments: l.segments}
	first, rows := a.rows()
	width := l.rank + l.rope
	data := s.normal(rows * l.heads * width)
	q, y := s.input("Q", data), s.output("Y", rows*l.heads*l.rank)
	op := gpu.Attention{Q: q.view(), Y: y.view(), QRowStride: l.heads * width, QHeadStride: width, Heads: l.heads, KVHeads: 1,
		HeadDim: width, ValueDim: l.rank, Scale: float32(1 / math.Sqrt(float64(width)))}
	want, limit, used := make([]float64, rows*l.heads*l.rank), make([]float64, rows*l.heads*l.rank), make([]bool, rows)
	for i, seg := range l.segments {
		c := s.latents(fmt.Sprintf("sequence %d", i), &l, seg[0]+seg[1])
		op.Cache, op.Segments = c.kv.KVLayout, append(op.Segments, gpu.KVSegment{Row: first[i], Rows: seg[1], Pos: seg[0], Pages: c.kv.Pages})
		for r := range seg[1] {
			used[first[i]+r] = true
			if s.unchecked {
				continue
			}
			for h := range l.heads {
				at, out := ((first[i]+r)*l.heads+h)*width, ((first[i]+r)*l.heads+h)*l.rank
				q, scale := s.query(&c.kv, data[at:at+width], op.Scale)
				c.attend(q, 0, 0, 0, seg[0]+r+1, scale, math.Inf(-1), want[out:out+l.rank], limit[out:out+l.rank])
			}
		}
	}
	y.where(func(i int) bool { return used[i/(l.heads*l.rank)] }).expect(want, limit)
	gpu.Encode(&s.cmds, op)
	s.run()
}

// appendKeys writes rows to a cache without values.
func appendKeys(s *setup, shape cacheShape, rows int) {
	c := s.cache("sequence", shape, 5+rows, 5)
	c.kv.VOffset = c.kv.KOffset
	k := s.normal(rows * shape.dim)
	var want [][]float32
	for r := range rows {
		want = append(want, k[r*shape.dim:][:shape.dim])
	}
	c.expect(5, want, nil)
	gpu.Encode(&s.cmds, gpu.AppendKV{K: s.input("K", k).view(), Cache: c.kv.KVLayout, Segments: []gpu.KVSegment{{Rows: rows, Pos: 5, Pages: c.kv.Pages}}})
	s.run()
}
