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
	"limbs_split":        {"BITS", "GROUP", "LAYOUT", "WIDE"},
	"limbs_matmul":       {"BITS", "GROUP", "LAYOUT", "WIDE", "XROWS", "TILES", "SPLIT", "PARTS"},
	"limbs_swiglu":       {"BITS", "GROUP", "LAYOUT", "WIDE", "XROWS", "TILES", "SPLIT", "PARTS"},
	"limbs_matmul_many":  {"BITS", "GROUP", "LAYOUT", "WIDE", "TILES", "COLS", "PARTS"},
	"limbs_experts":      {"BITS", "GROUP", "LAYOUT", "WIDE", "GATED", "TILES", "SPLIT", "WHICH"},
	"limbs_experts_many": {"BITS", "GROUP", "LAYOUT", "WIDE", "GATED", "TILES", "COLS", "WHICH"},
}

// limbs reports whether a matrix of format f is multiplied by these kernels.
func (x *encoder) limbs(f quant.Format) bool { return x.d.own != nil && f.Kind == quant.Affine }

const (
	limbTile      = 16 // rows of a matrix that a tile has
	limbFew       = 8  // rows of X that a threadgroup has at most, in kernels for few
	limbManyTiles = 8  // warps of a threadgroup in kernels for many rows, which have their tiles each
	limbManyCols  = 4  // times 8 rows of X
	limbManyRows  = 8 * limbManyCols
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
func (x *encoder) splitLimbs(op gpu.Op, f quant.Format, wide bool, r *limbRows, cols int, at *int) {
	groups := cols / f.Group
	r.limbs, r.sums, r.split = x.reserve(at, ceil(3*r.rows*cols, 4)), x.reserve(at, 2*r.rows*groups), true
	d := limbDefines(f, wide)
	x.begin(op, "limbs_split", d[:]...)
	x.views(r.x)
	x.places(r.limbs, r.sums)
	constants(x, limbSplitParams{rows: uint32(r.rows), cols: uint32(cols), xStride: uint32(r.stride)})
	x.end(256, ceil(4*r.rows*groups, 256))
}

type limbPartParams struct{ rows, yStride, first, biased uint32 }

type limbMatMulParams struct{ cols, rows, xStride, _ uint32 }

// limbMatMuls multiplies the same rows by up to 4 matrices of one format.
func (x *encoder) limbMatMuls(all []*gpu.MatMul) {
	o, tiles := all[0], 0
	for _, m := range all {
		tiles += ceil(m.W.Rows, limbTile)
	}
	f := o.W.Format
	r := limbRows{x: o.X, rows: o.Rows, stride: or(o.XStride, o.W.Cols)}
	wide := wideProduct(o)
	d := limbDefines(f, wide)
	at := 0
	if o.Rows > 2*limbFew {
		x.splitLimbs(o, f, wide, &r, o.W.Cols, &at)
		each := 1 + flag(o.Rows > limbManyRows) // tiles of a warp
		x.begin(o, "limbs_matmul_many", d[0], d[1], d[2], d[3], each, limbManyCols, len(all))
		x.places(r.limbs, r.sums)
		x.limbParts(all)
		groups := x.limbParams(all, limbManyTiles*each)
		x.end(256, groups, ceil(o.Rows, limbManyRows))
		return
	}
	if o.Rows > 4 {
		x.splitLimbs(o, f, wide, &r, o.W.Cols, &at)
	}
	xrows, each := vectors(o.Rows), 1+flag(tiles >= limbPairs)
	x.begin(o, "limbs_matmul", d[0], d[1], d[2], d[3], xrows, each, flag(r.split), len(all))
	x.limbRows(&r)
	x.limbParts(all)
	groups := x.limbParams(all, each)
	x.end(32*limbSlices(f, o.W.Cols), groups, ceil(o.Rows, xrows))
}

// limbPairs is from how many tiles of all matrices on a threadgroup has two: there are enough of them then.
const limbPairs = 400

// limbParts binds the products' matrices, biases and results.
func (x *encoder) limbParts(all []*gpu.MatMul) {
	for _, m := range all {
		x.matrix(&m.W)
		x.views(m.Bias, m.Y)
	}
}

// limbParams binds what the kernel has to know of the products. It returns how many threadgroups of so many tiles they take.
func (x *encoder) limbParams(all []*gpu.MatMul, each int) (groups int) {
	o := all[0]
	constants(x, limbMatMulParams{cols: uint32(o.W.Cols), rows: uint32(o.Rows), xStride: uint32(or(o.XStride, o.W.Cols))})
	for _, m := range all {
		more(x, limbPartParams{rows: uint32(m.W.Rows), yStride: uint32(or(m.YStride, m.W.Rows)), first: uint32(groups), biased: uint32(flag(!m.Bias.IsZero()))})
		groups += ceil(ceil(m.W.Rows, limbTile), each)
	}
	return groups
}

// limbSwiGLU multiplies few rows by a gate and an up, and gates.
func (x *encoder) limbSwiGLU(all []*gpu.MatMul, o *gpu.SwiGLU) {
	gate := all[0]
	f := gate.W.Format
	r := limbRows{x: gate.X, rows: gate.Rows, stride: or(gate.XStride, gate.W.Cols)}
	wide, at := wideProduct(gate), 0
	d := limbDefines(f, wide)
	if gate.Rows > 4 {
		x.splitLimbs(gate, f, wide, &r, gate.W.Cols, &at)
	}
	xrows := vectors(gate.Rows)
	x.begin(gate, "limbs_swiglu", d[0], d[1], d[2], d[3], xrows, 2, flag(r.split), 2)
	x.limbRows(&r)
	x.limbParts(all)
	x.views(o.Y)
	x.limbParams(all, 1)
	x.end(32*limbSlices(f, gate.W.Cols), ceil(gate.W.Rows, limbTile), ceil(gate.Rows, xrows))
}

// limbExperts launches products of experts' jobs with rows in; r.rows are all that there may be.
func (x *encoder) limbExperts(b *expertBatch, which int, gated bool, f quant.Format, wide bool, r limbRows, out gpu.View, p expertParams) {
	at, d, many := 0, limbDefines(f, wide), b.xrows > limbFew
	if many || b.o.Rows > 2 {
		x.splitLimbs(b.o, f, wide, &r, int(p.wCols), &at)
	}
	tiles := ceil(int(p.wRows), limbTile)
	each := 1 + flag(gated || many) // tiles of a warp
	if many {
		x.begin(b.o, "limbs_experts_many", d[0], d[1], d[2], d[3], flag(gated), each, limbManyCols, which)
	} else {
		x.begin(b.o, "limbs_experts", d[0], d[1], d[2], d[3], flag(gated), each, flag(r.split), which)
	}
	x.expertLists(b)
	if many {
		x.places(r.limbs, r.sums)
	} else {
		x.limbRows(&r)
	}
	x.views(out)
	constants(x, p)
	if gated {
		each = 1 // of the gates, and one of the ups
	}
	if many {
		x.end(256, ceil(tiles, limbManyTiles*each), b.n)
	} else {
		x.end(32*limbSlices(f, int(p.wCols)), ceil(tiles, each), b.n)
	}
}
