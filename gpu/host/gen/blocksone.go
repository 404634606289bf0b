package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/moeflux/moeflux-actor/gpu/host/gen/base"
)

// Offsets of package host's rowArgs. A test there compares them with the struct.
const (
	rowW      = 0
	rowRows   = 8
	rowBlocks = 16
	rowX      = 24
	rowOf     = 32
	rowSums   = 40
	rowY      = 48
	rowWhole  = 56
	rowBack   = 64
)

// oneWhole is wholeDot for one row of X, where codes go from a block into products.
func (g *generator) oneWhole(f base.Func) {
	b := f.Coding.Block()
	a := pointer("a")
	field := func(disp int) reg.GPVirtual {
		r := GP64()
		MOVQ(Mem{Base: a, Disp: disp}, r)
		return r
	}
	s := &splitter{generator: g, wholes: field(rowWhole), src: field(rowW)}
	s.mask = g.keep(g.bytes(15))
	y := field(rowY)
	var order reg.VecVirtual
	if b.Group == 16 {
		order = g.keep(g.wordsInTurn())
	}
	loop(f.Name+"_row", field(rowRows), func() {
		d := &blockDot{generator: g, biased: f.Biased, scales: s.wholes, x: field(rowX), of: field(rowOf), sums: field(rowSums)}
		acc := g.zero()
		loop(f.Name+"_block", field(rowBlocks), func() {
			s.fetch(b.Size)
			var totals [2]reg.VecVirtual
			n := 0
			s.sink = func(q reg.VecVirtual, disp int) {
				d.scaled(&totals[n%2], d.times(q, disp), disp/32, order)
				n++
			}
			splits[b.Name](s)
			d.addWhole(acc, totals, s)
			ADDQ(U32(uint32(b.Size)), s.src)
			ADDQ(U32(256), d.x)
			ADDQ(U32(8), d.of)
		})
		g.storeLanes(acc, y)
	})
	end()
}

// storeLanes stores the sum of the lanes of v at y, which it moves on to the next number.
func (g *generator) storeLanes(v reg.VecVirtual, y reg.Register) {
	half, low := XMM(), v.AsX().(reg.VecVirtual)
	VEXTRACTF128(U8(1), v.AsY(), half)
	VADDPS(half, low, low)
	VMOVHLPS(low, low, half)
	VADDPS(half, low, low)
	VMOVSHDUP(low, half)
	VADDSS(half, low, low)
	VMOVSS(low, Mem{Base: y})
	ADDQ(U32(4), y)
}

// fetch prefetches as many bytes of blocks as are taken now, aheadBytes later.
func (s *splitter) fetch(bytes int) {
	for at := 0; at < bytes; at += 64 {
		PREFETCHT0(s.at(aheadBytes + at))
	}
}
