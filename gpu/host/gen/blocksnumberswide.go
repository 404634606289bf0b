package main

import (
	"fmt"
	"slices"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/moeflux/moeflux-actor/gpu/host/gen/base"
)

// picker is how AVX-512's functions pick numbers of eight blocks of 32: one instruction picks words
// of two registers, each of which begins with a block, and perhaps another one those of a third,
// which is half as long.
type picker struct {
	at    []int // the bytes of a block at which they begin
	bytes int   // of a word
	each  int   // blocks that have all their numbers in a register
	// orders are those of the words of the first two registers, and of what they gave and a third.
	orders [2]reg.VecVirtual
}

// picker loads what stays in registers for all blocks.
func (s *shortRow) picker(bytes int, at ...int) picker {
	p := picker{at: at, bytes: bytes, each: (64-slices.Max(at)-bytes)/s.block.Size + 1}
	within := func(block, at int) int { return (block*s.block.Size + at) / bytes }
	p.orders[0] = s.order(&p, "pairs", 64/bytes, func(_, block, at int) int {
		return block/p.each&1*64/bytes + within(block%p.each, at)
	})
	if third := 2 * p.each; third < 8 {
		p.orders[1] = s.order(&p, "third", 32/bytes, func(i, block, at int) int {
			if block < third {
				return i
			}
			return 32/bytes + within(block-third, at)
		})
	}
	return p
}

// order returns a register with as many words: where number i is, which begins at some byte of a
// block.
func (s *shortRow) order(p *picker, name string, words int, of func(i, block, at int) int) reg.VecVirtual {
	index := func(i int) uint32 {
		if i >= 8*len(p.at) {
			return 0
		}
		return uint32(of(i, i%8, p.at[i/8]))
	}
	m := s.table(fmt.Sprintf("%s%d", name, s.block.Size), words*p.bytes/4, func(i int) Constant {
		if p.bytes == 4 {
			return U32(index(i))
		}
		return U32(index(2*i) | index(2*i+1)<<16)
	})
	z := ZMM()
	if words*p.bytes == 32 {
		VMOVDQU64(m, z.AsY())
	} else {
		VMOVUPS(m, z)
	}
	return z
}

// pick returns the numbers of the blocks that are taken now.
func (s *shortRow) pick(p *picker) reg.VecVirtual {
	z, pick := ZMM(), VPERMT2W
	if p.bytes == 4 {
		pick = VPERMT2D
	}
	VMOVUPS(s.place(0, 0), z)
	pick(s.place(p.each, 0), p.orders[0], z)
	if p.orders[1] != nil {
		pick(s.place(2*p.each, 0), p.orders[1].AsY(), z.AsY())
	}
	return z
}

// wideNumbers is numbersOf for blocks as they are stored.
func (s *shortRow) wideNumbers() (scale, bias reg.VecVirtual) {
	z := s.pick(&s.wide.numbers)
	switch {
	case s.block.Power:
		return s.powersOf(z.AsY()), nil
	case s.block.Biased:
		both, bias := ZMM(), YMM()
		VCVTPH2PS(z.AsY(), both)
		VEXTRACTF64X4(U8(1), both, bias)
		return both.AsY().(reg.VecVirtual), bias
	}
	scale = YMM()
	VCVTPH2PS(z.AsX(), scale)
	return scale, nil
}

// widePowers is what powersOf keeps in registers: how far words are shifted, 255, the least number,
// 1/2, and no number.
type widePowers struct{ shifts, mask, least, half, nan reg.VecVirtual }

func (s *shortRow) widePowers() widePowers {
	return widePowers{
		shifts: s.keep(s.table("shifts", 8, func(i int) Constant { return U32(uint32(8 * (i * s.block.Size % 4))) })),
		mask:   s.keep(s.same("mask", 255)), least: s.keep(s.same("least", 1<<22)),
		half: s.keep(s.same("float", 0x3f000000)), nan: s.keep(s.same("nan", base.NaNBits)),
	}
}

// powersOf returns 2^(e-128) of the exponents e of eight blocks, see power. words have them.
func (s *shortRow) powersOf(words reg.Register) reg.VecVirtual {
	w, e, scale, none := &s.wide.powers, YMM(), YMM(), K()
	VPSRLVD(w.shifts, words, e)
	VPANDD(w.mask, e, e)
	VPCMPEQD(w.mask, e, none)
	VPSLLD(U8(23), e, scale)
	VPMAXUD(w.least, scale, scale)
	VMULPS(w.half, scale, scale)
	VMOVDQA32(w.nan, none, scale)
	return scale
}
