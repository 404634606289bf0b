package gputest

import (
	"fmt"
	"math"

	"github.com/moeflux/moeflux-actor/gpu"
)

func elementCases() []testCase {
	var all []testCase
	for _, n := range []int{1, 15, 16, 17, 1000, 70001} {
		for _, alias := range []string{"", "A", "B"} {
			all = append(all, testCase{fmt.Sprintf("add/n=%d/alias=%s", n, alias), func(s *setup) { add(s, n, alias) }})
		}
	}
	for _, rows := range []int{1, 3, 40} {
		for _, alias := range []string{"", "Gate", "Up"} {
			for _, clamp := range []gpu.Clamp{{}, {Limit: 0.75, Alpha: 1.702}, {Limit: 0.25}} {
				all = append(all, testCase{fmt.Sprintf("swiglu/rows=%d/alias=%s/clamp=%v", rows, alias, clamp), func(s *setup) { swiglu(s, rows, 77, alias, clamp) }})
			}
		}
		all = append(all,
			testCase{fmt.Sprintf("sigmoidgate/rows=%d", rows), func(s *setup) { sigmoidGate(s, rows, 5, 24, 5*24, 24, false) }},
			testCase{fmt.Sprintf("sigmoidgate/rows=%d/perhead", rows), func(s *setup) { sigmoidGate(s, rows, 5, 24, 5+2, 1, true) }},
			testCase{fmt.Sprintf("sigmoidgate/rows=%d/strided", rows), func(s *setup) { sigmoidGate(s, rows, 5, 24, 5*48+7, 48, false) }})
	}
	return all
}

// add: Y[i] = A[i] + B[i]; one rounding, so the result is exact in float32 arithmetic.
func add(s *setup, n int, alias string) {
	a, b := s.normal(n), s.extreme(n)
	want := make([]float32, n)
	for i := range want {
		want[i] = float32(float64(a[i]) + float64(b[i]))
	}
	y, op := aliased(s, "A", a, "B", b, alias)
	y.expectExactly(want)
	gpu.Encode(&s.cmds, gpu.Add{A: op[0], B: op[1], Y: y.view(), N: n})
	s.run()
}

// aliased places two inputs and an output that is one of them, if alias names it.
func aliased(s *setup, nameA string, a []float32, nameB string, b []float32, alias string) (y *operand, in [2]gpu.View) {
	for i, name := range []string{nameA, nameB} {
		data := a
		if i == 1 {
			data = b
		}
		if name == alias {
			y = s.inout(name+" and Y", data)
			in[i] = y.view()
		} else {
			in[i] = s.input(name, data).view()
		}
	}
	if y == nil {
		y = s.output("Y", len(a))
	}
	return y, in
}

// swiglu: Y = silu(Gate)·Up, or what clamp makes of them.
func swiglu(s *setup, rows, dim int, alias string, clamp gpu.Clamp) {
	n := rows * dim
	gate, up := s.extreme(n), s.normal(n)
	want, limit := make([]float64, n), make([]float64, n)
	for i := range want {
		want[i], limit[i] = gated(clamp, float64(gate[i]), 0, float64(up[i]), 0)
		limit[i] += tiny
	}
	y, in := aliased(s, "Gate", gate, "Up", up, alias)
	y.expect(want, limit)
	gpu.Encode(&s.cmds, gpu.SwiGLU{Gate: in[0], Up: in[1], Y: y.view(), Rows: rows, Dim: dim, Clamp: clamp})
	s.run()
}

// sigmoidGate: X[r, h, d] *= σ(G[r, h, d]), or σ(G[r, h]).
func sigmoidGate(s *setup, rows, heads, dim, rowStride, headStride int, perHead bool) {
	x := s.normal(rows * heads * dim)
	g := s.extreme((rows-1)*rowStride + (heads-1)*headStride + dim)
	want, limit := make([]float64, len(x)), make([]float64, len(x))
	for r := range rows {
		for h := range heads {
			for d := range dim {
				i, at := (r*heads+h)*dim+d, d
				if perHead {
					at = 0
				}
				want[i] = float64(x[i]) * sigmoid(float64(g[r*rowStride+h*headStride+at]))
				limit[i] = functionTolerance*math.Abs(want[i]) + tiny
			}
		}
	}
	xo, gate := s.inout("X", x), s.input("G", g)
	xo.expect(want, limit)
	gpu.Encode(&s.cmds, gpu.SigmoidGate{X: xo.view(), G: gate.view(), Rows: rows, Heads: heads, Dim: dim,
		GRowStride: rowStride, GHeadStride: headStride, PerHead: perHead})
	s.run()
}

func ropeCases() []testCase {
	var all []testCase
	for _, r := range []ropeShape{
		{rows: 1, heads: 1, rotary: 2, rowStride: 2, headStride: 2},
		{rows: 3, heads: 4, rotary: 16, rowStride: 64, headStride: 16},
		// channels left alone
		{rows: 3, heads: 4, rotary: 16, rowStride: 4 * 40, headStride: 40},
		// gate between the heads
		{rows: 33, heads: 3, rotary: 64, rowStride: 3*512 + 9, headStride: 512},
	} {
		for _, interleaved := range []bool{false, true} {
			r.interleaved = interleaved
			name := fmt.Sprintf("rope/rows=%d/rotary=%d/stride=%d/interleaved=%t", r.rows, r.rotary, r.headStride, interleaved)
			all = append(all, testCase{name, func(s *setup) { rope(s, r) }})
		}
	}
	return all
}

type ropeShape struct {
	rows, heads, rotary, rowStride, headStride int
	interleaved                                bool
}

// rope: y_a = x_a·cos - x_b·sin, y_b = x_a·sin + x_b·cos.
func rope(s *setup, r ropeShape) {
	data := s.normal((r.rows-1)*r.rowStride + (r.heads-1)*r.headStride + r.rotary)
	table := make([]float32, r.rows*r.rotary)
	for i := range len(table) / 2 {
		angle := s.rng.Float64() * 100
		table[2*i], table[2*i+1] = float32(math.Cos(angle)), float32(math.Sin(angle))
	}
	want, limit := float64s(data), make([]float64, len(data))
	turned := make([]bool, len(data))
	for row := range r.rows {
		for h := range r.heads {
			for i := range r.rotary / 2 {
				a := row*r.rowStride + h*r.headStride
				b := a + i + r.rotary/2
				a += i
				if r.interleaved {
					a, b = a+i, a+i+1
				}
				cos, sin := float64(table[row*r.rotary+2*i]), float64(table[row*r.rotary+2*i+1])
				x, y := float64(data[a]), float64(data[b])
				want[a], want[b] = x*cos-y*sin, x*sin+y*cos
				limit[a] = ropeTolerance * (math.Abs(x*cos) + math.Abs(y*sin))
				limit[b] = ropeTolerance * (math.Abs(x*sin) + math.Abs(y*cos))
				turned[a], turned[b] = true, true
			}
		}
	}
	x := s.inout("X", data).where(func(i int) bool { return turned[i] })
	x.expect(want, limit)
	gpu.Encode(&s.cmds, gpu.Rope{X: x.view(), Table: s.input("Table", table).view(), Rows: r.rows, Heads: r.heads,
		Rotary: r.rotary, RowStride: r.rowStride, HeadStride: r.headStride, Interleaved: r.interleaved})
	s.run()
}
