package launch

import (
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// LimbBackend is a Backend with kernels of its own for products with affine matrices, in place of the portable ones of matmul.metal and
// experts.metal. They cut rows of float32 into limbs, see gpu/cuda/override/limbs.cu, and are named in limbKernels. What they
// are launched with is decided here, as for all kernels.
type LimbBackend interface {
	Backend
	// LimbProducts reports whether this device runs those kernels.
	LimbProducts() bool
	// CompileOwn makes a pipeline of one of them.
	CompileOwn(k Kernel) (Pipeline, error)
}

// limbKernels is the table of those kernels, as kernelDefines is that of the portable ones.
var limbKernels = map[string][]string{
	"limbs_split":   {"BITS", "GROUP", "LAYOUT", "WIDE"},
	"limbs_matmul":  {"BITS", "GROUP", "LAYOUT", "WIDE", "INPUTS", "XROWS", "TILES", "SPLIT", "PARTS"},
	"limbs_experts": {"BITS", "GROUP", "LAYOUT", "WIDE", "INPUTS", "XROWS", "TILES", "SPLIT", "GATED", "WHICH"},
}

// limbs reports whether a matrix of format f is multiplied by these kernels.
func (x *encoder) limbs(f quant.Format) bool { return x.d.own != nil && f.Kind == quant.Affine }

const (
	limbTile = 16 // rows of a matrix that a tile has
	limbFew  = 8  // rows of X that a threadgroup has in kernels for few
	limbMany = 32 // and in those for many
	// limbWide is how many tiles fill a GPU: where there are more, a warp has two, which share the limbs.
	limbWide = 400
)

// limbDefines are those that all kernels have.
func limbDefines(f quant.Format, wide bool) [4]int {
	layout := layoutRows
	if f.Layout == quant.Panels {
		layout = layoutPanels
	}
	return [4]int{f.Bits, f.Group, layout, flag(wide)}
}

// limbSlices is into how many slices the kernels cut cols inputs, as slices_of does: a warp has one.
func limbSlices(f quant.Format, cols int) int {
	groups := cols / f.Group
	each := ceil(groups, min(ceil(groups, 8), 8))
	return ceil(groups, each)
}

// limbRows is rows of X as the kernels take them: float32, and limbs where they have been made.
type limbRows struct {
	x            gpu.View
	limbs, sums  place // scratch memory
	split        bool
	rows, stride int
}

// bind binds them, for kernels that may make limbs themselves.
func (x *encoder) limbRows(r *limbRows) {
	x.views(r.x)
	if !r.split {
		x.views(gpu.View{}, gpu.View{})
		return
	}
	x.places(r.limbs, r.sums)
}

type limbSplitParams struct{ rows, cols, xStride, _ uint32 }

// splitLimbs makes limbs of rows in scratch memory from byte *at on, and moves *at behind them.
func (x *encoder) splitLimbs(op gpu.Op, d [4]int, r *limbRows, cols int, at *int) {
	groups := cols / d[1]
	r.limbs, r.sums, r.split = x.reserve(at, ceil(3*r.rows*cols, 4)), x.reserve(at, 2*r.rows*groups), true
	x.begin(op, "limbs_split", d[:]...)
	x.views(r.x)
	x.places(r.limbs, r.sums)
	constants(x, limbSplitParams{rows: uint32(r.rows), cols: uint32(cols), xStride: uint32(r.stride)})
	x.end(256, ceil(4*r.rows*groups, 256))
}

// lastSplit is rows whose limbs lie in scratch memory: no operation but products of the same rows has come since.
type lastSplit struct {
	rows        limbRows
	cols, group int
	at          int // the last operation that used them
}

// splitOnce is splitLimbs for a product, unless the operation before it has multiplied the same rows, which it cannot have changed.
func (x *encoder) splitOnce(o *gpu.MatMul, d [4]int, r *limbRows) {
	l := &x.lastSplit
	if l.rows.split && l.at+1 == x.at && l.rows.x == r.x && l.rows.rows == r.rows && l.rows.stride == r.stride && l.cols == o.W.Cols && l.group == d[1] {
		*r = l.rows
	} else {
		at := 0
		x.splitLimbs(o, d, r, o.W.Cols, &at)
	}
	*l = lastSplit{rows: *r, cols: o.W.Cols, group: d[1], at: x.at}
}

type limbPartParams struct{ rows, yStride, first, biased uint32 }

type limbMatMulParams struct {
	cols, rows, xStride, _ uint32
	part                   limbPartParams
}

// limbShape is how a product's rows are spread over threadgroups.
type limbShape struct {
	xrows int // rows of X that one takes
	tiles int // tiles of the matrix
	split bool
}

// limbShapeOf returns that for so many rows, and tiles of 16 rows of the matrix. Limbs of few rows each warp makes for itself: a kernel that does it
// once costs a launch.
func limbShapeOf(rows, tiles int) limbShape {
	s := limbShape{xrows: vectors(rows), tiles: 1 + flag(tiles >= limbWide), split: rows > 4}
	switch {
	case rows > 16:
		s.xrows, s.tiles = limbMany, 1+flag(tiles*ceil(rows, limbMany) >= limbWide/2)
	case rows > limbFew:
		s.xrows = 16
	}
	return s
}

// limbMatMul is matMul. The kernel can take up to 4 matrices of one format with one X: PARTS of them, their parameters and their entries in
// limbMatMulParams one behind the other, and threadgroups for the tiles of all.
func (x *encoder) limbMatMul(o *gpu.MatMul) {
	f := o.W.Format
	r := limbRows{x: o.X, rows: o.Rows, stride: or(o.XStride, o.W.Cols)}
	d, tiles := limbDefines(f, shapeOf(f).wide(&o.W, o.X, r.stride)), ceil(o.W.Rows, limbTile)
	s := limbShapeOf(o.Rows, tiles)
	if s.split {
		x.splitOnce(o, d, &r)
	}
	x.begin(o, "limbs_matmul", d[0], d[1], d[2], d[3], o.W.Cols, s.xrows, s.tiles, flag(r.split), 1)
	x.limbRows(&r)
	x.matrix(&o.W)
	x.views(o.Bias, o.Y)
	constants(x, limbMatMulParams{cols: uint32(o.W.Cols), rows: uint32(o.Rows), xStride: uint32(r.stride),
		part: limbPartParams{rows: uint32(o.W.Rows), yStride: uint32(or(o.YStride, o.W.Rows)), biased: uint32(flag(!o.Bias.IsZero()))}})
	x.end(32*limbSlices(f, o.W.Cols), ceil(tiles, s.tiles), ceil(o.Rows, s.xrows))
}

// limbExperts launches a product of experts' jobs. r has all rows that there may be.
func (x *encoder) limbExperts(b *expertBatch, which int, gated bool, f quant.Format, r limbRows, out gpu.View, p expertParams) {
	d, tiles := limbDefines(f, b.formats.wide[which]), ceil(int(p.wRows), limbTile)
	if b.o.Rows > 2 {
		at := 0
		x.splitLimbs(b.o, d, &r, int(p.wCols), &at)
	}
	warps := limbSlices(f, int(p.wCols)) * (1 + flag(gated)) // the gates' and the ups'
	xrows, each := limbFew, 1
	if b.xrows > limbFew {
		xrows, each = limbMany, 1+flag(warps <= 8) // what they leave for the others fits into 48 KiB
	}
	x.begin(b.o, "limbs_experts", d[0], d[1], d[2], d[3], int(p.wCols), xrows, each, flag(r.split), flag(gated), which)
	x.tableAt(b.experts)
	x.tableAt(b.jobs)
	x.tableAt(b.pairs)
	x.limbRows(&r)
	x.views(out)
	constants(x, p)
	x.end(32*warps, ceil(tiles, each), b.njobs)
}
