package launch

import "github.com/moeflux/moeflux-actor/gpu"

type headParams struct {
	wRows, wCols, rows, in, out, headRows, firstRow uint32
	xRow, xHead, yRow, yHead, groupBits             uint32
}

func (x *encoder) headMatMul(o *gpu.HeadMatMul) {
	x.headProduct(o, o, place{view: o.X}, place{view: o.Y})
}

// headProduct multiplies as o says, whose X and Y are not looked at, for op.
func (x *encoder) headProduct(op gpu.Op, o *gpu.HeadMatMul, from, to place) {
	s := shapeOf(o.W.Format).anyRows()
	name, xrows, wide := "head_matmul_transposed", 1, s.wideMatrix(&o.W)
	if !o.Transposed {
		name, xrows, wide = "head_matmul", vectors(o.Rows), wide && from.aligned16() && o.XRowStride%4 == 0 && o.XHeadStride%4 == 0
	}
	x.begin(op, name, s.coding, s.layout, flag(wide), xrows)
	x.matrix(&o.W)
	x.places(from, to)
	constants(x, headParams{uint32(o.W.Rows), uint32(o.W.Cols), uint32(o.Rows), uint32(o.In), uint32(o.Out), uint32(o.HeadRows), uint32(o.FirstRow),
		uint32(o.XRowStride), uint32(o.XHeadStride), uint32(o.YRowStride), uint32(o.YHeadStride), s.groupBits})
	if o.Transposed {
		x.end(32*maxSimdgroups, ceil(o.Out, 32*s.unit), o.Heads, o.Rows)
		return
	}
	x.end(32*s.simdgroups(o.W.Cols), ceil(o.Out, s.tile), o.Heads, ceil(o.Rows, xrows))
}
