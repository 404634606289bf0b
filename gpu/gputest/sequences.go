package gputest

import (
	"fmt"
	"math"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// sequenceCases are operations that follow one another as in a layer, which a device may compute
// together.
func sequenceCases() []testCase {
	q4, bf := quant.Affine(4, 64), quant.BF16
	p4 := q4
	p4.Layout = quant.Panels
	var all []testCase
	add := func(name string, run func(s *setup)) { all = append(all, testCase{"sequence/" + name, run}) }
	for _, f := range []quant.Format{{}, bf, q4, p4} {
		for _, rows := range []int{1, 3, 9} {
			for n := 2; n <= 5; n += 3 {
				add(fmt.Sprintf("products/format=%v/rows=%d/n=%d", f, rows, n), func(s *setup) { products(s, f, rows, n, false) })
			}
			for _, alias := range []string{"", "Gate", "Up"} {
				add(fmt.Sprintf("swiglu/format=%v/rows=%d/alias=%s", f, rows, alias), func(s *setup) { gatedProducts(s, f, rows, alias) })
			}
		}
		add(fmt.Sprintf("products/format=%v/biased", f), func(s *setup) { products(s, f, 3, 3, true) })
	}
	for _, dim := range []int{5, 64, 516, 1023, 1024, 2048, 4100} {
		for _, rows := range []int{1, 3, 9} {
			for _, inPlace := range []bool{false, true} {
				add(fmt.Sprintf("addnorm/dim=%d/rows=%d/inplace=%t", dim, rows, inPlace), func(s *setup) { addNorm(s, rows, dim, inPlace) })
			}
		}
		for _, c := range []combineShape{{}, {shared: true}, {shared: true, gated: true, inPlace: true}} {
			add(fmt.Sprintf("combinenorm/dim=%d/shared=%t/gated=%t", dim, c.shared, c.gated), func(s *setup) { combineNorm(s, 3, 5, dim, c) })
		}
	}
	for _, h := range []headsShape{
		{rows: 1, heads: 1, kvHeads: 1, dim: 2, rotary: 2},
		{rows: 3, heads: 6, kvHeads: 2, dim: 64, rotary: 64, normed: true},
		{rows: 3, heads: 6, kvHeads: 2, dim: 64, rotary: 16, normed: true, gated: true, interleaved: true},
		{rows: 5, heads: 4, kvHeads: 1, dim: 128, rotary: 128, normed: true},
		{rows: 2, heads: 3, kvHeads: 3, dim: 256, rotary: 64, normed: true, gated: true},
		{rows: 2, heads: 3, kvHeads: 1, dim: 30, rotary: 10},
		{rows: 2, heads: 3, kvHeads: 1, dim: 21, normed: true},
	} {
		for _, group := range []int{0, h.dim, (h.dim + 1) / 2} {
			if group == 0 || h.dim%group == 0 {
				h := h
				h.group = group
				add(h.name(), func(s *setup) { heads(s, h) })
			}
		}
	}
	add("wholenorms", func(s *setup) { wholeNorms(s, 3, 4, 48, 32) })
	add("wholenorms/long", func(s *setup) { wholeNorms(s, 2, 16, 128, 128) })
	add("latents", func(s *setup) { latents(s, 3, 2, 512, 64, 32, 0) })
	add("latents/int8", func(s *setup) { latents(s, 2, 3, 32, 8, 16, 8) })
	return all
}

// product adds a product of data [rows, in] at x and returns its result.
func (s *setup) product(name string, f quant.Format, out, in, rows int, x *operand, data []float32, biased bool) (y *operand, op gpu.MatMul) {
	w := s.matrix(name, out, in, f)
	var bias []float32
	op = gpu.MatMul{W: w.Matrix, X: x.view(), Rows: rows}
	if biased {
		bias = s.normal(out)
		op.Bias = s.input(name+" bias", bias).view()
	}
	want, limit := make([]float64, rows*out), make([]float64, rows*out)
	for r := range rows {
		v, l := w.times(s.held(w, float64s(data[r*in:(r+1)*in]), nil))
		for o := range v {
			if biased {
				v[o] += float64(bias[o])
				l[o] += unit * math.Abs(v[o])
			}
		}
		copy(want[r*out:], v)
		copy(limit[r*out:], l)
	}
	y = s.output(name+" Y", rows*out)
	y.expect(want, limit)
	op.Y = y.view()
	return y, op
}

// products multiplies the same rows by n matrices.
func products(s *setup, f quant.Format, rows, n int, biased bool) {
	const in = 256
	data := s.normal(rows * in)
	x := s.input("X", data)
	for i := range n {
		_, op := s.product(fmt.Sprintf("W%d", i), f, 16*(1+(3*i)%5), in, rows, x, data, biased)
		gpu.Encode(&s.cmds, op)
	}
	s.run()
}

// gatedProducts multiplies by a gate and an up and gates.
func gatedProducts(s *setup, f quant.Format, rows int, alias string) {
	const in, out = 256, 48
	data := s.normal(rows * in)
	for i := range data {
		data[i] /= 16 // so that silu sees numbers around 1
	}
	x := s.input("X", data)
	gate, g := s.product("gate", f, out, in, rows, x, data, false)
	up, u := s.product("up", f, out, in, rows, x, data, false)
	gpu.Encode(&s.cmds, g)
	gpu.Encode(&s.cmds, u)
	want, limit := make([]float64, rows*out), make([]float64, rows*out)
	for i := range want {
		want[i] = silu(gate.want[i]) * up.want[i]
		limit[i] = siluSlope*gate.limit[i]*(math.Abs(up.want[i])+up.limit[i]) + math.Abs(silu(gate.want[i]))*up.limit[i] + functionTolerance*math.Abs(want[i]) + tiny
	}
	y := map[string]*operand{"Gate": gate, "Up": up}[alias]
	if y == nil {
		y = s.output("Y", rows*out)
	}
	y.expect(want, limit)
	gpu.Encode(&s.cmds, gpu.SwiGLU{Gate: gate.view(), Up: up.view(), Y: y.view(), Rows: rows, Dim: out})
	s.run()
}

// expectNorm expects the norm of x [rows, dim], which may be off by limit, in y.
func (s *setup) expectNorm(y *operand, x, limit []float64, rows, dim int, w []float32) {
	want, off := make([]float64, rows*dim), make([]float64, rows*dim)
	for r := range rows {
		v := x[r*dim : (r+1)*dim]
		factor, slack := 1/math.Sqrt(meanSquare(v)+eps), 0.0
		// the mean is off by 2/n·Σ|x|·limit, the factor by half of that against the mean
		for i := range v {
			slack += math.Abs(v[i]) * limit[r*dim+i] * factor * factor / float64(dim)
		}
		for i := range v {
			at, scale := r*dim+i, factor*math.Abs(float64(w[i]))
			want[at] = float64(w[i]) * v[i] * factor
			off[at] = scale*limit[at] + (slack+normTolerance(dim))*math.Abs(want[at]) + tiny
		}
	}
	y.expect(want, off)
}

// addNorm adds and normalises. With inPlace the sum is the residual stream's, as in a layer.
func addNorm(s *setup, rows, dim int, inPlace bool) {
	s.addedNorm(rows, dim, inPlace)
	s.run()
}

// addedNorm adds the two operations and returns the norm's result.
func (s *setup) addedNorm(rows, dim int, inPlace bool) *operand {
	a, b, w := s.normal(rows*dim), s.normal(rows*dim), s.normal(dim)
	sum := make([]float32, len(a))
	for i := range sum {
		sum[i] = a[i] + b[i]
	}
	var z *operand
	op := gpu.Add{B: s.input("B", b).view(), N: rows * dim}
	if inPlace {
		z = s.inout("A and sum", a)
		op.A = z.view()
	} else {
		z = s.output("sum", rows*dim)
		op.A = s.input("A", a).view()
	}
	op.Y = z.view()
	z.expectExactly(sum)
	y := s.output("Y", rows*dim)
	s.expectNorm(y, float64s(sum), z.limit, rows, dim, w)
	gpu.Encode(&s.cmds, op)
	gpu.Encode(&s.cmds, gpu.RMSNorm{X: z.view(), W: s.input("W", w).view(), Y: y.view(), Vectors: rows, Dim: dim, Eps: eps})
	return y
}

// combineNorm ends an expert layer and normalises for the next.
func combineNorm(s *setup, rows, topK, dim int, c combineShape) {
	s.combinedNorm(rows, topK, dim, c)
	s.run()
}

// combinedNorm adds the two operations and returns the norm's result.
func (s *setup) combinedNorm(rows, topK, dim int, c combineShape) *operand {
	z := s.combined(rows, topK, dim, c)
	w := s.normal(dim)
	y := s.output("normed", rows*dim)
	s.expectNorm(y, z.want, z.limit, rows, dim, w)
	gpu.Encode(&s.cmds, gpu.RMSNorm{X: z.view(), W: s.input("W", w).view(), Y: y.view(), Vectors: rows, Dim: dim, Eps: eps})
	return y
}
