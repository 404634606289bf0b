package gputest

import (
	"fmt"
	"math"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/internal/numcmp"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// multipliedCases are operations whose results products multiply next. A device may prepare the
// rows for the products where they are written: the products must have the bits that they have
// without.
func multipliedCases() (all []testCase) {
	add := func(group int, format string, values []any, rows func(s *setup) (x *operand, n, dim int)) {
		name := fmt.Sprintf("multiplied/group=%d/", group) + fmt.Sprintf(format, values...)
		all = append(all, testCase{name, func(s *setup) {
			x, n, dim := rows(s)
			s.multiplied(x, n, dim, group)
		}})
	}
	for _, c := range []struct{ group, rows, dim int }{{64, 1, 1088}, {64, 3, 256}, {64, 9, 2048}, {32, 4, 96}, {128, 40, 128}, {128, 2, 1024}, {32, 17, 1120}} {
		at := []any{c.rows, c.dim}
		add(c.group, "norm/rows=%d/dim=%d", at, func(s *setup) (*operand, int, int) { return s.extremeNorm(c.rows, c.dim), c.rows, c.dim })
		add(c.group, "addnorm/rows=%d/dim=%d", at, func(s *setup) (*operand, int, int) { return s.addedNorm(c.rows, c.dim, true), c.rows, c.dim })
		add(c.group, "combinenorm/rows=%d/dim=%d", at, func(s *setup) (*operand, int, int) {
			return s.combinedNorm(c.rows, 3, c.dim, combineShape{}), c.rows, c.dim
		})
	}
	for _, a := range []attentionShape{
		{heads: 2, kvHeads: 1, dim: 64, pageRows: 48, segments: [][2]int{{70, 1}, {3, 1}, {32, 1}}},
		{heads: 4, kvHeads: 2, dim: 128, pageRows: 64, segments: [][2]int{{600, 8}, {5, 7}, {513, 1}}},
		{heads: 1, kvHeads: 1, dim: 256, pageRows: 64, segments: [][2]int{{40, 1}}},
		{heads: 2, kvHeads: 1, dim: 64, pageRows: 64, segments: [][2]int{{3, 1}, {5, 1}}},
	} {
		for _, group := range []int{32, 64, 128} {
			add(group, "attention/heads=%d/dim=%d/at=%v", []any{a.heads, a.dim, a.segments}, func(s *setup) (*operand, int, int) {
				y, rows := s.attended(a)
				return y, rows, a.heads * a.dim
			})
		}
	}
	return all
}

// extremeNorm adds a norm of numbers of every size. A row of several has one that is not finite.
func (s *setup) extremeNorm(rows, dim int) *operand {
	data, w := s.extreme(rows*dim), s.normal(dim)
	if rows > 1 {
		data[rows*dim-3] = float32(math.Inf(1))
	}
	for i := range w { // products of every size, too
		w[i] = float32(math.Ldexp(float64(w[i]), i/8%40-30))
	}
	y := s.output("Y", rows*dim)
	gpu.Encode(&s.cmds, gpu.RMSNorm{X: s.input("X", data).view(), W: s.input("W", w).view(), Y: y.view(), Vectors: rows, Dim: dim, Eps: eps})
	return y
}

// multiplied adds products of rows that the operations before write, runs everything, and once more
// each operation by itself. The first two products have the same groups, the last one others.
func (s *setup) multiplied(x *operand, rows, dim, group int) {
	q4, q8 := quant.Affine(4, group).In(quant.Panels, quant.PanelRows), quant.Affine(8, group)
	other := quant.Affine(4, 32)
	if group == 32 {
		other = quant.BF16
	}
	var results []*operand
	for i, f := range []quant.Format{q4, q8, other} {
		y := s.output(fmt.Sprintf("product %d", i), rows*32)
		w := s.matrix(fmt.Sprintf("W%d", i), 32, dim, f)
		gpu.Encode(&s.cmds, gpu.MatMul{W: w.Matrix, X: x.view(), Y: y.view(), Rows: rows})
		results = append(results, y)
	}
	s.run()
	if s.unchecked {
		return
	}
	var got [][]float32
	for _, y := range append(results, x) {
		got = append(got, y.floats())
	}
	s.cmds.Plain = true
	s.run()
	for i, y := range append(results, x) {
		if err := numcmp.Equal(got[i], y.floats()); err != nil {
			s.t.Errorf("%s after all that comes before, and by itself: %v", y.name, err)
		}
	}
}
