package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
	"github.com/mmcloughlin/avo/x86"
)

// AVX-512's functions for blocks of 32 have the codes of two blocks in a register, a pair of groups
// as arrangeShort leaves its inputs: the first halves of both, and the second. Codes are without a
// sign, so that one instruction multiplies them and adds up fours.

// wideShort is what a shortRow has of that.
type wideShort struct {
	second reg.Register   // which words of a register are of the second block
	counts reg.VecVirtual // how far they are shifted: high halves of bytes are the second halves
	mask   reg.VecVirtual // 15 in every byte
	values reg.VecVirtual // of codes that have a table
	// Of 5 bits: 16 in every byte, and where the highest bits of a pair's two blocks go.
	top     reg.VecVirtual
	spread  [2]reg.GPVirtual
	numbers picker // scales, and biases
	powers  widePowers
}

// wideConstants loads what stays in registers for all blocks.
func (s *shortRow) wideConstants() {
	keep := func(m Mem) reg.VecVirtual {
		z := ZMM()
		VMOVUPS(m, z)
		return z
	}
	w := &s.wide
	w.second = s.qwords(0xcc)
	w.counts, w.mask = keep(s.counts(0, 4)), keep(s.wideBytes(15))
	if s.block.Table != nil {
		w.values = ZMM()
		lanesTwice(s.valuesOf(s.block.Unsigned()), w.values)
	}
	if s.block.Power {
		w.numbers, w.powers = s.picker(4, 0), s.widePowers()
	} else {
		w.numbers = s.picker(2, s.block.Halves...)
	}
	if s.block.Bits == 5 {
		w.top = keep(s.wideBytes(16))
		for i := range w.spread {
			w.spread[i] = GP64()
			MOVQ(U64(0x0000ffff0000ffff<<(16*i)), w.spread[i])
		}
	}
}

// codesWide returns the codes of a pair of blocks.
func (s *shortRow) codesWide(p int) reg.VecVirtual {
	b, w, z := s.block, &s.wide, ZMM()
	VBROADCASTI64X2(s.place(p, b.Size-16), z)
	VBROADCASTI64X2(s.place(p+shortPairs, b.Size-16), w.second, z)
	VPSRLVQ(w.counts, z, z)
	VPANDD(w.mask, z, z)
	switch {
	case b.Bits == 5:
		VPADDB(w.top, z, s.topsWide(p), z)
	case b.Table != nil:
		VPSHUFB(z, w.values, z)
	}
	return z
}

// topsWide returns which codes of a pair of blocks have their highest bit.
func (s *shortRow) topsWide(p int) reg.Register {
	var spread [2]reg.GPVirtual
	for i := range spread {
		spread[i] = GP64()
		MOVL(s.place(p+i*shortPairs, s.block.Size-20), spread[i].As32())
		PDEPQ(s.wide.spread[i], spread[i], spread[i])
	}
	ORQ(spread[1], spread[0])
	tops := K()
	KMOVQ(spread[0], tops)
	return tops
}

// productsWide is products for codes of two blocks at a time.
func (s *shortRow) productsWide() func(total reg.VecVirtual) {
	var v [shortPairs]reg.VecVirtual
	for p := range v {
		q := s.codesWide(p)
		v[p] = wideZero()
		VPDPBUSD(Mem{Base: s.x, Disp: 64 * p}, q, v[p])
		s.step()
	}
	return func(total reg.VecVirtual) {
		sum := foldWide(foldWide(v[0], v[1], VPUNPCKLDQ, VPUNPCKHDQ), foldWide(v[2], v[3], VPUNPCKLDQ, VPUNPCKHDQ), VPUNPCKLQDQ, VPUNPCKHQDQ)
		VEXTRACTI64X4(U8(1), sum, total)
		VPADDD(sum.AsY(), total, total)
	}
}

// foldWide is folded for whole registers.
func foldWide(a, b reg.VecVirtual, low, high func(ops ...Op)) reg.VecVirtual {
	x, y := ZMM(), ZMM()
	low(b, a, x)
	high(b, a, y)
	VPADDD(y, x, x)
	return x
}

// wideZero returns a register of zeros.
func wideZero() reg.VecVirtual {
	z := ZMM()
	i, err := x86.VPXORD(z, z, z)
	instruction(i, err)
	return z
}
