package main

import (
	"log"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
	"github.com/mmcloughlin/avo/x86"

	"github.com/moeflux/moeflux-actor/gpu/host/gen/base"
)

// Offsets within eight groups of inputs as arrangeShort leaves them, and their size. Package host
// has the same numbers.
const (
	shortScales = 256 // float32 [8]
	shortSums   = 288 // float32 [8]: scales times sums
	shortLess   = 320 // int32 [8]: sums times -least
	shortSizes  = 352 // uint8 [256]: the inputs without a sign
	shortSize   = 608
)

// pairs of groups that a vector holds halves of: group p and group p+4
const shortPairs = 4

// arrangeShort arranges eight groups of 32 inputs at a time for oneShort. A vector is the first, or
// the second, halves of two groups.
func (g *generator) arrangeShort(f base.Func) {
	dst, x, of, least := pointer("dst"), pointer("x"), pointer("of"), YMM()
	r := pointer("least").(reg.GPVirtual)
	VMOVD(r.As32(), least.AsX())
	VPBROADCASTD(least.AsX(), least)
	ones, pairs := g.keep(g.bytes(1)), g.keep(g.same("pair", 0x00010001))
	loop(f.Name+"_eight", pointer("eights"), func() {
		var sums [shortPairs]reg.VecVirtual
		for p := range sums {
			for half := range 2 {
				y, sum := YMM(), YMM()
				lower(x86.VMOVDQU(Mem{Base: x, Disp: 32*p + 16*half}, y.AsX()))
				VINSERTI128(U8(1), Mem{Base: x, Disp: 32*(p+shortPairs) + 16*half}, y, y)
				VMOVDQU(y, Mem{Base: dst, Disp: 64*p + 32*half})
				VPMADDUBSW(y, ones, sum)
				VPABSB(y, y)
				VMOVDQU(y, Mem{Base: dst, Disp: shortSizes + 64*p + 32*half})
				if half == 0 {
					sums[p] = sum
				} else {
					VPADDW(sum, sums[p], sums[p])
				}
			}
		}
		total := foldInts(foldWords(sums[0], sums[1], pairs), foldWords(sums[2], sums[3], pairs))
		VPMULLD(least, total, total)
		VMOVDQU(total, Mem{Base: dst, Disp: shortLess})
		low, high := YMM(), YMM()
		VMOVUPS(Mem{Base: of}, low)
		VMOVUPS(Mem{Base: of, Disp: 32}, high)
		for _, part := range []struct {
			pick uint8
			disp int
		}{{0x88, shortScales}, {0xdd, shortSums}} {
			s := YMM()
			VSHUFPS(U8(part.pick), high, low, s)
			VPERMPD(U8(0xd8), s, s)
			VMOVUPS(s, Mem{Base: dst, Disp: part.disp})
		}
		ADDQ(U32(shortSize), dst)
		ADDQ(U32(256), x)
		ADDQ(U32(64), of)
	})
	end()
}

// lower adds an instruction that writes the lower half of a vector and sets the upper one to zero.
// avo does not know the latter, and would keep the vector alive before it.
func lower(i *ir.Instruction, err error) {
	if err != nil {
		log.Fatalf("gen: %v", err)
	}
	x := i.Operands[len(i.Operands)-1].(reg.VecVirtual)
	i.Outputs = []Op{x.AsY()}
	Instruction(i)
}

// folded returns what unpack takes from the low and from the high parts of two vectors, added.
func folded(a, b reg.VecVirtual, low, high, add func(ops ...Op)) reg.VecVirtual {
	x := YMM()
	foldInto(x, a, b, low, high, add)
	return x
}

// foldInto is folded with a register for the result, which may be neither a nor b.
func foldInto(x, a, b reg.VecVirtual, low, high, add func(ops ...Op)) {
	y := YMM()
	low(b, a, x)
	high(b, a, y)
	add(y, x, x)
}

// foldWords returns the sums of two vectors of words in each half: those of a, of b, of a and of b,
// which foldInts adds up. Sums of two words fit in 16 bits. ones has 1 in every word.
func foldWords(a, b, ones reg.VecVirtual) reg.VecVirtual {
	sum := folded(a, b, VPUNPCKLDQ, VPUNPCKHDQ, VPADDW)
	VPMADDWD(ones, sum, sum)
	return sum
}

// foldInts returns the sums of four vectors in each half, of which a has two and b two.
func foldInts(a, b reg.VecVirtual) reg.VecVirtual {
	return folded(a, b, VPUNPCKLQDQ, VPUNPCKHQDQ, VPADDD)
}

// shortRow is what oneShort has of eight blocks of W and of X.
type shortRow struct {
	*splitter
	x    reg.Register
	ones reg.VecVirtual // 1 in every 16 bits
	// The table of highest bits, or of powers of two.
	values reg.Register
	// stored is where apartShort has left eight blocks; nil: they are in src, as they are stored.
	stored reg.Register
	wide   wideShort
}

// shortRow returns what takes blocks at src apart.
func (g *generator) shortRow(f base.Func, src reg.Register) *shortRow {
	b := f.Coding.Block()
	s := &shortRow{splitter: &splitter{generator: g, block: b, src: src}}
	if g.wideCodes {
		s.wideConstants()
		return s
	}
	s.mask, s.ones = g.keep(g.bytes(15)), g.keep(g.same("pair", 0x00010001))
	if b.Table != nil {
		s.held = s.valuesOf(b.Least)
	}
	s.values = GP64()
	switch {
	case b.Bits == 5:
		LEAQ(g.topBits(), s.values)
	case b.Power:
		LEAQ(g.powersOfTwo(), s.values)
	}
	return s
}

// oneShort is blockDot for rows of W as they are stored and one row of X, with the lanes added up.
// What becomes of the totals of eight blocks is computed between the products of the next eight:
// each step waits for the one before, and few instructions that wait are in flight at a time.
func (g *generator) oneShort(f base.Func) {
	b := f.Coding.Block()
	a := pointer("a")
	field := fieldsOf(a)
	s := g.shortRow(f, field(rowW))
	s.pages = Mem{Base: a, Disp: rowPages}
	y, back := field(rowY), field(rowBack)
	loop(f.Name+"_row", field(rowRows), func() {
		s.x = field(rowX)
		acc, last := g.zero(), &lastEight{total: g.zero(), d: g.zero()}
		if b.Biased {
			last.other = g.zero()
		}
		loop(f.Name+"_eight", field(rowBlocks), func() {
			s.fetch(f.Name+"_fetched", 8*b.Size)
			s.steps = last.steps(acc)
			s.eights(last)
			ADDQ(U32(uint32(8*b.Size)), s.src)
			ADDQ(U32(shortSize), s.x)
		})
		s.steps = last.steps(acc)
		s.finish()
		TESTQ(back, back)
		JZ(LabelRef(f.Name + "_whole"))
		SUBQ(back, s.src)
		s.eights(last)
		ADDQ(U32(uint32(8*b.Size)), s.src)
		s.steps = last.steps(acc)
		for len(s.steps) > 1 {
			s.step()
		}
		s.ofRest(last.part)
		s.finish()
		Label(f.Name + "_whole")
		g.storeLanes(acc, y)
	})
	end()
}

// lastEight is what there is of eight blocks before they are added up: the totals of their
// products, what these are multiplied by, and what is added then, if the format has biases.
type lastEight struct{ total, d, other, part reg.VecVirtual }

// steps return the instructions that add them to acc.
func (l *lastEight) steps(acc reg.VecVirtual) []func() {
	l.part = YMM()
	all := []func(){func() { VCVTDQ2PS(l.total, l.part) }, func() { VMULPS(l.d, l.part, l.part) }}
	if l.other != nil {
		all = append(all, func() { VADDPS(l.other, l.part, l.part) })
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

// finish adds all that wait.
func (s *splitter) finish() {
	for len(s.steps) > 0 {
		s.step()
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

// eights sets last to eight blocks.
func (s *shortRow) eights(last *lastEight) {
	sum := s.products
	if s.wideCodes {
		sum = s.productsWide
	}
	total := sum()
	s.finish()
	scale, bias := s.numbersOf()
	VMULPS(Mem{Base: s.x, Disp: shortScales}, scale, last.d)
	if bias != nil {
		VMULPS(Mem{Base: s.x, Disp: shortSums}, bias, last.other)
	}
	total(last.total)
	if s.block.Least != 0 || s.wideCodes && s.block.Table != nil {
		VPADDD(Mem{Base: s.x, Disp: shortLess}, last.total, last.total)
	}
}

// products multiplies eight blocks, and returns what sets a vector to their sums.
func (s *shortRow) products() func(total reg.VecVirtual) {
	var v [shortPairs]reg.VecVirtual
	for p := range v {
		v[p] = s.both(p)
		s.step()
	}
	return func(total reg.VecVirtual) {
		foldInto(total, s.fold(v[0], v[1]), s.fold(v[2], v[3]), VPUNPCKLQDQ, VPUNPCKHQDQ, VPADDD)
	}
}

// fold is foldWords for products of codes without a sign, which are at most 31 and inputs 127: a
// word has four of both. Else it is the same for 32-bit integers.
func (s *shortRow) fold(a, b reg.VecVirtual) reg.VecVirtual {
	if s.block.Signed() {
		return folded(a, b, VPUNPCKLDQ, VPUNPCKHDQ, VPADDD)
	}
	return foldWords(a, b, s.ones)
}

// both returns the products of a pair of groups, as fold takes them.
func (s *shortRow) both(p int) reg.VecVirtual {
	low, high := s.codesOf(p)
	x := func(half int) Mem { return Mem{Base: s.x, Disp: 64*p + 32*half} }
	if s.block.Signed() { // of which inputs are relieved
		for half, q := range []*reg.VecVirtual{&low, &high} {
			if s.block.Bits == 8 { // a code may be -128
				y := YMM()
				VMOVDQU(x(half), y)
				VPSIGNB(*q, y, y)
				VPABSB(*q, *q)
				VPMADDUBSW(y, *q, *q)
			} else {
				*q = s.timesSigned(*q, x(half), Mem{Base: s.x, Disp: shortSizes + 64*p + 32*half})
			}
			VPMADDWD(s.ones, *q, *q)
		}
		VPADDD(high, low, low)
		return low
	}
	VPMADDUBSW(x(0), low, low)
	VPMADDUBSW(x(1), high, high)
	VPADDW(high, low, low)
	return low
}

// place returns where block i of eight has its byte at disp.
func (s *shortRow) place(i, disp int) Mem { return s.at(i*s.block.Size + disp) }

// halvesOf returns 16 bytes at disp of the blocks of a pair.
func (s *shortRow) halvesOf(p, disp int) reg.VecVirtual {
	y := YMM()
	lower(x86.VMOVDQU(s.place(p, disp), y.AsX()))
	VINSERTI128(U8(1), s.place(p+shortPairs, disp), y, y)
	return y
}

// codesOf returns the codes of the first and of the second halves of a pair of groups: without a
// sign where the format has biases or a Least.
func (s *shortRow) codesOf(p int) (low, high reg.VecVirtual) {
	b := s.block
	if s.stored != nil {
		low, high = YMM(), YMM()
		VMOVDQU(Mem{Base: s.stored, Disp: 64 * p}, low)
		VMOVDQU(Mem{Base: s.stored, Disp: 64*p + 32}, high)
		return low, high
	}
	if b.Bits == 8 {
		return s.halvesOf(p, 2), s.halvesOf(p, 18)
	}
	low, high = s.halvesOf(p, b.Size-16), YMM()
	VPSRLW(U8(4), low, high)
	VPAND(s.mask, low, low)
	VPAND(s.mask, high, high)
	switch {
	case b.Bits == 5:
		tops := s.topsOf(p)
		VPOR(tops[0], low, low)
		VPOR(tops[1], high, high)
	case b.Table != nil:
		s.looked(b.Least, low)
		s.looked(b.Least, high)
	}
	return low, high
}

// topBits is a table that has, for each byte, 16 for each of its bits.
func (g *generator) topBits() Mem {
	return g.table("topBits", 512, func(i int) Constant {
		w := uint32(0)
		for j := range 4 {
			w |= uint32(i/2>>(i%2*4+j)&1) << (8*j + 4)
		}
		return U32(w)
	})
}

// topsOf returns the highest bits of the codes of each block of a pair: of the first halves, and of
// the second. A block's 32 bits are loaded once: loads are what such formats wait for.
func (s *shortRow) topsOf(p int) (tops [2]reg.VecVirtual) {
	one := func(i int) (halves [2]reg.VecVirtual) {
		bits := GP64()
		MOVL(s.place(i, s.block.Size-20), bits.As32())
		for j := range 4 {
			b := bits
			if j < 3 { // the last is alone after the shifts
				b = GP64()
				MOVBQZX(bits.As8(), b)
				SHRL(U8(8), bits.As32())
			}
			from := Mem{Base: s.values, Index: b, Scale: 8}
			if j%2 == 0 {
				halves[j/2] = YMM()
				lower(x86.VMOVQ(from, halves[j/2].AsX()))
			} else {
				x := halves[j/2].AsX()
				lower(x86.VMOVHPS(from, x, x))
			}
		}
		return halves
	}
	tops = one(p)
	for half, high := range one(p + shortPairs) {
		VINSERTI128(U8(1), high.AsX(), tops[half], tops[half])
	}
	return tops
}
