package host

import (
	"encoding/binary"
	"math"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// kernels are the inner loops of matrix products in one variant.
type kernels struct {
	name    string
	codings *codingTable
	plain   plainKernels
	blocks  *blockTable
	pair    int // panels that kernels of several rows of X take
	// quantise rounds a row of X to 8 bits, see quantiseGo.
	quantise func(q *int8, scales, x *float32, group, groups int)
	// arrangeScales arranges 16 rows of scales or biases of 2 bytes as a panel: blocks of 16 bytes
	// of each row, rows being stride bytes apart. nil means that Go code does it.
	arrangeScales func(dst, src *byte, stride, blocks int)
	tiles         *tileKernels // nil: the processor has no matrix unit
	far           farCodes     // in order, for kernels of one row of int8; no step: they take none
	// rate is about how many products one thread computes in a nanosecond. It serves to estimate an
	// operation's time.
	rate int
}

// codingTable is what a variant has for each coding of matrices.
type codingTable [quant.NumCodings]codingKernels

// codingKernels are the kernels of one coding: one and widen of numbers that stand for themselves,
// widen and split of blocks of several, the others of codes.
type codingKernels struct {
	// one returns row·x for a row as it is stored. x is [cols]. nil: rows are widened first.
	one func(row []byte, x []float32) float32
	// widen writes a row's elements to dst [cols].
	widen func(dst []float32, row []byte)
	// split takes a row of blocks apart, see quant.Block.Split.
	split func(codes []int8, scales, biases []float32, row []byte)
	// whole is split for blocks of 256, see quant.Block.Whole.
	whole func(codes []int8, wholes []quant.Whole, row []byte)
	// oneRow multiplies rows of blocks of several numbers by one row of X in int8, see rowArgs;
	// nil: they are taken apart first.
	oneRow blockKernel
	// apart takes a row of blocks of 32 apart for many: eights of them, and one more if back is not
	// 0, see backBytes. many multiplies it by rows of X in int8, see manyArgs. nil: split and
	// blockTable.short do.
	apart func(dst, src *byte, eights, back int)
	many  blockKernel
	// oneSplit is one for a row that was taken apart; nil: it is widened first.
	oneSplit func(codes []int8, scales, biases, x []float32) float32

	// int8s and floats multiply panels by rows of X held as int8 or float32. They are indexed by
	// the number of rows of X less 1; nil means that no kernel takes that many. A kernel of one row
	// takes one panel, the others take pair panels.
	int8s, floats []panelKernel
	// arrange arranges 16 rows of codes as a panel, as kernels.arrangeScales does; nil likewise.
	arrange func(dst, src *byte, stride, blocks int)
	// dequantise writes code·scale + bias, each step rounded. shifts are the places of the codes in
	// a word. Words lie wordStride bytes apart, groups' scales and biases groupStride.
	dequantise func(dst []float32, words, scales, biases []byte, shifts []uint32, group, wordStride, groupStride int)
}

// codingsNamed returns the table of kernels by the names of codings. It panics if one is unknown.
func codingsNamed(named map[string]codingKernels) (t codingTable) {
	found := 0
	for c := range quant.Coding(quant.NumCodings) {
		if k, ok := named[c.String()]; ok {
			t[c] = k
			found++
		}
	}
	if found != len(named) {
		panic("host: kernels of codings that package quant does not have: run go generate")
	}
	return t
}

// with returns the table with kernels for numbers that stand for themselves.
func (t codingTable) with(last func(q, x []float32) float32, oneBF16 func(row []byte, x []float32) float32, widenBF16 func(dst []float32, row []byte)) *codingTable {
	t[quant.F32.Coding()] = codingKernels{
		one:   func(row []byte, x []float32) float32 { return last(gpu.Floats(row, len(x)), x) },
		widen: func(dst []float32, row []byte) { copy(dst, gpu.Floats(row, len(dst))) },
	}
	t[quant.BF16.Coding()] = codingKernels{one: oneBF16, widen: widenBF16}
	return &t
}

// plainKernels multiply rows of float32 that bf16 or float32 were widened to. All functions of a
// variant add in the same order: a row of X gets the same bits from two, last and
// codingKernels.one.
type plainKernels struct {
	// two returns the products of a row q [cols] with two rows of X.
	two func(q, x0, x1 []float32) (float32, float32)
	// last is two for one row of X.
	last func(q, x []float32) float32
}

var portable = kernels{
	name: "portable", pair: 1, rate: 2, quantise: quantiseGo,
	plain:   plainKernels{two: portableTwo, last: portableLast},
	codings: portableCodings, blocks: &portableBlocks,
}

var portableCodings = portableTable().with(portableLast, oneBF16, portableWiden)

// Variants returns the names of the variants that this processor runs, the best first. "portable"
// is always among them.
func Variants() []string {
	var names []string
	for _, k := range available() {
		names = append(names, k.name)
	}
	return names
}

// variant returns the kernels with a name, or the best for "". It returns nil if this processor
// does not run them.
func variant(name string) *kernels {
	for _, k := range available() {
		if name == "" || name == k.name {
			return k
		}
	}
	return nil
}

// oneBF16 is row·x for a row of bf16 [cols], in blocks of blockInputs.
func oneBF16(row []byte, x []float32) float32 {
	var y float32
	for len(x) > 0 {
		n := min(len(x), blockInputs)
		y += dotBF16(row[:2*n], x[:n])
		row, x = row[2*n:], x[n:]
	}
	return y
}

func dotBF16(row []byte, x []float32) float32 {
	var a, b, c, d float32
	for len(row) >= 8 && len(x) >= 4 {
		w := binary.LittleEndian.Uint64(row)
		a += float32(math.Float32frombits(uint32(w)<<16) * x[0])
		b += float32(math.Float32frombits(uint32(w)&^0xffff) * x[1])
		c += float32(math.Float32frombits(uint32(w>>32)<<16) * x[2])
		d += float32(math.Float32frombits(uint32(w>>32)&^0xffff) * x[3])
		row, x = row[8:], x[4:]
	}
	lanes := [4]float32{a, b, c, d}
	for i, v := range x {
		lanes[i] += float32(bf16(row, i) * v)
	}
	return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3])
}

func portableLast(q, x []float32) float32 {
	var y float32
	for len(q) > 0 {
		n := min(len(q), blockInputs)
		y += dot(q[:n], x)
		q, x = q[n:], x[n:]
	}
	return y
}

func portableTwo(q, x0, x1 []float32) (y0, y1 float32) {
	for len(q) > 0 {
		n := min(len(q), blockInputs)
		d0, d1 := dotTwo(q[:n], x0, x1)
		y0 += d0
		y1 += d1
		q, x0, x1 = q[n:], x0[n:], x1[n:]
	}
	return y0, y1
}

// dotTwo is dot for two rows at once. Arrays make it half as fast again as slices that shrink.
func dotTwo(q, x, y []float32) (float32, float32) {
	var a, b, c, d, e, f, g, h float32
	i := 0
	for ; i+8 <= len(q); i += 8 {
		q, x, y := (*[8]float32)(q[i:]), (*[8]float32)(x[i:]), (*[8]float32)(y[i:])
		a += float32(q[0] * x[0])
		b += float32(q[1] * x[1])
		c += float32(q[2] * x[2])
		d += float32(q[3] * x[3])
		e += float32(q[0] * y[0])
		f += float32(q[1] * y[1])
		g += float32(q[2] * y[2])
		h += float32(q[3] * y[3])
		a += float32(q[4] * x[4])
		b += float32(q[5] * x[5])
		c += float32(q[6] * x[6])
		d += float32(q[7] * x[7])
		e += float32(q[4] * y[4])
		f += float32(q[5] * y[5])
		g += float32(q[6] * y[6])
		h += float32(q[7] * y[7])
	}
	l, m := [4]float32{a, b, c, d}, [4]float32{e, f, g, h}
	for ; i < len(q); i++ {
		l[i%4] += float32(q[i] * x[i])
		m[i%4] += float32(q[i] * y[i])
	}
	return (l[0] + l[2]) + (l[1] + l[3]), (m[0] + m[2]) + (m[1] + m[3])
}
