package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

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
			n := 0
			s.sink = func(q reg.VecVirtual, disp int) {
				if b.Signed() {
					q = g.timesSigned(q, Mem{Base: d.x, Disp: disp})
				} else {
					q = d.times(q, disp)
				}
				scale := YMM()
				VPSHUFB(g.wordOf(disp/32), s.scaleWords, scale)
				addScaled(&totals[n%2], q, scale)
				n++
			}
			s.apart()
			d.addWhole(acc, totals, s)
			ADDQ(U32(uint32(b.Size)), s.src)
			ADDQ(U32(256), d.x)
			ADDQ(U32(8), d.of)
		})
		g.storeLanes(acc, y)
	})
	end()
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
