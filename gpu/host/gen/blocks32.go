package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func (s *splitter) q8x0() {
	s.number(0, s.scales)
	y := YMM()
	VMOVDQU(s.at(2), y)
	s.store(y, 0)
}

func (s *splitter) q4x0() {
	s.number(0, s.scales)
	y := s.nibbles(2)
	s.minusByte(y, 8)
	s.store(y, 0)
}

func (s *splitter) q4x1() {
	s.number(0, s.scales)
	s.number(2, s.biases)
	s.store(s.nibbles(4), 0)
}

// fives returns 32 codes of 5 bits: 32 highest bits, then 16 bytes as nibbles has them.
func (s *splitter) fives(disp int) reg.VecVirtual {
	y, high := s.nibbles(disp+4), YMM()
	VPBROADCASTD(s.at(disp), high)
	VPSHUFB(s.generator.table("spread", 8, func(i int) Constant { return U32(uint32(i/2) * 0x01010101) }), high, high)
	bits := s.keep(s.generator.table("bitOf", 8, func(i int) Constant { return U32([]uint32{0x08040201, 0x80402010}[i%2]) }))
	VPAND(bits, high, high)
	VPCMPEQB(bits, high, high)
	VPAND(s.bytes(16), high, high)
	VPOR(high, y, y)
	return y
}

func (s *splitter) q5x0() {
	s.number(0, s.scales)
	y := s.fives(2)
	s.minusByte(y, 16)
	s.store(y, 0)
}

func (s *splitter) q5x1() {
	s.number(0, s.scales)
	s.number(2, s.biases)
	s.store(s.fives(4), 0)
}

func (s *splitter) iq4nl() {
	s.number(0, s.scales)
	y := s.nibbles(2)
	s.looked("iq4", iq4, y)
	s.store(y, 0)
}

// mxfp4 makes 2^(e-128) of the exponent e, which is not a normal number for 0 and 1, and no number
// for 255.
func (s *splitter) mxfp4() {
	e, scale, odd := GP32(), GP32(), GP32()
	MOVBLZX(s.at(0), e)
	MOVL(e, scale)
	SHLL(U8(23), scale)
	MOVL(U32(1<<22), odd)
	CMPL(e, U32(0))
	CMOVLEQ(odd, scale)
	MOVL(U32(0x7fc00000), odd)
	CMPL(e, U32(255))
	CMOVLEQ(odd, scale)
	x := XMM()
	VMOVD(scale, x)
	VMULSS(s.same("float", 0x3f000000), x, x)
	VMOVSS(x, Mem{Base: s.scales})
	y := s.nibbles(1)
	s.looked("halves", halfs, y)
	s.store(y, 0)
}
