package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/moeflux/moeflux-actor/gpu/host/gen/base"
)

// Offsets of package host's blockArgs. A test there compares them with the struct.
const (
	blockCodes  = 0
	blockScales = 8
	blockBiases = 16
	blockCols   = 24
	blockRows   = 32
	blockX      = 40
	blockY      = 104
)

// blockDot is the product of a row's codes with rows of int8.
type blockDot struct {
	*generator
	biased bool

	codes, scales, biases, x, of reg.Register
	sums                         reg.Register   // of wholeDot
	ones                         reg.VecVirtual // 1 in every 16 bits
}

// eachRow repeats body for the rows of X. It adds to the row's lanes.
func (g *generator) eachRow(f base.Func, body func(d *blockDot, cols reg.GPVirtual, acc reg.VecVirtual)) {
	d := &blockDot{generator: g, biased: f.Biased}
	a := pointer("a")
	field := func(disp int) reg.GPVirtual {
		r := GP64()
		MOVQ(Mem{Base: a, Disp: disp}, r)
		return r
	}
	d.ones = g.keep(g.same("pair", 0x00010001))
	rows, at := field(blockRows), GP64()
	XORQ(at, at)
	loop(f.Name+"_row", rows, func() {
		d.codes, d.scales, d.biases = field(blockCodes), field(blockScales), field(blockBiases)
		cols, x, of := field(blockCols), GP64(), GP64()
		MOVQ(Mem{Base: a, Index: at, Scale: 8, Disp: blockX}, x)
		LEAQ(Mem{Base: x, Index: cols, Scale: 1}, of)
		d.x, d.of = x, of
		acc := g.zero()
		body(d, cols, acc)
		y := GP64()
		MOVQ(at, y)
		SHLQ(U8(5), y)
		VMOVUPS(acc, Mem{Base: a, Index: y, Scale: 1, Disp: blockY})
		INCQ(at)
	})
	end()
}

// blockDot takes eight groups of 32 at a time; those that are left over, and the sum of lanes, are
// the caller's.
func (g *generator) blockDot(f base.Func) {
	g.eachRow(f, func(d *blockDot, cols reg.GPVirtual, acc reg.VecVirtual) {
		SHRQ(U8(8), cols)
		TESTQ(cols, cols)
		JZ(LabelRef(f.Name + "_done"))
		loop(f.Name+"_groups", cols, func() { d.eight(acc) })
		Label(f.Name + "_done")
	})
}

// eight adds the totals of eight groups.
func (d *blockDot) eight(acc reg.VecVirtual) {
	dot, s, sum := d.totals(), YMM(), YMM()
	low, high := YMM(), YMM()
	VMOVUPS(Mem{Base: d.of}, low)
	VMOVUPS(Mem{Base: d.of, Disp: 32}, high)
	VSHUFPS(U8(0x88), high, low, s)
	VPERMPD(U8(0xd8), s, s)
	VCVTDQ2PS(dot, dot)
	VMULPS(Mem{Base: d.scales}, s, s)
	VMULPS(s, dot, dot)
	if d.biased {
		VSHUFPS(U8(0xdd), high, low, sum)
		VPERMPD(U8(0xd8), sum, sum)
		VMULPS(Mem{Base: d.biases}, sum, sum)
		VADDPS(sum, dot, dot)
		ADDQ(U32(32), d.biases)
	}
	VADDPS(dot, acc, acc)
	ADDQ(U32(32), d.scales)
	ADDQ(U32(256), d.codes)
	ADDQ(U32(256), d.x)
	ADDQ(U32(64), d.of)
}

// wholeDot takes a block of 256 at a time.
func (g *generator) wholeDot(f base.Func) {
	g.eachRow(f, func(d *blockDot, cols reg.GPVirtual, acc reg.VecVirtual) {
		SHRQ(U8(8), cols)
		sums := GP64()
		LEAQ(Mem{Base: d.of, Index: cols, Scale: 8}, sums)
		d.sums = sums
		var order reg.VecVirtual
		if f.Group == 16 { // of two words, the first 8 times and then the second
			order = g.keep(g.wordsInTurn())
		}
		loop(f.Name+"_blocks", cols, func() { d.whole(acc, order) })
	})
}

// whole adds a block.
func (d *blockDot) whole(acc, order reg.VecVirtual) {
	var totals [2]reg.VecVirtual
	for k := range 8 {
		d.scaled(&totals[k%2], d.pairs(32*k), k, order)
	}
	d.addWhole(acc, totals, nil)
	ADDQ(U32(wholeSize), d.scales)
	ADDQ(U32(256), d.codes)
	ADDQ(U32(256), d.x)
	ADDQ(U32(8), d.of)
}

// addWhole adds the products of a block, which are in two totals. s has what is not in memory.
func (d *blockDot) addWhole(acc reg.VecVirtual, totals [2]reg.VecVirtual, s *splitter) {
	total := totals[0]
	VPADDD(totals[1], total, total)
	VCVTDQ2PS(total, total)
	of, by := YMM(), YMM()
	if s == nil {
		VBROADCASTSS(Mem{Base: d.of}, of)
	}
	times := func(kept func() reg.VecVirtual, disp int) reg.VecVirtual {
		if s != nil {
			return kept()
		}
		VBROADCASTSS(Mem{Base: d.scales, Disp: disp}, by)
		VMULPS(of, by, by)
		return by
	}
	VMULPS(times(func() reg.VecVirtual { return s.d }, wholeD), total, total)
	if d.biased {
		least := YMM()
		if s != nil {
			VPMADDWD(Mem{Base: d.sums}, s.minima, least)
		} else {
			VMOVDQU(Mem{Base: d.sums}, least)
			VPMADDWD(Mem{Base: d.scales, Disp: wholeMinima}, least, least)
		}
		VCVTDQ2PS(least, least)
		VMULPS(times(func() reg.VecVirtual { return s.dmin }, wholeDMin), least, least)
		VSUBPS(least, total, total)
		ADDQ(U32(32), d.sums)
	}
	VADDPS(total, acc, acc)
}

// wordsInTurn is the order of two words in which the first comes 8 times, and then the second.
func (g *generator) wordsInTurn() Mem {
	return g.table("wordsInTurn", 8, func(i int) Constant { return U32([]uint32{0x01000100, 0x03020302}[i/4]) })
}

// scaled adds products of the k-th 32 inputs of a block times their scales to a total.
func (d *blockDot) scaled(total *reg.VecVirtual, p reg.VecVirtual, k int, order reg.VecVirtual) {
	scale := YMM()
	VPBROADCASTD(Mem{Base: d.scales, Disp: wholeScales + 4*k}, scale)
	if order != nil {
		VPSHUFB(order, scale, scale)
	}
	VPMADDWD(scale, p, p)
	if *total != nil {
		VPADDD(p, *total, *total)
	} else {
		*total = p
	}
}

// pairs returns the products of 32 inputs from at on, two of them added in 16 bits. Codes of
// formats with biases have no sign. The others have one, of which the inputs are relieved: a code
// of -128 times inputs of up to 127, twice, is below 2^15.
func (d *blockDot) pairs(at int) reg.VecVirtual {
	q := YMM()
	VMOVDQU(Mem{Base: d.codes, Disp: at}, q)
	return d.times(q, at)
}

// times is pairs for codes in a register, which it changes.
func (d *blockDot) times(q reg.VecVirtual, at int) reg.VecVirtual {
	y := YMM()
	if d.biased {
		VPMADDUBSW(Mem{Base: d.x, Disp: at}, q, y)
		return y
	}
	VMOVDQU(Mem{Base: d.x, Disp: at}, y)
	VPSIGNB(q, y, y)
	VPABSB(q, q)
	VPMADDUBSW(y, q, y)
	return y
}

// timesSigned is times for codes with a sign that are above -128: inputs lose theirs, and codes
// take it, so that both operations read inputs from memory.
func (g *generator) timesSigned(q reg.VecVirtual, x Mem) reg.VecVirtual {
	y := YMM()
	VPABSB(x, y)
	VPSIGNB(x, q, q)
	VPMADDUBSW(q, y, y)
	return y
}

// totals returns those of eight groups.
func (d *blockDot) totals() reg.VecVirtual {
	four := func(first int) reg.VecVirtual { // of four groups: their first halves, then their second
		two := func(first int) reg.VecVirtual {
			a, b := d.pairs(first), d.pairs(first+32)
			VPMADDWD(d.ones, a, a)
			VPMADDWD(d.ones, b, b)
			VPHADDD(b, a, a)
			return a
		}
		a, b := two(first), two(first+64)
		VPHADDD(b, a, a)
		return a
	}
	low, high, first := four(0), four(128), YMM()
	VPERM2I128(U8(0x20), high, low, first)
	VPERM2I128(U8(0x31), high, low, low)
	VPADDD(first, low, low)
	return low
}
