package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/moeflux/moeflux-actor/gpu/host/gen/base"
)

// Offsets of package quant's Whole, and its size. A test of package host compares them.
const (
	wholeScales = 0
	wholeMinima = 32
	wholeD      = 64
	wholeDMin   = 68
	wholeSize   = 72
)

// whole is split with scales and minima as blocks of 256 have them.
func (g *generator) whole(f base.Func) {
	b := f.Coding.Block()
	s := &splitter{generator: g, block: b, codes: pointer("codes"), wholes: pointer("wholes"), src: pointer("src")}
	s.mask = g.keep(g.bytes(15))
	loop(f.Name+"_block", pointer("blocks"), func() {
		s.apart()
		ADDQ(U32(uint32(b.Size)), s.src)
		ADDQ(U32(uint32(b.Len)), s.codes)
		ADDQ(U32(wholeSize), s.wholes)
	})
	end()
}

// part returns a place in the block's Whole.
func (s *splitter) part(disp int) Mem { return Mem{Base: s.wholes, Disp: disp} }

// numbers stores the fp16 numbers at d, and at dmin if that is not negative, in the block's Whole.
func (s *splitter) numbers(d, dmin int) {
	if s.sink != nil {
		s.d = d
		return
	}
	VMOVSS(s.half(d).AsX(), s.part(wholeD))
	if dmin >= 0 {
		VMOVSS(s.half(dmin).AsX(), s.part(wholeDMin))
	}
}

// setMinima stores minima in the block's Whole.
func (s *splitter) setMinima(v reg.VecVirtual) {
	if s.minima = v; s.sink == nil {
		VMOVDQU(v, s.part(wholeMinima))
	}
}

// center stores minima that are scales times a power of two.
func (s *splitter) center(scales reg.VecVirtual, power uint8) {
	VPSLLW(U8(power), scales, scales)
	s.setMinima(scales)
}

// wholeSixes is sixes for a Whole: 16 bytes have d, dmin, and 12 bytes of scales and minima.
func (s *splitter) wholeSixes() {
	if s.sink != nil {
		s.oneSixes()
		return
	}
	words := func(name string, w ...uint32) Mem {
		return s.generator.table(name, 4, func(i int) Constant { return U32(w[i]) })
	}
	all, first, last, top := XMM(), XMM(), XMM(), XMM()
	VMOVDQU(s.at(0), all)
	VPSRLDQ(U8(4), all, first)   // 4 bytes of scales, 4 of minima, with the top bits of others
	VPSHUFD(U8(0xff), all, last) // the lower bits of these others, twice
	VPSRLVD(words("sixLow", 0, 4, 0, 4), last, last)
	VPAND(words("sixNibble", 0x0f0f0f0f, 0x0f0f0f0f, 0, 0), last, last)
	VPSRLD(U8(2), first, top)
	VPAND(words("sixTop", 0x30303030, 0x30303030, 0, 0), top, top)
	VPOR(top, last, last)
	VPAND(words("sixAll", 0x3f3f3f3f, 0x3f3f3f3f, 0, 0), first, first)
	VPUNPCKLDQ(last, first, first) // 8 scales, 8 minima
	twice := func(unpack func(ops ...Op)) reg.VecVirtual {
		x, y := XMM(), YMM()
		unpack(first, first, x)
		VPMOVZXBW(x, y)
		return y
	}
	VMOVDQU(twice(VPUNPCKLBW), s.part(wholeScales))
	s.setMinima(twice(VPUNPCKHBW))
	s.numbers(0, 2)
}
