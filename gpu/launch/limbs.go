package launch

import (
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// LimbBackend is a Backend with kernels of its own for products with affine matrices, in place of
// the portable ones of matmul.metal and experts.metal. They cut rows of float32 into limbs, see
// gpu/cuda/override/limbs.cu, and are named in limbKernels. What they are launched with is decided
// here, as for all kernels.
type LimbBackend interface {
	Backend
	// LimbProducts reports whether this device runs those kernels.
	LimbProducts() bool
	// Rounds reports whether they round the inputs of products that are not exact to 8 bits, see
	// gpu.MatMul.
	Rounds() bool
	// CompileOwn makes a pipeline of one of them.
	CompileOwn(k Kernel) (Pipeline, error)
}

// limbKernels is the table of those kernels, as kernelDefines is that of the portable ones.
var limbKernels = map[string][]string{
	"limbs_split": {defineCoding, "GROUP", "LAYOUT", "WIDE", "ROUNDED"},
	"limbs_matmul": {defineCoding, "GROUP", "LAYOUT", "WIDE", "ROUNDED",
		"INPUTS", "XROWS", "TILES", "STAGED", "SPLIT", "PARTS"},
	"limbs_swiglu": {defineCoding, "GROUP", "LAYOUT", "WIDE", "ROUNDED",
		"INPUTS", "XROWS", "SPLIT", "PARTS"},
	"limbs_experts": {defineCoding, "GROUP", "LAYOUT", "WIDE", "ROUNDED",
		"INPUTS", "XROWS", "TILES", "STAGED", "SPLIT", "GATED", "BIASED", "CLAMPED", "WHICH", "SETTLED"},
}

// limbs reports whether a matrix of format f is multiplied by these kernels.
func (x *encoder) limbs(f quant.Format) bool { return x.d.own != nil && f.Affine() }

const (
	limbTile = 16 // rows of a matrix that a tile has
	limbFew  = 8  // rows of X that a threadgroup has in kernels for few
	limbMany = 32 // and in those for many
	limbJob  = 48 // pairs of a large job of experts
)

// limbFormat is the values of the defines that all kernels have.
type limbFormat struct{ coding, group, layout, wide, rounded int }

// limbFormat returns them for a product with a matrix of format f. Exact products take three limbs
// of an input whatever the device is set to.
func (x *encoder) limbFormat(f quant.Format, wide, exact bool) limbFormat {
	layout := layoutRows
	if f.Layout == quant.Panels {
		layout = layoutPanels
	}
	return limbFormat{int(f.Coding()), f.Group(), layout, flag(wide), x.rounded(exact)}
}

// rounded is 1 if the device rounds the inputs of a product that is exact or is not, else 0.
func (x *encoder) rounded(exact bool) int { return flag(x.d.own != nil && x.d.own.Rounds() && !exact) }

// limbSlices is into how many slices the kernels cut cols inputs, as slices_of does: a warp has
// one.
func limbSlices(f quant.Format, cols int) int {
	groups := cols / f.Group()
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

// splitKernel is the kernel that makes limbs for products with these defines.
func (x *encoder) splitKernel(d limbFormat) Kernel {
	return x.kernel("limbs_split", d.coding, d.group, d.layout, d.wide, d.rounded).Kernel
}

type limbSplitParams struct{ rows, cols, xStride, _ uint32 }

// splitLimbs makes limbs of rows in scratch memory, where those were that had been made.
func (x *encoder) splitLimbs(op gpu.Op, d limbFormat, r *limbRows, cols int) {
	at := 0
	x.made = limbsMade{}
	x.reserveLimbs(r, cols, d.group, d.rounded, &at)
	x.beginKernel(op, x.splitKernel(d))
	x.views(r.x)
	x.places(r.limbs, r.sums)
	constants(x, limbSplitParams{rows: uint32(r.rows), cols: uint32(cols), xStride: uint32(r.stride)})
	x.end(256, ceil(4*r.rows*(cols/d.group), 256))
}

type limbExpertParams struct {
	wRows, wCols, divide, xStride, yStride, experts uint32
	limit, alpha                                    float32
}

type limbPartParams struct{ rows, yStride, first, biased uint32 }

type limbMatMulParams struct{ cols, rows, xStride, _ uint32 }

// limbShape is how a product's rows are spread over threadgroups.
type limbShape struct {
	xrows  int  // rows of X that one takes
	tiles  int  // tiles of the matrix, or of each warp
	staged bool // each warp has tiles of its own, and their limbs are copied for all, see staged.cu
	split  bool
}

// stagedWarps is the warps of a threadgroup whose rows are staged.
const stagedWarps = 4

// group is how large a threadgroup is for so many matrices, which share its tiles, and whose inputs
// have a number of slices: its warps, and the rows of each matrix that it has.
func (s *limbShape) group(matrices, slices int) (warps, rows int) {
	if s.staged {
		return stagedWarps, stagedWarps * s.tiles * limbTile / matrices
	}
	return slices, s.tiles * limbTile / matrices
}

// limbShape returns the shape for a number of rows and of tiles of 16 rows of the matrix. If there
// are few rows whose limbs are not made yet, each warp makes its own: a kernel that makes them once
// costs a launch.
func (l limits) limbShape(rows, tiles int, made bool) limbShape {
	s := limbShape{xrows: vectors(rows), tiles: 1 + flag(tiles >= l.wideTiles), split: made || rows > 4}
	switch {
	case rows > limbMany && tiles*ceil(rows, limbMany) >= l.stagedTiles:
		s.xrows, s.tiles, s.staged = limbMany, 2, true
	case rows > 16:
		s.xrows, s.tiles = limbMany, 1+flag(tiles*ceil(rows, limbMany) >= l.wideTiles/2)
	case rows > limbFew:
		s.xrows = 16
	}
	return s
}

// expertShape returns the shape for jobs of experts. warps is how many a job would take if each had
// one tile. Each warp makes limbs itself if there are up to 8 rows without any.
func (l limits) expertShape(b *expertBatch, gated bool, warps int, made bool) limbShape {
	if b.xrows > limbFew {
		return limbShape{xrows: limbJob, tiles: 2, staged: true, split: true}
	}
	return limbShape{xrows: limbFew, tiles: 1 + flag(gated || warps*b.n > l.expertWarps), split: made || b.o.Rows > limbFew}
}

// limbMatMuls multiplies the same rows by up to 4 matrices of one format.
func (x *encoder) limbMatMuls(all []*gpu.MatMul) {
	o, tiles := all[0], 0
	for _, m := range all {
		tiles += ceil(m.W.Rows, limbTile)
	}
	d := x.limbFormat(o.W.Format, wideProduct(o), o.Exact)
	r, made := x.limbInputs(o, d)
	s, k := x.chooseShape(&limbChoice{kernel: "limbs_matmul", defines: d, cols: o.W.Cols,
		more: [5]int{len(all)}, rows: o.Rows, tiles: tiles,
		wanted: x.d.limits.limbShape(o.Rows, tiles, made), made: made})
	x.splitOnce(o, d, &r, s.split, len(all))
	x.beginKernel(o, k)
	x.limbRows(&r)
	x.limbParts(all)
	warps, rows := s.group(1, limbSlices(o.W.Format, o.W.Cols))
	x.end(32*warps, x.limbParams(all, rows), ceil(o.Rows, s.xrows))
}

// limbSwiGLU multiplies few rows by a gate and an up, and gates.
func (x *encoder) limbSwiGLU(all []*gpu.MatMul, o *gpu.SwiGLU) {
	gate := all[0]
	d := x.limbFormat(gate.W.Format, wideProduct(gate), gate.Exact)
	r, made := x.limbInputs(gate, d)
	s, k := x.chooseShape(&limbChoice{kernel: "limbs_swiglu", defines: d, cols: gate.W.Cols,
		more: [5]int{len(all)}, rows: gate.Rows, tiles: 1,
		wanted: x.d.limits.limbShape(gate.Rows, 1, made), made: made})
	x.splitOnce(gate, d, &r, s.split, len(all)+1)
	x.beginKernel(gate, k)
	x.limbRows(&r)
	x.limbParts(all)
	x.views(o.Y)
	x.limbParams(all, limbTile)
	x.end(2*32*limbSlices(gate.W.Format, gate.W.Cols), ceil(gate.W.Rows, limbTile), ceil(gate.Rows, s.xrows))
}

// limbInputs returns the rows that a product multiplies, and whether their limbs are made.
func (x *encoder) limbInputs(o *gpu.MatMul, d limbFormat) (r limbRows, made bool) {
	r = limbRows{x: o.X, rows: o.Rows, stride: or(o.XStride, o.W.Cols)}
	return r, x.findLimbs(&r, o.W.Cols, d)
}

// limbParts binds the products' matrices, biases and results.
func (x *encoder) limbParts(all []*gpu.MatMul) {
	for _, m := range all {
		x.matrix(&m.W)
		x.views(m.Bias, m.Y)
	}
}

// limbParams binds the kernel's parameters of the products. It returns how many threadgroups they
// take, each of so many rows of a matrix.
func (x *encoder) limbParams(all []*gpu.MatMul, each int) (groups int) {
	o := all[0]
	constants(x, limbMatMulParams{cols: uint32(o.W.Cols), rows: uint32(o.Rows), xStride: uint32(or(o.XStride, o.W.Cols))})
	for _, m := range all {
		more(x, limbPartParams{rows: uint32(m.W.Rows), yStride: uint32(or(m.YStride, m.W.Rows)), first: uint32(groups), biased: uint32(flag(!m.Bias.IsZero()))})
		groups += ceil(m.W.Rows, each)
	}
	return groups
}

// limbExperts launches a product of experts' jobs. r has all rows that there may be.
func (x *encoder) limbExperts(b *expertBatch, which int, gated bool, f quant.Format, r limbRows, out gpu.View, p expertParams) {
	d, cols := x.limbFormat(f, b.wide[which], false), int(p.wCols)
	made, slices := x.findLimbs(&r, cols, d), limbSlices(f, cols)
	wanted := x.d.limits.expertShape(b, gated, ceil(int(p.wRows), limbTile)*slices, made)
	s, k := x.chooseShape(&limbChoice{kernel: "limbs_experts", defines: d, cols: cols,
		more: [5]int{flag(gated), b.biased, b.clamped, which, b.settled},
		rows: b.xrows, wanted: wanted, made: made})
	if s.split && !made {
		x.splitLimbs(b.o, d, &r, cols)
	}
	x.beginKernel(b.o, k)
	x.expertLists(b)
	x.limbRows(&r)
	x.views(out)
	constants(x, limbExpertParams{p.wRows, p.wCols, p.divide, p.xStride, p.yStride,
		uint32(len(b.o.Table.Experts)), p.limit, p.alpha})
	b.settled = 1
	warps, rows := s.group(1+flag(gated), slices) // the gates' and the ups'
	x.end(32*warps, ceil(int(p.wRows), rows), b.n)
}
