package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// short takes a block of 32 apart, whose row in package quant says how it is stored.
func (s *splitter) short() {
	b := s.block
	if b.Power {
		s.power()
	} else {
		s.number(b.Halves[0], s.scales)
	}
	if b.Biased {
		s.number(b.Halves[1], s.biases)
	}
	s.store(s.shortCodes(), 0)
}

// shortCodes returns the codes of a block of 32, with their sign.
func (s *splitter) shortCodes() reg.VecVirtual {
	b := s.block
	var y reg.VecVirtual
	switch b.Bits {
	case 8:
		y = YMM()
		VMOVDQU(s.at(b.Size-32), y)
	case 5:
		y = s.fives(b.Size - 20)
	default:
		y = s.nibbles(b.Size - 16)
	}
	switch {
	case b.Table != nil:
		s.looked(0, y)
	case b.Least != 0:
		s.minusByte(y, byte(b.Least))
	}
	return y
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

// power stores 2^(e-128) of the exponent e as the scale: not a normal number for 0 and 1, and no
// number for 255.
func (s *splitter) power() {
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
}
