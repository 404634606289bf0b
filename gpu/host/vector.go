package host

import (
	"math"
	"unsafe"

	"github.com/moeflux/moeflux-actor/model/quant"
)

// vectors are one variant's primitives for all operations except products with weights. Slices that
// must have the same length are taken to be as long as the first; the caller gets lengths right,
// and none is zero. No result depends on what else is computed or on where operands lie in memory.
// The portable forms are the definitions. The assembly fuses products with sums, sums neighbours in
// lanes partial sums, and computes e^x to 2 units in the last place.
type vectors struct {
	// lanes is how many float32 a vector has. rope and ropePairs take a multiple of it,
	// transpose takes a multiple of it as rows, and delta takes that many rows of state, whose
	// length is a multiple of it too.
	lanes int
	// How many multiply-adds, moved elements and exponentials one thread manages in a nanosecond,
	// times 16. They decide between one thread and all.
	multiplyRate, moveRate, expRate int

	dot func(x, y []float32) float32 // Σ x·y
	// y = w·(x·r); y = x·r if w is empty
	norm func(y, x, w []float32, r float32)
	// y = w·(x·r)·silu(z)
	gatedNorm func(y, x, w, z []float32, r float32)
	add       func(y, a, b []float32)            // y = a + b
	axpy      func(y, x []float32, f float32)    // y += f·x
	merge     func(y, x []float32, f, h float32) // y = f·y + h·x
	// y = silu(gate)·up; y may be either
	swiglu func(y, gate, up []float32)
	gate   func(x, gate []float32) // x *= σ(gate)
	// y = residual + (Σ weights[k]·routed[k, :] + scale·shared)
	combine func(y, residual, routed, weights, shared []float32, scale float32)
	// y = silu(Σ w[j, :]·xj), w [4, len(y)]
	conv func(y, w, x0, x1, x2, x3 []float32)
	// channels i and i+len(table)/2 of each head, see gpu.Rope
	rope func(x, table []float32, heads, stride int)
	// channels 2i and 2i+1
	ropePairs func(x, table []float32, heads, stride int)
	// dst[c, r] = src[r, c]; rows a multiple of lanes, columns of 4
	transpose func(dst, src []float32, dstStride, srcStride, rows, columns int)
	// see portableSoftmax
	softmax func(scores, stats, acc []float32, dim int)
	// see portableDelta
	delta func(state, keys, gates, v, y []float32, vStride, yStride int)
	// c = a·b, or c += a·b if sum, with strides; depth ascending
	multiply func(c, a, b []float32, cs, as, bs, rows, depth, cols int, sum bool)
	// multiplyAhead is multiply that also fetches cache lines: next points to an aheadLines. It is
	// nil where that does not pay.
	multiplyAhead func(c, a, b []float32, cs, as, bs, rows, depth, cols int, sum bool, next *byte)
	codings       *codingTable                                        // kernels for rows of weights
	widen8        func(dst []float32, codes []byte, scales []float32, // code·scale, see portableWiden8
		group, width, codeStride, scaleStride int)
	// the same, rows as columns, see portableTranspose8
	transpose8 func(dst []float32, codes []byte, scales []float32,
		group, width, dstStride, codeStride, scaleStride, rows int)
	// products of queries and keys in 8 bits, see portableDotCodes; next points to an aheadLines
	dotCodes func(scores []float32, q, words []byte, scales []float32, qStride, group, groups, rows int, next *byte)
	// touch reads a byte of each cache line of rows of width bytes that begin stride bytes apart,
	// the first at the beginning of mem. A kernel that uses them afterwards would wait for a few
	// lines at a time. The portable form does nothing: it is slower than memory anyway.
	touch func(mem []byte, width, stride, rows int)
}

var portableVectors = vectors{
	lanes: 1, multiplyRate: 24, moveRate: 16, expRate: 2,
	dot: dotBlocks, norm: portableNorm, gatedNorm: portableGatedNorm, add: portableAdd, axpy: addTimes, merge: portableMerge,
	swiglu: swiglu, gate: portableGate, combine: portableCombine, conv: portableConv,
	rope:      func(x, table []float32, heads, stride int) { rotateHeads(x, table, heads, stride, false) },
	ropePairs: func(x, table []float32, heads, stride int) { rotateHeads(x, table, heads, stride, true) },
	widen8:    portableWiden8, transpose8: portableTranspose8, touch: func([]byte, int, int, int) {},
	transpose: portableTranspose, dotCodes: portableDotCodes, softmax: portableSoftmax, delta: portableDelta, multiply: portableMultiply,
	codings: portableCodings,
}

// multiplying, moving and exponentials estimate how many nanoseconds one thread takes for n.
func (v *vectors) multiplying(n int) int { return n * 16 / v.multiplyRate }
func (v *vectors) moving(n int) int      { return n * 16 / v.moveRate }
func (v *vectors) exponentials(n int) int {
	return n * 16 / v.expRate
}

// inverseRMS returns 1/sqrt(mean(x²)+eps).
func (v *vectors) inverseRMS(x []float32, eps float32) float32 {
	mean := v.dot(x, x) / float32(len(x))
	return float32(1 / math.Sqrt(float64(mean+eps)))
}

// transposeAll is transpose for any number of rows and columns. It moves those left over one
// element at a time.
func (v *vectors) transposeAll(dst, src []float32, dstStride, srcStride, rows, columns int) {
	whole, fours := rows/v.lanes*v.lanes, columns&^3
	if whole > 0 && fours > 0 {
		v.transpose(dst, src, dstStride, srcStride, whole, fours)
	}
	for r := range rows {
		first := fours
		if r >= whole {
			first = 0
		}
		for c := first; c < columns; c++ {
			dst[c*dstStride+r] = src[r*srcStride+c]
		}
	}
}

// row writes row o of m, dequantised, to dst [m.cols].
func (v *vectors) row(dst []float32, m *matrix, o int) {
	f := m.format
	k := &v.codings[f.Coding()]
	if k.widen != nil {
		k.widen(dst, m.row(o))
		return
	}
	l := &codeRows[f.Layout]
	rowBytes, scaleBytes := m.rowBytes, f.ScaleBytes(1, m.cols)
	first, lane := o/l.rows*l.rows, o%l.rows
	number := f.Coding().ScaleBytes()
	word, group, bias := first*rowBytes+4*lane, first*scaleBytes+number*lane, 0
	if f.Coding().BiasBytes() > 0 {
		bias = group
	}
	k.dequantise(dst, m.weight[word:], m.scales[group:], m.biases[bias:], l.shifts[f.Coding()][:], f.Group(), 4*l.rows, number*l.rows)
	if f.Coding().Factor() {
		v.norm(dst, dst, nil, f.Coding().RowFactor(m.biases, o))
	}
}

// codeRow says how a row of codes lies in a layout.
type codeRow struct {
	rows   int // that lie together
	shifts [quant.NumCodings][16]uint32
}

var codeRows = makeCodeRows()

func makeCodeRows() (t [quant.NumLayouts]codeRow) {
	t[quant.Rows].rows, t[quant.Panels].rows = 1, panelRows
	for _, f := range quant.Formats() {
		if !f.Codes() {
			continue
		}
		for l := range t {
			f.Layout = quant.Layout(l)
			for i := range 32 / f.Bits() {
				t[l].shifts[f.Coding()][i] = uint32(f.Shift(i))
			}
		}
	}
	return t
}

// floats cuts n float32 off the beginning of *mem.
func floats(mem *[]float32, n int) []float32 {
	part := (*mem)[:n:n]
	*mem = (*mem)[n:]
	return part
}

// lineUp returns n rounded up to whole cache lines of float32.
func lineUp(n int) int { return (n + lineFloats - 1) / lineFloats * lineFloats }

// aligned returns mem from its first cache line on. mem has lineFloats to spare.
func aligned(mem []float32) []float32 {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(mem)))
	return mem[(-at&63)/4:]
}
