package launch

import (
	"math"

	"github.com/moeflux/moeflux-actor/gpu"
)

// joinedMatrices is how many products are one launch at most.
const joinedMatrices = 4

type joinedMatrix struct {
	codes, scales, biases, bias, y uint64
	rows, tile, yStride, _         uint32
}

type matMulsParams struct {
	m                              [joinedMatrices]joinedMatrix
	cols, rows, xStride, groupBits uint32
}

// addressOf is where a view is, 0 for the zero View.
func addressOf(v gpu.View) uint64 {
	if v.IsZero() {
		return 0
	}
	return address(v)
}

// joinProducts joins products of the same rows with matrices of one format: queries, keys and
// values, gate and up. Where a gate's and an up's are followed by their SwiGLU, that is computed,
// too.
func (x *encoder) joinProducts(ops []gpu.Op) int {
	first := ops[0].(*gpu.MatMul)
	all := [joinedMatrices]*gpu.MatMul{first}
	n := 1
	for n < joinedMatrices && n < len(ops) {
		o, ok := ops[n].(*gpu.MatMul)
		if !ok || !sameProducts(first, o) || x.rounded(first.Exact) != x.rounded(o.Exact) {
			break
		}
		all[n] = o
		n++
	}
	for n > 1 && !apartProducts(all[:n]) {
		n--
	}
	if n < 2 {
		return 0
	}
	limbs := x.limbs(first.W.Format)
	// for many rows there is no kernel of both
	if n == 2 && n < len(ops) && !(limbs && first.Rows > 2*limbFew) {
		if o := gatedOf(ops[n], all[0], all[1]); o != nil {
			if limbs {
				x.limbSwiGLU(all[:n], o)
			} else {
				x.matMulSwiGLU(all[:n], o)
			}
			return 3
		}
	}
	if limbs {
		x.limbMatMuls(all[:n])
	} else {
		x.matMuls(all[:n])
	}
	return n
}

// sameProducts reports whether two products are one kernel's: they have the same inputs, and
// matrices that are stored and taken apart alike.
func sameProducts(a, b *gpu.MatMul) bool {
	return a.W.Format == b.W.Format && a.W.Cols == b.W.Cols && a.Rows == b.Rows && address(a.X) == address(b.X) &&
		or(a.XStride, a.W.Cols) == or(b.XStride, b.W.Cols) && a.Bias.IsZero() == b.Bias.IsZero() && wideProduct(a) == wideProduct(b)
}

func wideProduct(o *gpu.MatMul) bool {
	return shapeOf(o.W.Format).wide(&o.W, o.X, or(o.XStride, o.W.Cols))
}

// productOutput is the extent of a product's result.
func productOutput(o *gpu.MatMul) extent {
	return floatsAt(o.Y, o.Rows, o.W.Rows, or(o.YStride, o.W.Rows))
}

// productWeights are the extents of what a product reads of its own: codes, scales, biases of
// groups, biases.
func productWeights(o *gpu.MatMul) [4]extent {
	f, rows, cols := o.W.Format, o.W.Rows, o.W.Cols
	return [4]extent{extentOf(o.W.Weight, f.WeightBytes(rows, cols)), extentOf(o.W.Scales, f.ScaleBytes(rows, cols)),
		extentOf(o.W.Biases, f.BiasBytes(rows, cols)), extentOf(o.Bias, 4*rows)}
}

// apartProducts reports whether no product writes what another one reads or writes.
func apartProducts(all []*gpu.MatMul) bool {
	for i, a := range all {
		for _, b := range all[:i] {
			aw, bw := productWeights(a), productWeights(b)
			if ay, by := productOutput(a), productOutput(b); ay.overlaps(by) || !ay.apart(bw[:]...) || !by.apart(aw[:]...) {
				return false
			}
		}
	}
	return true
}

// gatedOf returns the operation after two products if it is the SwiGLU of their results, without
// bounds, and writes nothing that they read.
func gatedOf(op gpu.Op, gate, up *gpu.MatMul) *gpu.SwiGLU {
	o, ok := op.(*gpu.SwiGLU)
	if !ok || o.Clamp.Limit > 0 || !gate.Bias.IsZero() || o.Rows != gate.Rows || o.Dim != gate.W.Rows || o.Dim != up.W.Rows ||
		or(gate.YStride, o.Dim) != o.Dim || or(up.YStride, o.Dim) != o.Dim || address(o.Gate) != address(gate.Y) || address(o.Up) != address(up.Y) {
		return nil
	}
	y, gw, uw := extentOf(o.Y, 4*o.Rows*o.Dim), productWeights(gate), productWeights(up)
	if !y.apart(floatsAt(gate.X, gate.Rows, gate.W.Cols, or(gate.XStride, gate.W.Cols))) || !y.apart(gw[:]...) || !y.apart(uw[:]...) {
		return nil
	}
	return o
}

// products begins what launches of joined products have in common. It returns their parameters and
// how many tiles they have.
func products(all []*gpu.MatMul) (p matMulsParams, tiles int) {
	first := all[0]
	s := shapeOf(first.W.Format)
	p.cols, p.rows, p.xStride, p.groupBits = uint32(first.W.Cols), uint32(first.Rows), uint32(or(first.XStride, first.W.Cols)), s.groupBits
	for i := range p.m {
		p.m[i].tile = math.MaxUint32
	}
	for i, o := range all {
		p.m[i] = joinedMatrix{codes: address(o.W.Weight), scales: addressOf(o.W.Scales), biases: addressOf(o.W.Biases), bias: addressOf(o.Bias),
			y: address(o.Y), rows: uint32(o.W.Rows), tile: uint32(tiles), yStride: uint32(or(o.YStride, o.W.Rows))}
		tiles += ceil(o.W.Rows, s.tile)
	}
	return p, tiles
}

func (x *encoder) matMuls(all []*gpu.MatMul) {
	o := all[0]
	s, xrows := shapeOf(o.W.Format), vectors(o.Rows)
	p, tiles := products(all)
	x.begin(o, "matmuls", s.coding, s.layout, flag(wideProduct(o)), xrows, flag(!o.Bias.IsZero()))
	x.views(o.X)
	constants(x, p)
	x.end(32*s.simdgroups(o.W.Cols), tiles, ceil(o.Rows, xrows))
}

func (x *encoder) matMulSwiGLU(all []*gpu.MatMul, gated *gpu.SwiGLU) {
	o := all[0]
	s, xrows := shapeOf(o.W.Format), vectors(o.Rows)
	p, tiles := products(all)
	p.m[2] = joinedMatrix{y: address(gated.Y), yStride: uint32(gated.Dim)}
	x.begin(o, "matmul_swiglu", s.coding, s.layout, flag(wideProduct(o)), xrows)
	x.views(o.X)
	constants(x, p)
	x.end(32*s.simdgroups(o.W.Cols), tiles/2, ceil(o.Rows, xrows))
}
