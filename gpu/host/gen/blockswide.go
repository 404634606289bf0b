package main

import (
	"fmt"
	"log"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
	"github.com/mmcloughlin/avo/x86"

	"github.com/moeflux/moeflux-actor/gpu/host/gen/base"
)

// Codes of blocks of 256 go from a block into AVX-512's products 64 at a time, those of two groups
// of 32: a shift has a count for each group, one instruction joins bits, and one multiplies by
// scales and adds up. Codes of IQ4_XS stand for values with a sign; they get 127 more, and the sums
// begin at what that is too much.

// wideSplitter is what a splitter has of that.
type wideSplitter struct {
	kept   map[string]reg.VecVirtual // constants in registers, by their names in memory
	second reg.Register              // of a table's format: the half for the second group
	values reg.VecVirtual            // and what codes stand for, see Unsigned
	scales reg.VecVirtual            // see blockswidescales.go
	// emit takes 64 codes of the block, from number disp on.
	emit func(q reg.VecVirtual, disp int)
}

// wideConstants loads what stays in registers for all blocks.
func (s *splitter) wideConstants() {
	s.wide.kept = make(map[string]reg.VecVirtual)
	keep := func(all ...Mem) {
		for _, m := range all {
			z := ZMM()
			VMOVUPS(m, z)
			s.wide.kept[m.Symbol.Name] = z
		}
	}
	if s.block.Table == nil {
		for k := range 4 {
			keep(s.wideScalesAt(64 * k))
		}
	}
	switch s.block.Name {
	case "Q2_K":
		keep(s.wideBytes(15), s.wideBytes(3), s.counts(0, 2), s.counts(4, 6))
	case "Q3_K":
		keep(s.evenThenOddTwice(), s.wideBytes(3), s.wideBytes(4), s.counts(0, 2), s.counts(4, 6))
		keep(s.counts(-2, -1), s.counts(0, 1), s.counts(2, 3), s.counts(4, 5))
	case "Q4_K":
		keep(s.wideBytes(15), s.counts(0, 4))
	case "Q5_K":
		keep(s.wideBytes(15), s.wideBytes(16), s.counts(0, 4))
		keep(s.counts(-4, -3), s.counts(-2, -1), s.counts(0, 1), s.counts(2, 3))
	case "Q6_K":
		keep(s.evenThenOddTwice(), s.wideBytes(15), s.wideBytes(0x30), s.counts(4, 4), s.counts(-4, -2), s.counts(0, 2))
	case "IQ4_XS":
		keep(s.wideBytes(15), s.laneCounts())
		for k := range 4 {
			keep(s.scalesOfPair(k))
		}
		s.wide.second = s.qwords(0xf0)
		s.wide.values = ZMM()
		lanesTwice(s.valuesOf(s.block.Unsigned()), s.wide.values)
	}
}

// qwords returns a mask of 64-bit words.
func (g *generator) qwords(mask uint32) reg.Register {
	r, k := GP32(), K()
	MOVL(U32(mask), r)
	KMOVB(r, k)
	return k
}

// constant is m, or the register that has it.
func (s *splitter) constant(m Mem) Op {
	if z, ok := s.wide.kept[m.Symbol.Name]; ok {
		return z
	}
	return m
}

// aOrBAndC is what VPTERNLOGD makes of its last operand, a, the one before, and the first.
const aOrBAndC = 0xf8

// wideBytes returns a byte 64 times.
func (s *splitter) wideBytes(b byte) Mem {
	return s.generator.table(fmt.Sprintf("wideBytes%x", b), 16, func(int) Constant { return U32(0x01010101 * uint32(b)) })
}

// counts returns how far 64-bit words are shifted: those of the first half and of the second.
func (s *splitter) counts(first, second int) Mem {
	return s.generator.table(fmt.Sprintf("counts%d_%d", first&63, second&63), 16, func(i int) Constant {
		if i%2 == 1 { // the upper half of a word
			return U32(0)
		}
		return U32([]uint32{uint32(first & 63), uint32(second & 63)}[i/8])
	})
}

// twice returns 32 bytes of the block in both halves.
func (s *splitter) twice(disp int) reg.VecVirtual {
	z := ZMM()
	VBROADCASTI64X4(s.at(disp), z)
	return z
}

// right returns v, whose halves are shifted right, with a mask for each byte.
func (s *splitter) right(v reg.VecVirtual, first, second int, mask byte) reg.VecVirtual {
	z := ZMM()
	VPSRLVQ(s.constant(s.counts(first, second)), v, z)
	VPANDD(s.constant(s.wideBytes(mask)), z, z)
	return z
}

// join adds bits of v to q: those that are at the places of mask once the halves of v are shifted
// right, or left by negative numbers.
func (s *splitter) join(q, v reg.VecVirtual, first, second int, mask byte) {
	z := ZMM()
	VPRORVQ(s.constant(s.counts(first, second)), v, z)
	VPTERNLOGD(U8(aOrBAndC), s.constant(s.wideBytes(mask)), z, q)
}

func (s *splitter) wide4() {
	for k := range 4 {
		s.wide.emit(s.right(s.twice(16+32*k), 0, 4, 15), 64*k)
	}
}

func (s *splitter) wide5() {
	fifths := s.twice(16)
	for k := range 4 {
		q := s.right(s.twice(48+32*k), 0, 4, 15)
		s.join(q, fifths, 2*k-4, 2*k+1-4, 16)
		s.wide.emit(q, 64*k)
	}
}

func (s *splitter) wide6() {
	for k := range 2 {
		low, tops := ZMM(), s.twice(128+32*k)
		VMOVUPS(s.at(64*k), low)
		high := s.right(low, 4, 4, 15)
		VPANDD(s.constant(s.wideBytes(15)), low, low)
		s.join(low, tops, -4, -2, 0x30)
		s.join(high, tops, 0, 2, 0x30)
		s.wide.emit(low, 128*k)
		s.wide.emit(high, 128*k+64)
	}
}

func (s *splitter) wide2() {
	for k := range 2 {
		codes := s.twice(16 + 32*k)
		for j := range 2 {
			s.wide.emit(s.right(codes, 4*j, 4*j+2, 3), 128*k+64*j)
		}
	}
}

func (s *splitter) wide3() {
	tops := s.twice(0)
	for k := range 2 {
		codes := s.twice(32 + 32*k)
		for j := range 2 {
			q := s.right(codes, 4*j, 4*j+2, 3)
			s.join(q, tops, 4*k+2*j-2, 4*k+2*j+1-2, 4)
			s.wide.emit(q, 128*k+64*j)
		}
	}
}

// wideIQ4 takes two groups at once, of which each is 16 bytes.
func (s *splitter) wideIQ4() {
	for k := range 4 {
		q := ZMM()
		VBROADCASTI64X2(s.at(8+32*k), q)
		VBROADCASTI64X2(s.at(24+32*k), s.wide.second, q)
		VPSRLVQ(s.constant(s.laneCounts()), q, q)
		VPANDD(s.constant(s.wideBytes(15)), q, q)
		VPSHUFB(q, s.wide.values, q)
		s.wide.emit(q, 64*k)
	}
}

// laneCounts returns how far 64-bit words are shifted: those of every other 16 bytes.
func (s *splitter) laneCounts() Mem {
	return s.generator.table("laneCounts", 16, func(i int) Constant { return U32(uint32(i / 4 % 2 * 4 * (1 - i%2))) })
}

// scalesOfPair is the order of the scales of two groups, which are 32-bit integers.
func (s *splitter) scalesOfPair(k int) Mem {
	return s.generator.table(fmt.Sprint("scalesOfPair", k), 16, func(i int) Constant { return U32(uint32(2*k + i/8)) })
}

// foursSize is how many bytes fours makes of a block of inputs.
const foursSize = 256

// fours makes of each four inputs their sum times less: what the products of codes without a sign
// are more than they should be, negated.
func (g *generator) fours(f base.Func) {
	dst, x, less, ones := pointer("dst"), pointer("x"), ZMM(), ZMM()
	VPBROADCASTD(Load(Param("less"), GP64()).(reg.GPVirtual).As32(), less)
	VMOVUPS(g.table("wideBytes1", 16, func(int) Constant { return U32(0x01010101) }), ones)
	loop(f.Name+"_fours", pointer("fours"), func() {
		sum := wideZero()
		VPDPBUSD(Mem{Base: x}, ones, sum)
		VPMULLD(less, sum, sum)
		VMOVUPS(sum, Mem{Base: dst})
		ADDQ(U32(64), dst)
		ADDQ(U32(64), x)
	})
	end()
}

// multiplyWide is multiply for 64 codes at a time.
func (s *splitter) multiplyWide(d *blockDot) reg.VecVirtual {
	s.sink = func(reg.VecVirtual, int) { log.Fatal("gen: codes are taken 64 at a time") }
	split := s.split()
	split.wideScales(s)
	add := s.addWords
	if s.block.Table != nil {
		add = s.addFours
	}
	var total reg.VecVirtual
	s.wide.emit = func(q reg.VecVirtual, disp int) { total = add(total, d, q, disp) }
	split.wideCodes(s)
	return total
}

// addWords adds the products of 64 codes to the total: those of two are words, whose products with
// scales are added up.
func (s *splitter) addWords(total reg.VecVirtual, d *blockDot, q reg.VecVirtual, disp int) reg.VecVirtual {
	p, scale := ZMM(), ZMM()
	VPMADDUBSW(d.input(disp), q, p)
	VPSHUFB(s.constant(s.wideScalesAt(disp)), s.wide.scales, scale)
	if total == nil {
		total = ZMM()
		VPMADDWD(scale, p, total)
	} else {
		VPDPWSSD(scale, p, total)
	}
	return total
}

// addFours is addWords for codes whose products would not fit in words.
func (s *splitter) addFours(total reg.VecVirtual, d *blockDot, q reg.VecVirtual, disp int) reg.VecVirtual {
	p, scale := ZMM(), ZMM()
	VMOVDQU32(Mem{Base: d.sums, Disp: d.atSums + disp}, p)
	VPDPBUSD(d.input(disp), q, p)
	VPERMD(s.wide.scales, s.constant(s.scalesOfPair(disp/64)), scale)
	VPMULLD(scale, p, p)
	if total != nil {
		VPADDD(total, p, p)
	}
	return p
}

// wideScalesAt is scalesAt for 64 codes.
func (s *splitter) wideScalesAt(disp int) Mem {
	first, second := s.scalesOf(disp), s.scalesOf(disp+32)
	return s.generator.table("wide"+first.name+"_"+second.name, 16, func(i int) Constant {
		if i < 8 {
			return first.at(i)
		}
		return second.at(i - 8)
	})
}

// lanesTwice sets z to y in both halves.
func lanesTwice(y, z reg.VecVirtual) {
	i, err := x86.VSHUFI64X2(U8(0x44), y.AsZ(), y.AsZ(), z)
	instruction(i, err, y)
}
