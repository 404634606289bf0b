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

// oneWhole is wholeDot for one row of X, where codes go from a block into products. What becomes of
// a block's total is computed between the products of the next block: each step waits for the one
// before, and few instructions are in flight at a time.
func (g *generator) oneWhole(f base.Func) {
	b := f.Coding.Block()
	a := pointer("a")
	field := fieldsOf(a)
	s := &splitter{generator: g, block: b, src: field(rowW)}
	s.mask = g.keep(g.bytes(15))
	s.constants()
	y := field(rowY)
	loop(f.Name+"_row", field(rowRows), func() {
		d := &blockDot{generator: g, biased: f.Biased, x: field(rowX), of: field(rowOf), sums: field(rowSums)}
		acc, last := g.zero(), &lastBlock{total: g.zero(), d: g.zero(), join: VSUBPS}
		if f.Biased {
			last.other = g.zero()
		}
		loop(f.Name+"_block", field(rowBlocks), func() {
			s.fetch(b.Size)
			s.of, s.d, s.steps = d.of, last.d, last.steps(acc)
			if f.Biased {
				s.steps = append(s.steps,
					func() { VPMADDWD(Mem{Base: d.sums}, s.minima, last.other) },
					func() { VCVTDQ2PS(last.other, last.other) },
					func() { VMULPS(s.dmin, last.other, last.other) },
				)
			}
			s.step()
			s.multiply(d, last)
			if f.Biased {
				ADDQ(U32(32), d.sums)
			}
			ADDQ(U32(uint32(b.Size)), s.src)
			if b.Table != nil {
				ADDQ(U32(halvesSize), d.x)
			} else {
				ADDQ(U32(256), d.x)
			}
			ADDQ(U32(8), d.of)
		})
		s.steps = last.steps(acc)
		s.finish()
		g.storeLanes(acc, y)
	})
	end()
}

// constants loads what stays in registers for all blocks.
func (s *splitter) constants() {
	b := s.block
	if b.Table != nil {
		s.held = s.valuesOf(0)
	}
	switch b.Name {
	case "Q3_K":
		s.topTables = s.thirdBits()
	case "Q5_K":
		s.fifths = s.fifthBits()
	}
	if b.Group == 32 && b.Biased {
		for i, mask := range []uint64{0x3f3f3f3f3f3f3f3f, 0x0f0f0f0f0f0f0f0f, 0x3030303030303030} {
			s.sixMasks[i] = GP64()
			MOVQ(U64(mask), s.sixMasks[i])
		}
	}
}

// multiply takes a block apart and adds up the products of its codes in last.
func (s *splitter) multiply(d *blockDot, last *lastBlock) {
	b := s.block
	var totals [2]reg.VecVirtual
	var scale reg.VecVirtual
	n := 0
	s.sink = func(q reg.VecVirtual, disp int) {
		if b.Table != nil {
			q = s.timesSigned(q, Mem{Base: d.x, Disp: disp}, Mem{Base: d.x, Disp: halvesSizes + disp})
		} else {
			q = d.times(q, disp)
		}
		if b.Table == nil || n%2 == 0 { // else both have the same scales
			scale = YMM()
			VPSHUFB(s.scalesAt(disp), s.scaleWords, scale)
		}
		if b.Table == nil {
			if n == 0 {
				VPMADDWD(scale, q, last.total)
			} else {
				VPMADDWD(scale, q, q)
				VPADDD(q, last.total, last.total)
			}
		} else {
			addScaled(&totals[n%2], q, scale)
		}
		n++
		s.step()
	}
	s.apart()
	if b.Table != nil {
		totals = lanesOfHalves(totals)
		VPADDD(totals[1], totals[0], last.total)
	}
}

// lastBlock is what there is of a block before it is added up: the total of its products, what it
// is multiplied by, and what joins it then, if anything does.
type lastBlock struct {
	total, d, other, part reg.VecVirtual
	join                  func(ops ...Op)
}

// steps return the instructions that add it to acc.
func (l *lastBlock) steps(acc reg.VecVirtual) []func() {
	l.part = YMM()
	all := []func(){func() { VCVTDQ2PS(l.total, l.part) }, func() { VMULPS(l.d, l.part, l.part) }}
	if l.other != nil {
		all = append(all, func() { l.join(l.other, l.part, l.part) })
	}
	return append(all, func() { VADDPS(l.part, acc, acc) })
}

// step adds the next instruction of those that wait.
func (s *splitter) step() {
	if len(s.steps) > 0 {
		s.steps[0]()
		s.steps = s.steps[1:]
	}
}

// scalesAt is the order that makes words of the scales for 32 codes from disp on.
func (s *splitter) scalesAt(disp int) Mem {
	k := uint32(disp / 32)
	words, at := true, [2]uint32{2 * k, 2 * k} // of the first half and of the second
	switch {
	case s.block.Table != nil: // words, of two groups at once
		at = [2]uint32{2 * (k &^ 1), 2 * (k | 1)}
	case s.block.Group == 32: // bytes as oneSixes leaves them
		words, at = false, [2]uint32{k + k&4, k + k&4}
	case s.block.Biased: // bytes as they are stored
		words, at = false, [2]uint32{2 * k, 2*k + 1}
	}
	return s.generator.table(fmt.Sprintf("scale%v_%d_%d", words, at[0], at[1]), 8, func(i int) Constant {
		w := at[i/4] | noByte<<8
		if words {
			w = at[i/4] | (at[i/4]+1)<<8
		}
		return U32(w * 0x00010001)
	})
}

// noByte is where VPSHUFB has no byte, but 0.
const noByte = 0x80

// finish adds all that wait.
func (s *splitter) finish() {
	for len(s.steps) > 0 {
		s.step()
	}
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
	x := XMM()
	VMOVQ(all, x)
	VPINSRQ(U8(1), low, x, x) // 4 scales, 4 minima, the last 4 scales, the last 4 minima
	s.scaleWords = YMM()
	VINSERTI128(U8(1), x, x.AsY(), s.scaleWords)
	minima := YMM()
	VPSHUFB(s.generator.table("sixMinima", 8, func(i int) Constant { // twice each, as words
		return U32((uint32(4+i+i&4) | noByte<<8) * 0x00010001)
	}), s.scaleWords, minima)
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
	s.step() // for which s.d is still that of the block before
	x, of := XMM(), XMM()
	VBROADCASTSS(Mem{Base: s.of}, of)
	if dmin == d+2 {
		VMOVD(s.at(d), x)
	} else {
		VPBROADCASTW(s.at(d), x)
	}
	VCVTPH2PS(x, x)
	VMULPS(of, x, x)
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
