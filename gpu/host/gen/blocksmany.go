package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/moeflux/moeflux-actor/gpu/host/gen/base"
)

// Offsets of package host's manyArgs. A test there compares them with the struct.
const (
	manyW      = 0
	manyEights = 8
	manyRest   = 16
	manyRows   = 24
	manyX      = 32
	manyY      = 96
)

// Offsets within eight blocks of 32 as apartShort leaves them, and their size: codes as
// arrangeShort has inputs, then numbers of the eight. Package host has the same.
const (
	apartScales = 256 // float32 [8]
	apartBiases = 288 // float32 [8], if the format has them
	apartSize   = 320
)

// apartShort takes a row of blocks of 32 apart for manyShort, eight blocks at a time. Where back is
// not 0, eight more begin that many bytes before the end of the others, see rowArgs.
func (g *generator) apartShort(f base.Func) {
	b := f.Coding.Block()
	dst := pointer("dst")
	s := g.shortRow(f, pointer("src"))
	eight := func() {
		for p := range shortPairs {
			low, high := s.codesOf(p)
			VMOVDQU(low, Mem{Base: dst, Disp: 64 * p})
			VMOVDQU(high, Mem{Base: dst, Disp: 64*p + 32})
		}
		scale, bias := s.numbersOf()
		VMOVUPS(scale, Mem{Base: dst, Disp: apartScales})
		if bias != nil {
			VMOVUPS(bias, Mem{Base: dst, Disp: apartBiases})
		}
		ADDQ(U32(uint32(8*b.Size)), s.src)
		ADDQ(U32(apartSize), dst)
	}
	loop(f.Name+"_eight", pointer("eights"), eight)
	back := pointer("back")
	TESTQ(back, back)
	JZ(LabelRef(f.Name + "_whole"))
	SUBQ(back, s.src)
	eight()
	Label(f.Name + "_whole")
	end()
}

// manyShort is oneShort for a row of W that apartShort has taken apart, and rows of X: two at a
// time, and then one.
func (g *generator) manyShort(f base.Func) {
	a := pointer("a")
	field := fieldsOf(a)
	s := &shortRow{splitter: &splitter{generator: g, block: f.Coding.Block()}, ones: g.keep(g.same("pair", 0x00010001))}
	at, rest := GP64(), field(manyRest)
	XORQ(at, at)
	rows := func(name string, n int) {
		xs, sums := make([]reg.Register, n), make([]reg.VecVirtual, n)
		for r := range xs {
			x := GP64()
			MOVQ(Mem{Base: a, Index: at, Scale: 8, Disp: manyX + 8*r}, x)
			xs[r], sums[r] = x, g.zero()
		}
		s.stored = field(manyW)
		loop(name+"_eight", field(manyEights), func() {
			for r, part := range s.eightsOf(xs) {
				VADDPS(part, sums[r], sums[r])
				ADDQ(U32(shortSize), xs[r])
			}
			ADDQ(U32(apartSize), s.stored)
		})
		TESTQ(rest, rest)
		JZ(LabelRef(name + "_whole"))
		for r, part := range s.eightsOf(xs) {
			s.x = xs[r]
			s.ofRest(part)
			VADDPS(part, sums[r], sums[r])
		}
		Label(name + "_whole")
		y := GP64()
		MOVQ(at, y)
		SHLQ(U8(5), y)
		for r := range xs {
			VMOVUPS(sums[r], Mem{Base: a, Index: y, Scale: 1, Disp: manyY + 32*r})
		}
		ADDQ(U32(uint32(n)), at)
	}
	twosAndOne(f.Name, func() reg.Register { return field(manyRows) }, rows)
	end()
}

// eightsOf is eights for rows of X.
func (s *shortRow) eightsOf(xs []reg.Register) []reg.VecVirtual {
	n := len(xs)
	var halves [2][]reg.VecVirtual // of pairs 0 and 1, and of 2 and 3
	for h := range halves {
		first := s.bothOf(2*h, xs)
		for r, second := range s.bothOf(2*h+1, xs) {
			halves[h] = append(halves[h], s.fold(first[r], second))
		}
	}
	scale, bias := s.numbersOf()
	dots := make([]reg.VecVirtual, n)
	for r, x := range xs {
		field := func(disp int) Mem { return Mem{Base: x, Disp: disp} }
		dot := foldInts(halves[0][r], halves[1][r])
		if s.block.Least != 0 {
			VPADDD(field(shortLess), dot, dot)
		}
		VCVTDQ2PS(dot, dot)
		by := YMM()
		VMULPS(field(shortScales), scale, by)
		VMULPS(by, dot, dot)
		if bias != nil {
			VMULPS(field(shortSums), bias, by)
			VADDPS(by, dot, dot)
		}
		dots[r] = dot
	}
	return dots
}

// bothOf is both for rows of X.
func (s *shortRow) bothOf(p int, xs []reg.Register) (sums []reg.VecVirtual) {
	low, high := s.codesOf(p)
	codes := []reg.VecVirtual{low, high}
	sizes := codes
	if s.block.Signed() {
		sizes = []reg.VecVirtual{YMM(), YMM()}
		for half, q := range codes {
			VPABSB(q, sizes[half])
		}
	}
	for _, x := range xs {
		var parts [2]reg.VecVirtual
		for half, q := range codes {
			parts[half] = YMM()
			from := Mem{Base: x, Disp: 64*p + 32*half}
			if !s.block.Signed() {
				VPMADDUBSW(from, q, parts[half])
				continue
			}
			y := YMM()
			VMOVDQU(from, y)
			VPSIGNB(q, y, y)
			VPMADDUBSW(y, sizes[half], parts[half])
			VPMADDWD(s.ones, parts[half], parts[half])
		}
		if s.block.Signed() {
			VPADDD(parts[1], parts[0], parts[0])
		} else {
			VPADDW(parts[1], parts[0], parts[0])
		}
		sums = append(sums, parts[0])
	}
	return sums
}

// ofRest moves what eight blocks that end with the row add to the lanes of those that are not
// counted yet, and clears the others. s.x is where the row's shortRest is.
func (s *shortRow) ofRest(part reg.VecVirtual) {
	order := YMM()
	VMOVDQU(Mem{Base: s.x, Disp: shortSize}, order)
	VPERMPS(part, order, part)
	VANDPS(Mem{Base: s.x, Disp: shortSize + 32}, part, part)
}
