package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
	"github.com/mmcloughlin/avo/x86"

	"github.com/moeflux/moeflux-actor/gpu/host/gen/base"
)

// Offsets of package host's rowArgs. A test there compares them with the struct.
const (
	rowW      = 0
	rowRows   = 8
	rowBlocks = 16
	rowX      = 24
	rowOf     = 32
	rowSums   = 40
	rowY      = 48
	rowBack   = 56
)

// Where a block of inputs has them without a sign, as package host's arrangeHalves makes it, and
// its size.
const (
	halvesSizes = 256
	halvesSize  = 512
)

// oneWhole is wholeDot for one row of X, where codes go from a block into products.
func (g *generator) oneWhole(f base.Func) {
	b := f.Coding.Block()
	a := pointer("a")
	field := fieldsOf(a)
	s := &splitter{generator: g, block: b, src: field(rowW)}
	s.mask = g.keep(g.bytes(15))
	if b.Table != nil {
		s.held = s.valuesOf(0)
	}
	if b.Name == "Q3_K" {
		s.topTables = g.thirdBits()
	}
	if b.Group == 32 && b.Biased {
		for i, mask := range []uint64{0x3f3f3f3f3f3f3f3f, 0x0f0f0f0f0f0f0f0f, 0x3030303030303030} {
			s.sixMasks[i] = GP64()
			MOVQ(U64(mask), s.sixMasks[i])
		}
	}
	y := field(rowY)
	loop(f.Name+"_row", field(rowRows), func() {
		d := &blockDot{generator: g, biased: f.Biased, x: field(rowX), of: field(rowOf), sums: field(rowSums)}
		acc := g.zero()
		loop(f.Name+"_block", field(rowBlocks), func() {
			s.fetch(b.Size)
			s.of = d.of
			var totals [2]reg.VecVirtual
			var scale reg.VecVirtual
			n := 0
			s.sink = func(q reg.VecVirtual, disp int) {
				if b.Table != nil {
					q = g.timesSigned(q, Mem{Base: d.x, Disp: disp}, Mem{Base: d.x, Disp: halvesSizes + disp})
				} else {
					q = d.times(q, disp)
				}
				if b.Table == nil || n%2 == 0 { // else both have the same scales
					scale = YMM()
					VPSHUFB(s.scalesAt(disp), s.scaleWords, scale)
				}
				addScaled(&totals[n%2], q, scale)
				n++
			}
			s.apart()
			if b.Table != nil {
				totals = lanesOfHalves(totals)
			}
			d.addWhole(acc, totals, s)
			ADDQ(U32(uint32(b.Size)), s.src)
			if b.Table != nil {
				ADDQ(U32(halvesSize), d.x)
			} else {
				ADDQ(U32(256), d.x)
			}
			ADDQ(U32(8), d.of)
		})
		g.storeLanes(acc, y)
	})
	end()
}

// scalesAt is the order of scaleWords for 32 codes from disp on.
func (s *splitter) scalesAt(disp int) Mem {
	if s.block.Table == nil {
		return s.generator.wordOf(disp / 32)
	}
	k := uint32(disp / 64)
	return s.generator.table(fmt.Sprint("words", k), 8, func(i int) Constant { // of an even group, and of the odd one
		w := 2*k + uint32(i/4)
		return U32((2*w | (2*w+1)<<8) * 0x00010001)
	})
}

// lanesOfHalves returns two vectors whose sum has the lanes of blockArgs, where totals are of the
// first halves of even and of odd groups, and of the second halves.
func lanesOfHalves(totals [2]reg.VecVirtual) [2]reg.VecVirtual {
	first, second := totals[0], totals[1]
	even, odd := YMM(), YMM()
	VINSERTI128(U8(1), second.AsX(), first, even)
	lower(x86.VEXTRACTI128(U8(1), first, odd.AsX()))
	VPBLENDD(U8(0xf0), second, odd, odd)
	return [2]reg.VecVirtual{even, odd}
}

// wordOf is the order that repeats the k-th word of each half.
func (g *generator) wordOf(k int) Mem {
	return g.table(fmt.Sprint("word", k), 8, func(int) Constant { return U32(uint32(2*k|(2*k+1)<<8) * 0x00010001) })
}

// setScales keeps the scales of 16 groups, for oneWhole in a register.
func (s *splitter) setScales(v reg.VecVirtual) {
	if s.sink == nil {
		VMOVDQU(v, s.part(wholeScales))
		return
	}
	s.scaleWords = YMM()
	VPSHUFB(s.generator.table("evenThenOdd", 8, func(i int) Constant { // words 0, 2, 4, 6, 1, 3, 5, 7
		w := uint32(8*(i%2) + 2*(i/2%2))
		return U32(w | (w+1)<<8 | (w+4)<<16 | (w+5)<<24)
	}), v, s.scaleWords)
	VPERMQ(U8(0xd8), s.scaleWords, s.scaleWords)
}

// oneSixes is wholeSixes for oneWhole: integer registers, which have little to do, take the bits
// apart.
func (s *splitter) oneSixes() {
	all, tops, low, high := GP64(), GP64(), GP64(), GP64()
	MOVL(s.at(12), low.As32()) // the lower bits of the last 4 scales and minima
	MOVQ(low, high)
	SHLQ(U8(28), high)
	ORQ(high, low)
	ANDQ(s.sixMasks[1], low)
	MOVQ(s.at(4), all) // the first 4 scales and minima, with the top bits of the last
	MOVQ(all, tops)
	SHRQ(U8(2), tops)
	ANDQ(s.sixMasks[2], tops)
	ORQ(tops, low)
	ANDQ(s.sixMasks[0], all)
	x, y := XMM(), XMM()
	VMOVQ(all, x)
	VMOVQ(low, y)
	VPUNPCKLDQ(y, x, x) // 8 scales, 8 minima
	minima := YMM()
	s.scaleWords = YMM()
	VPMOVZXBW(x, y)
	VINSERTI128(U8(1), y, y.AsY(), s.scaleWords)
	VPUNPCKHBW(x, x, x)
	VPMOVZXBW(x, minima)
	s.setMinima(minima)
	s.numbers(0, 2)
}

// oneSplits is wholeSplits for oneWhole. Half a vector has all scales: as words, twice in the end.
func (s *splitter) oneSplits() {
	low, high := XMM(), XMM()
	VMOVD(s.at(4), low)
	VPSRLW(U8(4), low, high)
	VPUNPCKLBW(high, low, low)
	VPAND(s.mask.AsX(), low, low)
	VPMOVZXBW(low, low)
	VPBROADCASTW(s.at(2), high)
	VPMULLW(s.generator.table("topTwos", 4, func(i int) Constant { // which shifts the two bits of each to the top
		return U32(1<<(14-4*i) | 1<<(12-4*i)<<16)
	}), high, high)
	VPSRLW(U8(10), high, high)
	VPAND(s.same("topOfSix", 0x00300030), high, high)
	VPOR(high, low, low)
	VPSUBW(s.same("lessWords", 32|32<<16), low, low)
	s.scaleWords = YMM()
	VINSERTI128(U8(1), low, low.AsY(), s.scaleWords)
	s.numbers(0, -1)
}

// oneNumbers is numbers for oneWhole: they are multiplied by the scale of the inputs.
func (s *splitter) oneNumbers(d, dmin int) {
	x, of := XMM(), XMM()
	VBROADCASTSS(Mem{Base: s.of}, of)
	if dmin == d+2 {
		VMOVD(s.at(d), x)
	} else {
		VPBROADCASTW(s.at(d), x)
	}
	VCVTPH2PS(x, x)
	VMULPS(of, x, x)
	s.d = YMM()
	VBROADCASTSS(x, s.d)
	if s.dmin = s.d; dmin == d+2 {
		s.dmin = YMM()
		VMOVSHDUP(x, x)
		VBROADCASTSS(x, s.dmin)
	}
}

// storeLanes stores the sum of the lanes of v at y, which it moves on to the next number.
func (g *generator) storeLanes(v reg.VecVirtual, y reg.Register) {
	half, low := XMM(), v.AsX().(reg.VecVirtual)
	VEXTRACTF128(U8(1), v.AsY(), half)
	VADDPS(half, low, low)
	VMOVHLPS(low, low, half)
	VADDPS(half, low, low)
	VMOVSHDUP(low, half)
	VADDSS(half, low, low)
	VMOVSS(low, Mem{Base: y})
	ADDQ(U32(4), y)
}

// fetch prefetches as many bytes of blocks as are taken now, aheadBytes later.
func (s *splitter) fetch(bytes int) {
	for at := 0; at < bytes; at += 64 {
		PREFETCHT0(s.at(aheadBytes + at))
	}
}
