package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
	"github.com/mmcloughlin/avo/x86"

	"github.com/moeflux/moeflux-actor/gpu/host/gen/base"
)

// numbersOf returns the scales of eight blocks, and the biases if there are any.
func (s *shortRow) numbersOf() (scale, bias reg.VecVirtual) {
	switch {
	case s.stored != nil:
		if scale = YMM(); s.block.Biased {
			bias = YMM()
			VMOVUPS(Mem{Base: s.stored, Disp: apartBiases}, bias)
		}
		VMOVUPS(Mem{Base: s.stored, Disp: apartScales}, scale)
		return scale, bias
	case s.wideCodes:
		return s.wideNumbers()
	case s.block.Power:
		return s.powers(), nil
	case s.block.Biased:
		return s.twoHalves()
	}
	y := YMM()
	VCVTPH2PS(s.halvesIn(), y)
	return y, nil
}

// halvesIn returns the fp16 numbers at the beginning of eight blocks. Integer registers, which have
// little to do, join four at a time.
func (s *shortRow) halvesIn() reg.VecVirtual {
	var fours [2]reg.GPVirtual
	for k := range fours {
		fours[k] = GP64()
		MOVWQZX(s.place(4*k+3, 0), fours[k])
		for i := 2; i >= 0; i-- {
			one := GP64()
			MOVWQZX(s.place(4*k+i, 0), one)
			SHLQ(U8(16), fours[k])
			ORQ(one, fours[k])
		}
	}
	x := XMM()
	VMOVQ(fours[0], x)
	VPINSRQ(U8(1), fours[1], x, x)
	return x
}

// twoHalves returns the scales and the biases of eight blocks.
func (s *shortRow) twoHalves() (scale, bias reg.VecVirtual) {
	order := s.table("scalesThenBiases", 4, func(i int) Constant {
		w := uint32(8*(i%2) + 2*(i/2))
		return U32(w | (w+1)<<8 | (w+4)<<16 | (w+5)<<24)
	})
	var fours [2]reg.VecVirtual
	for k := range fours {
		x := XMM()
		VMOVD(s.place(4*k, 0), x)
		for i := 1; i < 4; i++ {
			VPINSRD(U8(uint8(i)), s.place(4*k+i, 0), x, x)
		}
		VPSHUFB(order, x, x)
		fours[k] = x
	}
	x, scale, bias := XMM(), YMM(), YMM()
	VPUNPCKLQDQ(fours[1], fours[0], x)
	VCVTPH2PS(x, scale)
	VPUNPCKHQDQ(fours[1], fours[0], x)
	VCVTPH2PS(x, bias)
	return scale, bias
}

// powers returns 2^(e-128) of the exponents e of eight blocks, see power.
func (s *shortRow) powers() reg.VecVirtual {
	four := func(first int) reg.VecVirtual {
		y := YMM()
		x := y.AsX()
		for i := range 4 {
			e := GP64()
			MOVBQZX(s.place(first+i, 0), e)
			from := Mem{Base: s.values, Index: e, Scale: 4}
			if i == 0 {
				lower(x86.VMOVD(from, x))
			} else {
				lower(x86.VPINSRD(U8(uint8(i)), from, x, x))
			}
		}
		return y
	}
	low, high := four(0), four(4)
	VINSERTI128(U8(1), high.AsX(), low, low)
	return low
}

// powersOfTwo is a table of 2^(e-128), which is not a normal number for 0 and 1, and no number for
// 255.
func (g *generator) powersOfTwo() Mem {
	return g.table("powersOfTwo", 256, func(e int) Constant {
		switch e {
		case 0, 1:
			return U32(1 << (21 + e))
		case 255:
			return U32(base.NaNBits)
		}
		return U32(uint32(e-1) << 23)
	})
}
