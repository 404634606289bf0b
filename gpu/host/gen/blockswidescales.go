package main

import (
	"log"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
	"github.com/mmcloughlin/avo/x86"
)

// Scales and minima of blocks of 256 for AVX-512's functions: vectors take them apart, since they
// can shift words and 32-bit integers by counts of their own. Scales are four times in a register
// if they are bytes, and twice if they are words.

// wideScales2 is scales2.
func (s *splitter) wideScales2() {
	minima := YMM()
	s.wide.scales = ZMM()
	VBROADCASTI64X2(s.at(0), s.wide.scales)
	VPANDD(s.constant(s.wideBytes(15)), s.wide.scales, s.wide.scales)
	VPMOVZXBW(s.at(0), minima)
	VPSRLW(U8(4), minima, minima)
	s.setMinima(minima)
	s.numbers(80, 82)
}

// wideScales3 is scales3: words of which each is shifted as it must.
func (s *splitter) wideScales3() {
	const at, bytes = 94, 2 // 16 bytes that end with the block's scales, of which they are from bytes on
	all, y, tops := YMM(), YMM(), YMM()
	VBROADCASTI64X2(s.at(at), all)
	VPSHUFB(s.constant(s.eightWords("threeLow", func(i int) uint32 { return uint32(bytes+i%8) | noByte<<8 })), all, y)
	VPSRLVW(s.constant(s.eightWords("threeLowRight", func(i int) uint32 { return uint32(i / 8 * 4) })), y, y)
	VPANDD(s.constant(s.eightWords("threeLowMask", func(int) uint32 { return 15 })), y, y)
	VPSHUFB(s.constant(s.eightWords("threeTop", func(i int) uint32 { return uint32(bytes+8+i%4)<<8 | noByte })), all, tops)
	VPSRLVW(s.constant(s.eightWords("threeTopRight", func(i int) uint32 { return uint32(4 + i/4*2) })), tops, tops)
	VPTERNLOGD(U8(aOrBAndC), s.constant(s.eightWords("threeTopMask", func(int) uint32 { return 0x30 })), tops, y)
	VPSUBW(s.same("lessWords", 32|32<<16), y, y)
	s.wideWords(y)
	s.numbers(108, 108)
	s.center(y, 2)
}

// eightWords returns 16 words in memory.
func (s *splitter) eightWords(name string, word func(i int) uint32) Mem {
	return s.generator.table(name, 8, func(i int) Constant { return U32(word(2*i) | word(2*i+1)<<16) })
}

// wideScales6 is scales6.
func (s *splitter) wideScales6() {
	y := YMM()
	VPMOVSXBW(s.at(192), y)
	s.wideWords(y)
	s.numbers(208, 208)
	s.center(y, 5)
}

// wideWords sets the scales to the words of v.
func (s *splitter) wideWords(v reg.VecVirtual) {
	order := s.constant(s.evenThenOddTwice())
	s.wide.scales = ZMM()
	i, err := x86.VPERMW(v.AsZ(), order, s.wide.scales)
	instruction(i, err, v, order)
}

// evenThenOddTwice is the order of words 0, 2, 4 to 14, 1, 3 to 15, and again.
func (s *splitter) evenThenOddTwice() Mem {
	return s.generator.table("evenThenOddTwice", 16, func(i int) Constant {
		w := uint32(i/4%2 + i%4*4)
		return U32(w | (w+2)<<16)
	})
}

// wideSixes is sixes.
func (s *splitter) wideSixes() {
	four := func(name string, w [4]uint32) Op {
		return s.constant(s.generator.table(name, 16, func(i int) Constant { return U32(w[i%4]) }))
	}
	all, tops := ZMM(), ZMM()
	s.wide.scales = ZMM()
	VBROADCASTI64X2(s.at(4), all)
	VPSHUFD(U8(0b10_10_01_00), all, s.wide.scales)
	VPSRLVD(four("sixRight", [4]uint32{0, 0, 0, 4}), s.wide.scales, s.wide.scales)
	VPANDD(four("sixMask", [4]uint32{0x3f3f3f3f, 0x3f3f3f3f, 0x0f0f0f0f, 0x0f0f0f0f}), s.wide.scales, s.wide.scales)
	VPSHUFD(U8(0b01_00_01_00), all, tops)
	VPSRLD(U8(2), tops, tops)
	VPTERNLOGD(U8(aOrBAndC), four("sixTops", [4]uint32{0, 0, 0x30303030, 0x30303030}), tops, s.wide.scales)
	minima := YMM()
	VPSHUFB(s.sixMinima(), s.wide.scales.AsY(), minima)
	s.setMinima(minima)
	s.numbers(0, 2)
}

// wideSplits is oneSplits, for scales as 32-bit integers.
func (s *splitter) wideSplits() {
	low := s.splitScales()
	s.wide.scales = ZMM()
	i, err := x86.VPMOVSXWD(low, s.wide.scales.AsY())
	i.Outputs = []Op{s.wide.scales}
	instruction(i, err, low)
	s.numbers(0, -1)
}

// instruction adds an instruction that takes no more than inputs. avo would want all of a register
// whose lower part has what counts.
func instruction(i *ir.Instruction, err error, inputs ...Op) {
	if err != nil {
		log.Fatalf("gen: %v", err)
	}
	i.Inputs = inputs
	Instruction(i)
}
