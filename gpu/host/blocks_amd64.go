//go:build amd64 && !noasm

package host

import (
	"unsafe"

	"github.com/moeflux/moeflux-actor/model/quant"
)

// Both variants of the processor have the same functions for blocks: AVX2's, which convert fp16,
// too (F16C, which all processors with AVX2 have). AVX-512 has its own products of one row, of all
// formats but Q8_0, and of many.

var avx2Blocks = blockTable{
	short: portableBlocks.short, // of rows of fewer than eight blocks
	whole: map[blockKind]blockKernel{
		{16, false}: wholeDotG16AVX2, {16, true}: wholeDotG16BiasedAVX2, {32, false}: wholeDotG32AVX2, {32, true}: wholeDotG32BiasedAVX2,
	},
	arrange: arrangeShortAVX2,
}

// avx512Blocks is avx2Blocks with what AVX-512's products of one row need.
var avx512Blocks = func() blockTable {
	t := avx2Blocks
	t.fours = foursAVX512
	short := func(few, tile blockKernel) stripeKernel {
		return stripeKernel{few: few, tile: tile, arrange: arrangeStripeAVX512, lanes: blockLanes, inputs: 32, least: 4}
	}
	whole := func(few, tile blockKernel, scale func(codes, wholes *byte, blocks int)) stripeKernel {
		return stripeKernel{few: few, tile: tile, arrange: arrangeWholeAVX512, scale: scale, lanes: 1, inputs: wholeGroup, least: 4}
	}
	t.stripes = &stripeKernels{
		short: [2]stripeKernel{short(stripeShortN4AVX512, stripeShortN8AVX512), short(stripeShortBiasedN4AVX512, stripeShortBiasedN8AVX512)},
		whole: map[blockKind]stripeKernel{
			{1, false}:  whole(stripeBytesN4AVX512, stripeBytesN8AVX512, scaleCodesAVX512),
			{1, true}:   whole(stripeBytesBiasedN4AVX512, stripeBytesBiasedN8AVX512, scaleCodesBiasedAVX512),
			{16, false}: whole(stripeWholeG16N4AVX512, stripeWholeG16N8AVX512, nil),
			{32, false}: whole(stripeWholeG32N4AVX512, stripeWholeG32N8AVX512, nil),
			{32, true}:  whole(stripeWholeG32BiasedN4AVX512, stripeWholeG32BiasedN8AVX512, nil),
		},
		transpose: transposeAVX512,
	}
	return t
}()

// blockFunc is what a format in blocks of several numbers has in assembly. Tables of them are
// generated.
type blockFunc struct {
	oneRow blockKernel // see codingKernels
	// whole takes blocks of 256 apart, see quant.Block.Whole; nil for others.
	whole func(codes *int8, wholes, src *byte, blocks int)
	// apart and many are as in codingKernels.
	apart func(dst, src *byte, eights, back int)
	many  blockKernel
}

// withBlocks returns the table with functions for blocks.
func withBlocks(t *codingTable) *codingTable {
	for c := range quant.Coding(quant.NumCodings) {
		b := c.Block()
		switch {
		case b == nil:
		case b.Len == 1:
			t[c].widen = func(dst []float32, row []byte) { widenHalves(b, dst, row) }
		default:
			t[c].widen = func(dst []float32, row []byte) { widenBlocks(b, dst, row) }
			t[c].split = func(codes []int8, scales, biases []float32, row []byte) {
				splitBlocks(b, &codes[0], &scales[0], unsafe.SliceData(biases), &row[0], len(codes)/b.Len)
			}
			f := blockFuncs[c.String()]
			t[c].oneRow, t[c].apart, t[c].many = f.oneRow, f.apart, f.many
			if whole := f.whole; whole != nil {
				t[c].whole = func(codes []int8, wholes []quant.Whole, row []byte) {
					whole(&codes[0], (*byte)(unsafe.Pointer(&wholes[0])), &row[0], len(wholes))
				}
			}
		}
	}
	return t
}

// withOneRow returns the table with other products of one row, by the names of formats.
func withOneRow(t *codingTable, ones map[string]blockKernel) *codingTable {
	for c := range quant.Coding(quant.NumCodings) {
		if one := ones[c.String()]; one != nil {
			t[c].oneRow = one
		}
	}
	return t
}

// withOneSplit returns the table with products that add up as lastAVX2 does.
func withOneSplit(t *codingTable) *codingTable {
	for c := range quant.Coding(quant.NumCodings) {
		if b := c.Block(); b != nil && b.Len > 1 {
			one := map[blockKind]func(codes *int8, scales, biases, x *float32, blocks int) float32{
				{16, false}: oneCodesG16AVX2, {16, true}: oneCodesG16BiasedAVX2, {32, false}: oneCodesG32AVX2, {32, true}: oneCodesG32BiasedAVX2,
			}[blockKind{b.Group, b.Biased}]
			t[c].oneSplit = func(codes []int8, scales, biases, x []float32) float32 {
				var y float32
				n := len(codes) / blockInputs
				if n > 0 {
					y = one(&codes[0], &scales[0], unsafe.SliceData(biases), &x[0], n)
				}
				if n *= blockInputs; n < len(codes) { // a group of 32
					y += dotHalfBlock(codes[n:], scales[n/b.Group:], biases[n/b.Group:], x[n:], b)
				}
				return y
			}
		}
	}
	return t
}

// dotHalfBlock is the product of what is left of a row after whole blocks of inputs.
func dotHalfBlock(codes []int8, scales, biases, x []float32, b *quant.Block) float32 {
	var q [blockInputs]float32
	for i, c := range codes {
		q[i] = float32(float32(c) * scales[i/b.Group])
		if b.Biased {
			q[i] += biases[i/b.Group]
		}
	}
	return dot(q[:len(codes)], x[:len(codes)])
}

// widenHalves widens a row of fp16, blocks of one number.
func widenHalves(b *quant.Block, dst []float32, row []byte) {
	const block = 32 // elements an iteration of the assembly takes
	n := len(dst) / block
	if n > 0 {
		halvesAVX2(&dst[0], &row[0], n)
	}
	if n *= block; n < len(dst) {
		b.Unpack(dst[n:], row[2*n:])
	}
}

// widenBlocks widens a row of blocks, some at a time, which stay in the first-level cache between
// the two steps.
func widenBlocks(b *quant.Block, dst []float32, row []byte) {
	const some = 512
	var codes [some]int8
	var scales, biases [some / 16]float32
	for len(dst) > 0 {
		n := min(len(dst), some)
		splitBlocks(b, &codes[0], &scales[0], &biases[0], &row[0], n/b.Len)
		switch groups := n / b.Group; (blockKind{b.Group, b.Biased}) {
		case blockKind{16, false}:
			widenCodesG16AVX2(&dst[0], &codes[0], &scales[0], &biases[0], groups)
		case blockKind{16, true}:
			widenCodesG16BiasedAVX2(&dst[0], &codes[0], &scales[0], &biases[0], groups)
		case blockKind{32, false}:
			widenCodesG32AVX2(&dst[0], &codes[0], &scales[0], &biases[0], groups)
		default:
			widenCodesG32BiasedAVX2(&dst[0], &codes[0], &scales[0], &biases[0], groups)
		}
		dst, row = dst[n:], row[n/b.Len*b.Size:]
	}
}
