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
	rowPages  = 64
)

// Where a block of inputs has them without a sign, as package host's arrangeHalves makes it, and
// its size.
const (
	halvesSizes = 256
	halvesSize  = 512
)

// oneWhole is wholeDot for one row of X, where codes go from a block into products. It takes two
// blocks at a time, so that one instruction adds up lanes of both, and multiplies both, and then
// the last of an odd number.
func (g *generator) oneWhole(f base.Func) {
	a := pointer("a")
	field := fieldsOf(a)
	s := &splitter{generator: g, block: f.Coding.Block(), src: field(rowW), name: f.Name}
	s.pages = Mem{Base: a, Disp: rowPages}
	s.mask = g.keep(g.bytes(15))
	s.constants()
	if g.wideCodes {
		s.wideConstants()
	}
	y := field(rowY)
	loop(f.Name+"_row", field(rowRows), func() {
		d := &blockDot{generator: g, x: field(rowX), of: field(rowOf), sums: field(rowSums)}
		sum, left := XMM(), field(rowBlocks)
		VXORPS(sum, sum, sum)
		SHRQ(U8(1), left)
		JZ(LabelRef(f.Name + "_one"))
		loop(f.Name+"_two", left, func() { s.products(d, 2).addTo(sum) })
		Label(f.Name + "_one")
		MOVQ(field(rowBlocks), left)
		TESTQ(U32(1), left)
		JZ(LabelRef(f.Name + "_done"))
		s.products(d, 1).addTo(sum)
		Label(f.Name + "_done")
		VMOVSS(sum, Mem{Base: y})
		ADDQ(U32(4), y)
	})
	end()
}

// wholeTotals is what one or two blocks add to a row: vectors whose lanes add up to their totals
// and, if the format has minima with numbers of their own, to the products of these; and the
// numbers, of the totals and then of the least ones.
type wholeTotals struct {
	*generator
	whole, least []reg.VecVirtual
	by           reg.VecVirtual
}

// products returns the totals of the next n blocks.
func (s *splitter) products(d *blockDot, n int) *wholeTotals {
	b, multiply, xs, sums := s.block, s.multiply, 256, 32
	switch {
	case s.wideCodes:
		if multiply = s.multiplyWide; b.Table != nil {
			sums = foursSize
		}
	case b.Table != nil:
		xs = halvesSize
	}
	s.fetch(fmt.Sprintf("%s_fetched%d", s.name, n), n*b.Size)
	t := &wholeTotals{generator: s.generator}
	for s.taken = range n {
		from := *d
		from.atX, from.atSums = s.taken*xs, s.taken*sums
		total := multiply(&from)
		if !b.Signed() {
			minima := s.minima
			VPMADDWD(Mem{Base: d.sums, Disp: from.atSums}, minima, minima)
			if b.Biased {
				t.least = append(t.least, minima)
			} else {
				s.less(minima, total)
			}
		}
		t.whole = append(t.whole, total)
	}
	t.by = s.numbersOf(n, d.of)
	if !b.Signed() || s.wideCodes {
		ADDQ(U32(uint32(n*sums)), d.sums)
	}
	ADDQ(U32(uint32(n*b.Size)), s.src)
	ADDQ(U32(uint32(n*xs)), d.x)
	ADDQ(U32(uint32(n*8)), d.of)
	return t
}

// less subtracts minima from a total.
func (s *splitter) less(minima, total reg.VecVirtual) {
	if !s.wideCodes {
		VPSUBD(minima, total, total)
		return
	}
	i, err := x86.VPSUBD(minima.AsZ(), total, total) // the upper half of minima is 0
	instruction(i, err, minima, total)
}

// numbersOf returns d, and dmin, of one or two blocks, times the scales of the inputs.
func (s *splitter) numbersOf(n int, of reg.Register) reg.VecVirtual {
	by, x := XMM(), XMM()
	place := func(i int) Mem {
		s.taken = i
		return s.at(s.d)
	}
	if s.block.Biased {
		VMOVD(place(0), by)
		VPINSRD(U8(1), place(n-1), by, by)
		VCVTPH2PS(by, by)
		VPSHUFD(U8(0b11_01_10_00), by, by)
	} else {
		if VPBROADCASTW(place(0), by); n == 2 {
			VPINSRW(U8(1), place(1), by, by)
		}
		VCVTPH2PS(by, by)
	}
	if n == 2 {
		VPERMILPS(U8(0b10_00_10_00), Mem{Base: of}, x)
	} else {
		VBROADCASTSS(Mem{Base: of}, x)
	}
	VMULPS(x, by, by)
	return by
}

// addTo adds the blocks to the sum, one after the other.
func (t *wholeTotals) addTo(sum reg.VecVirtual) {
	n := len(t.whole)
	dots, high := t.lanesOfTwo(t.whole[0], t.whole[n-1]), XMM()
	if t.least != nil { // both totals, then both least ones
		dots = foldInts(dots, folded(t.least[0], t.least[n-1], VPUNPCKLDQ, VPUNPCKHDQ, VPADDD))
	}
	parts := dots.AsX().(reg.VecVirtual)
	if t.wideCodes { // whose registers the other does not reach
		VEXTRACTI64X2(U8(1), dots, high)
	} else {
		VEXTRACTI128(U8(1), dots, high)
	}
	VPADDD(high, parts, parts)
	if t.least == nil {
		VPSHUFD(U8(0b01_00_11_10), parts, high)
		VPADDD(high, parts, parts)
	}
	VCVTDQ2PS(parts, parts)
	VMULPS(t.by, parts, parts)
	if t.least != nil {
		VMOVHLPS(parts, parts, high)
		VSUBPS(high, parts, parts)
	}
	if VADDSS(parts, sum, sum); n == 2 {
		VMOVSHDUP(parts, parts)
		VADDSS(parts, sum, sum)
	}
}

// lanesOfTwo returns sums of lanes of two vectors, in turns, of which four each are to be added.
func (t *wholeTotals) lanesOfTwo(a, b reg.VecVirtual) reg.VecVirtual {
	if !t.wideCodes {
		return folded(a, b, VPUNPCKLDQ, VPUNPCKHDQ, VPADDD)
	}
	both, sum := foldWide(a, b, VPUNPCKLDQ, VPUNPCKHDQ), YMM()
	VEXTRACTI64X4(U8(1), both, sum)
	VPADDD(both.AsY(), sum, sum)
	return sum
}

// constants loads what stays in registers for all blocks.
func (s *splitter) constants() {
	b := s.block
	switch {
	case s.wideCodes: // see wideConstants
	case b.Table != nil:
		s.held = s.valuesOf(0)
	case b.Name == "Q3_K":
		s.topTables = s.thirdBits()
	case b.Name == "Q5_K":
		s.fifths = s.fifthBits()
	}
	if b.Group == 32 && b.Biased {
		for i, mask := range []uint64{0x3f3f3f3f3f3f3f3f, 0x0f0f0f0f0f0f0f0f, 0x3030303030303030} {
			s.sixMasks[i] = GP64()
			MOVQ(U64(mask), s.sixMasks[i])
		}
	}
}

// multiply takes a block apart and returns a vector whose lanes add up to the products of its
// codes.
func (s *splitter) multiply(d *blockDot) (total reg.VecVirtual) {
	b := s.block
	var scale reg.VecVirtual
	n := 0
	s.sink = func(q reg.VecVirtual, disp int) {
		if b.Table != nil {
			q = s.timesSigned(q, d.input(disp), d.input(halvesSizes+disp))
		} else {
			q = d.times(q, disp)
		}
		if b.Table == nil || n%2 == 0 { // else both have the same scales
			scale = YMM()
			VPSHUFB(s.scalesAt(disp), s.scaleWords, scale)
		}
		addScaled(&total, q, scale)
		n++
	}
	s.apart()
	return total
}

// scalesAt is the order that makes words of the scales for 32 codes from disp on.
func (s *splitter) scalesAt(disp int) Mem {
	o := s.scalesOf(disp)
	return s.generator.table(o.name, 8, o.at)
}

// order is a table for VPSHUFB, of eight numbers.
type order struct {
	name string
	at   func(i int) Constant
}

// scalesOf is the table of scalesAt.
func (s *splitter) scalesOf(disp int) order {
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
	return order{fmt.Sprintf("scale%v_%d_%d", words, at[0], at[1]), func(i int) Constant {
		w := at[i/4] | noByte<<8
		if words {
			w = at[i/4] | (at[i/4]+1)<<8
		}
		return U32(w * 0x00010001)
	}}
}

// noByte is where VPSHUFB has no byte, but 0.
const noByte = 0x80

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
	VPSHUFB(s.sixMinima(), s.scaleWords, minima)
	s.setMinima(minima)
	s.numbers(0, 2)
}

// sixMinima is the order that makes words of the minima that oneSixes leaves, twice each.
func (s *splitter) sixMinima() Mem {
	return s.generator.table("sixMinima", 8, func(i int) Constant {
		return U32((uint32(4+i+i&4) | noByte<<8) * 0x00010001)
	})
}

// oneSplits is wholeSplits for oneWhole. Half a vector has all scales: as words, twice in the end.
func (s *splitter) oneSplits() {
	low := s.splitScales()
	s.scaleWords = YMM()
	VINSERTI128(U8(1), low, low.AsY(), s.scaleWords)
	s.numbers(0, -1)
}

// splitScales returns 8 scales as words.
func (s *splitter) splitScales() reg.VecVirtual {
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
	return low
}

// fetch prefetches as many bytes of blocks as are taken now, aheadBytes later; and by pages, if the
// arguments say so, what is about as far in the next block of farPages pages: for each 256 bytes,
// or part of them, a line of each page into the second-level cache. See package host's byPages.
func (s *splitter) fetch(label string, bytes int) {
	const farPages, pageBytes, block = 4, 4096, 4 * 4096
	for at := 0; at < bytes; at += 64 {
		PREFETCHT0(s.at(aheadBytes + at))
	}
	CMPQ(s.pages, U8(0))
	JEQ(LabelRef(label))
	within, far := GP64(), GP64()
	MOVQ(s.src, far)
	MOVQ(s.src, within)
	ANDQ(U32(block-1), within)
	SUBQ(within, far)
	SHRQ(U8(8), within)
	SHLQ(U8(6), within)
	for at := 0; at < bytes; at += 64 * farPages {
		for page := range farPages {
			PREFETCHT1(Mem{Base: far, Index: within, Scale: 1, Disp: block + page*pageBytes + at/farPages})
		}
	}
	Label(label)
}
