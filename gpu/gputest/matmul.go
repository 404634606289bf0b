package gputest

import (
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model/quant"
)

type matmulShape struct {
	format           quant.Format
	out, in, rows    int
	xStride, yStride int
	exact            bool
}

func matmulCases() []testCase {
	var all []testCase
	add := func(m matmulShape, suffix string) {
		name := "matmul/" + shapeName(m.format, m.out, m.in, m.rows) + suffix
		all = append(all, testCase{name, func(s *setup) { matmul(s, m) }})
	}
	for _, f := range formats() {
		for _, rows := range []int{1, 2, 3, 5, 64} {
			add(matmulShape{format: f, out: 13, in: 384, rows: rows}, "")
		}
		add(matmulShape{format: f, out: 1, in: 128, rows: 150}, "")
		add(matmulShape{format: f, out: 259, in: 256, rows: 1}, "")
		add(matmulShape{format: f, out: 9, in: 128, rows: 3, xStride: 131, yStride: 10}, "/strided")
	}
	for _, f := range panelFormats() {
		for _, rows := range []int{1, 2, 3, 5, 64} {
			add(matmulShape{format: f, out: 48, in: 384, rows: rows}, "")
		}
		add(matmulShape{format: f, out: 16, in: 128, rows: 150}, "")
		add(matmulShape{format: f, out: 272, in: 256, rows: 1}, "")
		add(matmulShape{format: f, out: 32, in: 128, rows: 3, xStride: 131, yStride: 33}, "/strided")
		add(matmulShape{format: f, out: 32, in: 256, rows: 3, exact: true}, "/exact")
	}
	// More rows than any one kernel is made for.
	for _, rows := range []int{16, 17, 33, 129, 600} {
		f := quant.Affine(4, 64)
		add(matmulShape{format: f, out: 21, in: 192, rows: rows}, "")
		f.Layout = quant.Panels
		add(matmulShape{format: f, out: 48, in: 192, rows: rows}, "")
	}
	for _, f := range formats()[:2] {
		for _, in := range []int{1, 3, 5, 63, 65, 71, 130} {
			add(matmulShape{format: f, out: 3, in: in, rows: 1}, "")
			add(matmulShape{format: f, out: 3, in: in, rows: 3}, "")
		}
	}
	// Input lengths of real models, which are not multiples of what kernels like.
	for _, in := range []int{576, 768, 1408, 2880, 4160, 7168, 18432} {
		f := quant.Affine(4, 64)
		if in == 2880 {
			f = quant.Affine(4, 32)
		}
		add(matmulShape{format: f, out: 17, in: in, rows: 1}, "")
		add(matmulShape{format: f, out: 17, in: in, rows: 4}, "")
		f.Layout = quant.Panels
		add(matmulShape{format: f, out: 32, in: in, rows: 1}, "")
		add(matmulShape{format: f, out: 32, in: in, rows: 7}, "")
	}
	return all
}

// matmul: Y[r, o] = Σ_i W[o, i]·X[r, i].
func matmul(s *setup, m matmulShape) {
	w := s.matrix("W", m.out, m.in, m.format)
	xs, ys := m.xStride, m.yStride
	if xs == 0 {
		xs, ys = m.in, m.out
	}
	data := s.normal((m.rows-1)*xs + m.in)
	x, y := s.input("X", data), s.output("Y", (m.rows-1)*ys+m.out)
	want, limit := make([]float64, (m.rows-1)*ys+m.out), make([]float64, (m.rows-1)*ys+m.out)
	for r := range m.rows {
		held, off := float64s(data[r*xs:r*xs+m.in]), []float64(nil)
		if !m.exact {
			held, off = s.held(w, held, nil)
		}
		v, l := w.times(held, off)
		copy(want[r*ys:], v)
		copy(limit[r*ys:], l)
	}
	y.where(func(i int) bool { return i%ys < m.out }).expect(want, limit)
	gpu.Encode(&s.cmds, gpu.MatMul{W: w.Matrix, X: x.view(), Y: y.view(), Rows: m.rows, XStride: m.xStride, YStride: m.yStride, Exact: m.exact})
	s.run()
}
