package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// split writes a splitter's body for a block of 256: its scales and minima, and its codes; and both
// for codes that are taken 64 at a time (blockswide.go).
type split struct{ scales, codes, wideScales, wideCodes func(s *splitter) }

// splits are those of formats, by their names.
var splits = map[string]split{
	"Q2_K":   {(*splitter).scales2, (*splitter).q2k, (*splitter).wideScales2, (*splitter).wide2},
	"Q3_K":   {(*splitter).scales3, (*splitter).q3k, (*splitter).wideScales3, (*splitter).wide3},
	"Q4_K":   {(*splitter).sixes, (*splitter).q4k, (*splitter).wideSixes, (*splitter).wide4},
	"Q5_K":   {(*splitter).sixes, (*splitter).q5k, (*splitter).wideSixes, (*splitter).wide5},
	"Q6_K":   {(*splitter).scales6, (*splitter).q6k, (*splitter).wideScales6, (*splitter).wide6},
	"IQ4_XS": {(*splitter).scalesIQ4, (*splitter).iq4xs, (*splitter).wideSplits, (*splitter).wideIQ4},
}

// eight stores 8 numbers: the integers in lanes times by.
func (s *splitter) eight(v, by reg.VecVirtual, to reg.Register, disp int) {
	VCVTDQ2PS(v, v)
	VMULPS(by, v, v)
	VMOVUPS(v, Mem{Base: to, Disp: disp})
}

// eightBytes is eight for the bytes of a register.
func (s *splitter) eightBytes(r reg.GPVirtual, by reg.VecVirtual, to reg.Register, disp int, less uint32) {
	x, y := XMM(), YMM()
	VMOVQ(r, x)
	VPMOVZXBD(x, y)
	if less != 0 {
		VPSUBD(s.same("less", less), y, y)
	}
	s.eight(y, by, to, disp)
}

// word loads 4 bytes.
func (s *splitter) word(disp int) reg.GPVirtual {
	r := GP64()
	MOVL(s.at(disp), r.As32())
	return r
}

// masked returns r, shifted right, with a mask for each byte.
func masked(r reg.GPVirtual, right int, mask uint32) reg.GPVirtual {
	out := GP64()
	MOVL(r.As32(), out.As32())
	if right > 0 {
		SHRL(U8(right), out.As32())
	}
	ANDL(U32(mask*0x01010101), out.As32())
	return out
}

// joined returns low with the bits of high 32 bits above it.
func joined(low, high reg.GPVirtual) reg.GPVirtual {
	SHLQ(U8(32), high)
	ORQ(high, low)
	return low
}

// sixes stores 8 scales and 8 minima of 6 bits in 12 bytes at disp 4, times d and -dmin.
func (s *splitter) sixes() {
	if s.kept() {
		s.wholeSixes()
		return
	}
	w0, w1, w2 := s.word(4), s.word(8), s.word(12)
	high := func(w2Right int, w reg.GPVirtual) reg.GPVirtual {
		r, top := masked(w2, w2Right, 15), masked(w, 2, 0x30)
		ORL(top.As32(), r.As32())
		return r
	}
	scales := joined(masked(w0, 0, 63), high(0, w0))
	minima := joined(masked(w1, 0, 63), high(4, w1))
	dmin := s.half(2)
	s.minus(dmin)
	s.eightBytes(scales, s.half(0), s.scales, 0, 0)
	s.eightBytes(minima, dmin, s.biases, 0, 0)
}

// pair returns the codes in the low and in the high halves of 32 bytes.
func (s *splitter) pair(disp int) (low, high reg.VecVirtual) {
	low, high = YMM(), YMM()
	VMOVDQU(s.at(disp), low)
	VPSRLW(U8(4), low, high)
	VPAND(s.nibbleMask(), low, low)
	VPAND(s.nibbleMask(), high, high)
	return low, high
}

// nibbleMask is s.mask, in memory where no register is left for it.
func (s *splitter) nibbleMask() Op {
	if len(s.fifths) > 0 {
		return s.bytes(15)
	}
	return s.mask
}

func (s *splitter) q4k() {
	for k := range 4 {
		low, high := s.pair(16 + 32*k)
		s.store(low, 64*k)
		s.store(high, 64*k+32)
	}
}

// bitTo returns bit from of every byte of v at place to.
func (s *splitter) bitTo(v reg.VecVirtual, from, to int) reg.VecVirtual {
	return s.bitsTo(v, from, to, 1)
}

// bitsTo is bitTo for the bits of mask from bit from on.
func (s *splitter) bitsTo(v reg.VecVirtual, from, to int, mask byte) reg.VecVirtual {
	y := YMM()
	switch {
	case from > to:
		VPSRLW(U8(from-to), v, y)
		VPAND(s.bytes(mask<<to), y, y)
	case from < to:
		VPSLLW(U8(to-from), v, y)
		VPAND(s.bytes(mask<<to), y, y)
	default:
		VPAND(s.bytes(mask<<to), v, y)
	}
	return y
}

func (s *splitter) q5k() {
	if len(s.fifths) > 0 {
		s.q5kByTables()
		return
	}
	bits := YMM()
	VMOVDQU(s.at(16), bits)
	for k := range 4 {
		low, high := s.pair(48 + 32*k)
		VPOR(s.bitTo(bits, 2*k, 4), low, low)
		VPOR(s.bitTo(bits, 2*k+1, 4), high, high)
		s.store(low, 64*k)
		s.store(high, 64*k+32)
	}
}

// q5kByTables takes the codes apart: four highest bits of each are the number of an entry.
func (s *splitter) q5kByTables() {
	var four reg.VecVirtual
	for k := range 4 {
		if k%2 == 0 {
			four = YMM()
			VMOVDQU(s.at(16), four)
			if k > 0 {
				VPSRLW(U8(4), four, four)
			}
			VPAND(s.bytes(15), four, four)
		}
		low, high := s.pair(48 + 32*k)
		for j, q := range []reg.VecVirtual{low, high} {
			top := YMM()
			VPSHUFB(four, s.fifths[2*(k%2)+j], top)
			VPOR(top, q, q)
			s.store(q, 64*k+32*j)
		}
	}
}

// fifthBits are tables of bit i of 4 bits at place 4.
func (g *generator) fifthBits() (tables []reg.VecVirtual) {
	for i := range 4 {
		tables = append(tables, g.keep(g.table(fmt.Sprint("fifths", i), 8, func(at int) Constant {
			w := 0
			for b := range 4 {
				w |= (at%4*4 + b) >> i & 1 << (8*b + 4)
			}
			return U32(w)
		})))
	}
	return tables
}

func (s *splitter) scales6() {
	if s.kept() {
		y := YMM()
		VPMOVSXBW(s.at(192), y)
		s.setScales(y)
		s.numbers(208, 208)
		s.center(y, 5)
	} else {
		d := s.half(208)
		for k := range 2 {
			y := YMM()
			VPMOVSXBD(s.at(192+8*k), y)
			s.eight(y, d, s.scales, 32*k)
		}
	}
}

func (s *splitter) q6k() {
	for k := range 2 {
		tops := YMM()
		VMOVDQU(s.at(128+32*k), tops)
		for j := range 2 {
			low, high := s.pair(64*k + 32*j)
			VPOR(s.bitsTo(tops, 2*j, 4, 3), low, low)
			VPOR(s.bitsTo(tops, 4+2*j, 4, 3), high, high)
			if !s.kept() {
				s.minusByte(low, 32)
				s.minusByte(high, 32)
			}
			s.store(low, 128*k+32*j)
			s.store(high, 128*k+64+32*j)
		}
	}
}

func (s *splitter) scales2() {
	if s.sink != nil {
		minima := YMM()
		s.scaleWords = YMM()
		VBROADCASTI128(s.at(0), s.scaleWords)
		VPAND(s.mask, s.scaleWords, s.scaleWords)
		VPMOVZXBW(s.at(0), minima)
		VPSRLW(U8(4), minima, minima)
		s.setMinima(minima)
		s.numbers(80, 82)
	} else if s.kept() {
		both, low := YMM(), YMM()
		VPMOVZXBW(s.at(0), both)
		VPAND(s.mask, both, low)
		VPSRLW(U8(4), both, both)
		s.setScales(low)
		s.setMinima(both)
		s.numbers(80, 82)
	} else {
		d, dmin := s.half(80), s.half(82)
		s.minus(dmin)
		for k := range 2 {
			both, low := YMM(), YMM()
			VPMOVZXBD(s.at(8*k), both)
			VPAND(s.same("low", 15), both, low)
			VPSRLD(U8(4), both, both)
			s.eight(low, d, s.scales, 32*k)
			s.eight(both, dmin, s.biases, 32*k)
		}
	}
}

func (s *splitter) q2k() {
	for k := range 2 {
		codes := YMM()
		VMOVDQU(s.at(16+32*k), codes)
		for j := range 4 {
			s.store(s.bitsTo(codes, 2*j, 0, 3), 128*k+32*j)
		}
	}
}

func (s *splitter) scales3() {
	w0, w1, w2 := s.word(96), s.word(100), s.word(104)
	part := func(w reg.GPVirtual, right, top int) reg.GPVirtual {
		r := masked(w, right, 15)
		high := masked(w2, top, 3)
		SHLL(U8(4), high.As32())
		ORL(high.As32(), r.As32())
		return r
	}
	low, high := joined(part(w0, 0, 0), part(w1, 0, 2)), joined(part(w0, 4, 4), part(w1, 4, 6))
	if s.kept() {
		x, y := XMM(), YMM()
		VMOVQ(low, x)
		VPINSRQ(U8(1), high, x, x)
		VPMOVZXBW(x, y)
		VPSUBW(s.same("lessWords", 32|32<<16), y, y)
		s.setScales(y)
		s.numbers(108, 108)
		s.center(y, 2)
	} else {
		d := s.half(108)
		s.eightBytes(low, d, s.scales, 0, 32)
		s.eightBytes(high, d, s.scales, 32, 32)
	}
}

func (s *splitter) q3k() {
	tops := YMM()
	VMOVDQU(s.at(0), tops)
	for k := range 2 {
		for j, y := range s.threes(tops, k) {
			if !s.kept() {
				s.minusByte(y, 4)
			}
			s.store(y, 128*k+32*j)
		}
	}
}

// threes returns 128 codes of 3 bits, whose highest ones are bits 4k to 4k+3 of tops. Two codes
// get theirs at once, from a table.
func (s *splitter) threes(tops reg.VecVirtual, k int) (codes [4]reg.VecVirtual) {
	all, four := YMM(), s.bitsTo(tops, 4*k, 0, 15)
	VMOVDQU(s.at(32+32*k), all)
	tables := s.topTables
	if tables[0] == nil {
		tables = s.generator.thirdBits()
	}
	for j, table := range tables { // codes j and j+2
		both := YMM()
		VPSHUFB(four, table, both)
		VPOR(s.bitsTo(all, 2*j, 0, 0x33), both, both)
		codes[j], codes[j+2] = s.bitsTo(both, 0, 0, 7), s.bitsTo(both, 4, 0, 7)
	}
	return codes
}

// thirdBits returns, of 4 bits, bits 0 and 2 at places 2 and 6, and likewise bits 1 and 3.
func (g *generator) thirdBits() (tables [2]reg.VecVirtual) {
	for j := range tables {
		tables[j] = g.keep(g.table(fmt.Sprint("thirds", j), 8, func(i int) Constant {
			w := 0
			for b := range 4 {
				n := i%4*4 + b
				w |= (n>>j&1<<2 | n>>(j+2)&1<<6) << (8 * b)
			}
			return U32(w)
		}))
	}
	return tables
}

func (s *splitter) scalesIQ4() {
	if s.sink != nil {
		s.oneSplits()
	} else {
		s.wholeSplits()
	}
}

func (s *splitter) iq4xs() {
	for k := range 4 {
		if s.sink != nil { // inputs are arranged as package host's arrangeHalves has them
			first, second := s.pair(8 + 32*k)
			s.looked(0, first)
			s.looked(0, second)
			s.store(first, 64*k)
			s.store(second, 64*k+32)
			continue
		}
		for j := range 2 {
			y := s.nibbles(8 + 32*k + 16*j)
			s.looked(0, y)
			s.store(y, 64*k+32*j)
		}
	}
}

// wholeSplits stores 8 scales of 6 bits, of which 2 are apart.
func (s *splitter) wholeSplits() {
	low, high := YMM(), YMM()
	VPBROADCASTD(s.at(4), low)
	VPSRLVD(s.generator.table("fours", 8, func(i int) Constant { return U32(uint32(4 * i)) }), low, low)
	VPAND(s.same("low", 15), low, low)
	VPBROADCASTW(s.at(2), high)
	VPSRLVD(s.generator.table("twos", 8, func(i int) Constant { return U32(uint32(2 * i)) }), high, high)
	VPAND(s.same("low", 3), high, high)
	VPSLLD(U8(4), high, high)
	VPOR(high, low, low)
	VPSUBD(s.same("less", 32), low, low)
	if !s.kept() {
		s.eight(low, s.half(0), s.scales, 0)
		return
	}
	VPSLLD(U8(16), low, high)
	VPBLENDW(U8(0xaa), high, low, low)
	VMOVDQU(low, s.part(wholeScales))
	s.numbers(0, -1)
}
