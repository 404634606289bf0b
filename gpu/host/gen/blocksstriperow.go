package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/moeflux/moeflux-actor/gpu/host/gen/base"
)

// Offsets of package host's stripeRow.
const (
	rowInputs   = 0
	rowNumbers  = 8
	rowSixteens = 16
	rowDst      = 24
	rowDstOf    = 32
	rowLaneX    = 40
	rowLaneOf   = 48
	rowCount    = 56
)

// arrangeWhole arranges a row of X for blocks of 256.
func (g *generator) arrangeWhole(base.Func) {
	field := fieldsOf(pointer("a"))
	x, numbers, sums, dst, of := field(rowInputs), field(rowNumbers), field(rowSixteens), field(rowDst), field(rowDstOf)
	loop("arrangeWhole", field(rowCount), func() {
		for k := range 4 {
			VMOVUPS(loaded(x, 64*k), Mem{Base: dst, Disp: 64 * k})
		}
		s, y := GP32(), YMM()
		MOVL(Mem{Base: numbers}, s)
		MOVL(s, Mem{Base: of})
		VMOVDQU(Mem{Base: sums}, y)
		VMOVDQU(y, Mem{Base: of, Disp: 4})
		ADDQ(U32(256), x)
		ADDQ(U32(8), numbers)
		ADDQ(U32(32), sums)
		ADDQ(U32(256*stripeRows), dst)
		ADDQ(U32(stripeOfWhole*stripeRows), of)
	})
	end()
}

// arrangeStripe arranges a row of X for blocks of 32, eight groups at a time, one of each lane.
func (g *generator) arrangeStripe(base.Func) {
	field := fieldsOf(pointer("a"))
	x, numbers, dst, of := field(rowInputs), field(rowNumbers), field(rowDst), field(rowDstOf)
	laneX, laneOf := field(rowLaneX), field(rowLaneOf)
	ones := g.keep(g.bytes(1))
	room := AllocLocal(32)
	loop("arrangeStripe", field(rowCount), func() {
		var sums [8]reg.VecVirtual
		to := copied(dst)
		for j := range sums {
			y := YMM()
			VMOVDQU(Mem{Base: x, Disp: 32 * j}, y)
			VMOVDQU(y, Mem{Base: to})
			sums[j] = g.zero()
			VPDPBUSD(y, ones, sums[j])
			ADDQ(laneX, to)
		}
		var fours [2]reg.VecVirtual
		for i := range fours {
			v := sums[4*i:]
			fours[i] = foldInts(folded(v[0], v[1], VPUNPCKLDQ, VPUNPCKHDQ, VPADDD), folded(v[2], v[3], VPUNPCKLDQ, VPUNPCKHDQ, VPADDD))
		}
		low, high := YMM(), YMM()
		VPERM2I128(U8(0x20), fours[1], fours[0], low)
		VPERM2I128(U8(0x31), fours[1], fours[0], high)
		VPADDD(high, low, low)
		VPSLLD(U8(7), low, low)
		VPSUBD(low, g.zero(), low)
		VMOVDQU(low, room)
		toOf := copied(of)
		for j := range sums {
			number, less := GP64(), GP32()
			MOVQ(Mem{Base: numbers, Disp: 8 * j}, number)
			MOVQ(number, Mem{Base: toOf})
			MOVL(room.Offset(4*j), less)
			MOVL(less, Mem{Base: toOf, Disp: 8})
			ADDQ(laneOf, toOf)
		}
		ADDQ(U32(256), x)
		ADDQ(U32(64), numbers)
		ADDQ(U32(32*stripeRows), dst)
		ADDQ(U32(stripeOfShort*stripeRows), of)
	})
	end()
}
