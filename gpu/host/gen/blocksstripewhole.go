package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
	"github.com/mmcloughlin/avo/x86"

	"github.com/moeflux/moeflux-actor/gpu/host/gen/base"
)

// A stripe of blocks of 256 has the transposed quant.Wholes of each block: their scales, minima, D
// and DMin, in registers of so many bytes.
const (
	stripeScales = 0
	stripeMinima = 64 * wholeMinima / 4
	stripeD      = 64 * wholeD / 4
	stripeDMin   = 64 * wholeDMin / 4
	stripeWholes = 64 * wholeSize / 4
)

// stripeWhole multiplies a stripe of blocks of 256 by rows of X. Sums of products of a group are
// multiplied by its scales and added up. Codes of groups of 16, and those of formats with minima
// that have a number of their own, have no sign. To others it adds 128, and subtracts scales times
// that.
func (g *generator) stripeWhole(f base.Func) {
	var bits reg.VecVirtual
	if f.Group == 32 && !f.Biased {
		bits = g.bytes80()
	}
	g.stripeBlocks(f, func(s *stripe, totals []reg.VecVirtual) {
		words := f.Group / 4
		for first := 0; first < 8; first += words {
			sums, scales := s.zeros(), ZMM()
			s.multiply(sums, first, words, bits)
			if from := (Mem{Base: s.numbers, Disp: stripeScales}); f.Group == 16 && first == 0 { // the lower word of each
				VPSLLD(U8(16), from, scales)
				VPSRAD(U8(16), scales, scales)
			} else {
				VPSRAD(U8(16), from, scales)
			}
			for r, sum := range sums {
				VPMULLD(scales, sum, sum)
				VPADDD(sum, totals[r], totals[r])
			}
		}
	}, func(s *stripe, k int) reg.VecVirtual {
		if bits == nil {
			return loaded(s.numbers, stripeMinima+64*k)
		}
		z := ZMM()
		VPSLLW(U8(7), Mem{Base: s.numbers, Disp: stripeScales + 64*k}, z)
		return z
	})
}

// stripeBytes is stripeWhole for codes that scaleCodes has multiplied by their scales. Those that
// had a sign then are 127 more.
func (g *generator) stripeBytes(f base.Func) {
	var more reg.VecVirtual
	if !f.Biased {
		more = ZMM()
		VMOVUPS(g.words127(), more)
	}
	g.stripeBlocks(f, func(s *stripe, totals []reg.VecVirtual) {
		if s.rows >= stripeRows {
			s.multiply(totals, 0, 8, nil)
			return
		}
		sums := s.zeros() // since each product waits for the one before
		s.multiply(sums, 0, 8, nil)
		for r, sum := range sums {
			VPADDD(sum, totals[r], totals[r])
		}
	}, func(s *stripe, k int) reg.VecVirtual {
		if more != nil {
			return more
		}
		return loaded(s.numbers, stripeMinima+64*k)
	})
}

// words127 is 127 in 32 words.
func (g *generator) words127() Mem {
	return g.table("wideWords127", 16, func(int) Constant { return U32(127 * 0x00010001) })
}

// stripeBlocks multiplies a stripe, 32 inputs of each block at a time. minima returns those of two
// groups of 16.
func (g *generator) stripeBlocks(f base.Func, add32 func(s *stripe, totals []reg.VecVirtual), minima func(s *stripe, k int) reg.VecVirtual) {
	a := pointer("a")
	field := fieldsOf(a)
	s := &stripe{generator: g, rows: f.Rows, of: stripeOfWhole, inputs: 256, w: field(stripeW), numbers: field(stripeNumbers), x: field(stripeX), ofs: field(stripeOf)}
	acc, n := s.zeros(), GP64()
	loop(f.Name+"_block", field(stripeSegs), func() {
		totals := s.zeros()
		MOVQ(U32(8), n)
		loop(f.Name+"_inputs", n, func() {
			add32(s, totals)
			move(s.w, 512)
			move(s.x, 32)
			move(s.numbers, 64)
		})
		SUBQ(U32(8*64), s.numbers)
		least := s.zeros()
		for k := range 8 {
			m := minima(s, k)
			for r, v := range least {
				VPDPWSSD_BCST(s.ofRow(r, 4+4*k), m, v)
			}
		}
		s.addBlock(f.Biased, acc, totals, least)
		move(s.numbers, stripeWholes)
		move(s.x, (stripeRows-1)*s.inputs)
		move(s.ofs, stripeRows*s.of)
	})
	for r, sum := range acc {
		y := GP64()
		MOVQ(Mem{Base: a, Disp: stripeY + 8*r}, y)
		VMOVUPS(sum, Mem{Base: y})
	}
	end()
}

// addBlock multiplies sums of a block by its numbers, and adds them.
func (s *stripe) addBlock(biased bool, acc, totals, least []reg.VecVirtual) {
	d := loaded(s.numbers, stripeD)
	var dmin reg.VecVirtual
	if biased {
		dmin = loaded(s.numbers, stripeDMin)
	}
	times := func(r int, number, v reg.VecVirtual) {
		by := ZMM()
		VMULPS_BCST(s.ofRow(r, 0), number, by)
		VCVTDQ2PS(v, v)
		VMULPS(by, v, v)
	}
	for r, total := range totals {
		if !biased {
			VPSUBD(least[r], total, total)
		}
		times(r, d, total)
		if biased {
			times(r, dmin, least[r])
			VSUBPS(least[r], total, total)
		}
		VADDPS(total, acc[r], acc[r])
	}
}

// scaleCodes multiplies codes of blocks of 256 by their scales: a byte has each product, and 127
// more if it has a sign.
func (g *generator) scaleCodes(f base.Func) {
	codes, wholes := pointer("codes"), pointer("wholes")
	keep := func(m Mem) reg.VecVirtual {
		z := ZMM()
		VMOVUPS(m, z)
		return z
	}
	low := keep(g.table("wideLowBytes", 16, func(int) Constant { return U32(0x00ff00ff) }))
	high := keep(g.table("wideHighBytes", 16, func(int) Constant { return U32(0xff00ff00) }))
	var orders [4]reg.VecVirtual // of the scales of four groups, eight words each
	for k := range orders {
		orders[k] = keep(g.table(fmt.Sprint("scalesOfCodes", k), 16, func(i int) Constant { return U32(uint32(4*k+i/4) * 0x00010001) }))
	}
	loop(f.Name+"_block", pointer("blocks"), func() {
		scales, more := YMM(), YMM()
		VMOVDQU(Mem{Base: wholes, Disp: wholeScales}, scales)
		if !f.Biased { // 127 - minima, in both bytes of a word
			odd := YMM()
			VMOVDQU(g.words127(), more)
			VPSUBW(Mem{Base: wholes, Disp: wholeMinima}, more, more)
			VPSLLW(U8(8), more, odd)
			i, err := x86.VPTERNLOGD(U8(aOrBAndC), low.AsY(), more, odd)
			instruction(i, err, low, more, odd)
			more = odd
		}
		spread := func(words, order reg.VecVirtual) reg.VecVirtual {
			z := ZMM()
			i, err := x86.VPERMW(words.AsZ(), order, z)
			instruction(i, err, words, order)
			return z
		}
		for k, order := range orders {
			at, even, odd, scale := Mem{Base: codes, Disp: 64 * k}, ZMM(), ZMM(), spread(scales, order)
			VPANDD(at, low, even)
			VPANDD(at, high, odd)
			VPMULLW(scale, even, even)
			VPMULLW(scale, odd, odd)
			VPTERNLOGD(U8(aOrBAndC), low, even, odd)
			if !f.Biased {
				VPADDB(spread(more, order), odd, odd)
			}
			VMOVUPS(odd, at)
		}
		ADDQ(U32(256), codes)
		ADDQ(U32(wholeSize), wholes)
	})
	end()
}
