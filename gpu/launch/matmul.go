package launch

import (
	"math/bits"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// shape is how a matrix is stored and taken apart, the defines of product.metal.
type shape struct {
	coding, layout int
	groupBits      uint32 // a group has 2^groupBits inputs
	tile           int    // rows of the matrix that a threadgroup computes
	unit, lanes    int    // inputs that a lane takes in a step; lanes along them
}

// The values of LAYOUT.
const (
	layoutRows = iota
	layoutPanels
	layoutPanelRows // panels, any 4 rows
)

func shapeOf(f quant.Format) shape {
	s := shape{coding: int(f.Coding()), tile: 4, unit: 4, lanes: 32}
	if f.Codes() {
		s.groupBits, s.unit = uint32(bits.TrailingZeros(uint(f.Group()))), 32/f.Bits()
	}
	if f.Layout == quant.Panels {
		s.layout, s.tile, s.lanes = layoutPanels, quant.PanelRows, 8
	}
	return s
}

// anyRows is s for tiles that begin at any row.
func (s shape) anyRows() shape {
	if s.layout == layoutPanels {
		s.layout, s.tile, s.lanes = layoutPanelRows, 4, 32
	}
	return s
}

// maxSimdgroups is how many simdgroups of a product's threadgroup share the inputs at most, as in
// product.metal.
const maxSimdgroups = 8

// simdgroups returns how many share cols inputs: each has a few steps. It depends on the matrix
// alone, as the order of sums does.
func (s shape) simdgroups(cols int) int {
	steps, n := ceil(ceil(cols, s.unit), s.lanes), 1
	for n < maxSimdgroups && 2*n < steps {
		n *= 2
	}
	return n
}

// wide reports whether vectors of 16 bytes can be loaded from m and from inputs at x with these
// strides.
func (s shape) wide(m *gpu.Matrix, x gpu.View, strides ...int) bool {
	for _, n := range strides {
		if n%4 != 0 {
			return false
		}
	}
	return aligned(16, x) && s.wideMatrix(m)
}

// wideMatrix reports whether they can be loaded from m.
func (s shape) wideMatrix(m *gpu.Matrix) bool {
	return m.Cols%4 == 0 && aligned(16, m.Weight) && aligned(8, m.Scales, m.Biases)
}

// vectors is how many rows of X a threadgroup takes, of n.
func vectors(n int) int {
	switch {
	case n >= 5:
		return 8
	case n >= 3:
		return 4
	}
	return n
}

type matMulParams struct{ wRows, wCols, rows, xStride, yStride, groupBits uint32 }

func (x *encoder) matMul(o *gpu.MatMul) {
	if x.limbs(o.W.Format) {
		one := [...]*gpu.MatMul{o}
		x.limbMatMuls(one[:])
		return
	}
	s, xStride := shapeOf(o.W.Format), or(o.XStride, o.W.Cols)
	xrows := vectors(o.Rows)
	x.begin(o, "matmul", s.coding, s.layout, flag(s.wide(&o.W, o.X, xStride)), xrows, flag(!o.Bias.IsZero()))
	x.matrix(&o.W)
	x.views(o.X, o.Bias, o.Y)
	constants(x, matMulParams{uint32(o.W.Rows), uint32(o.W.Cols), uint32(o.Rows), uint32(xStride), uint32(or(o.YStride, o.W.Rows)), s.groupBits})
	x.end(32*s.simdgroups(o.W.Cols), ceil(o.W.Rows, s.tile), ceil(o.Rows, xrows))
}

type embedParams struct{ n, cols, groupBits uint32 }

func (x *encoder) embed(o *gpu.Embed) {
	s := shapeOf(o.Table.Format).anyRows()
	n := len(o.Tokens) * o.Table.Cols
	x.begin(o, "embed", s.coding, s.layout)
	x.matrix(&o.Table)
	x.tableAt(table(x, o.Tokens))
	x.views(o.Y)
	constants(x, embedParams{uint32(n), uint32(o.Table.Cols), s.groupBits})
	x.elements(n)
}
