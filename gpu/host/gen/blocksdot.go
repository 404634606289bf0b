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
	blockCols   = 24
	blockRows   = 32
	blockX      = 40
	blockY      = 104
)

// blockDot is the product of a row's codes with rows of int8.
type blockDot struct {
	*generator
	unsigned bool // codes have no sign, and there are minima
	biased   bool // which are multiplied by a number of their own

	codes, scales, x, of, sums reg.Register
	atX, atSums                int // where the block's are that is taken
}

// input is where inputs are from one on.
func (d *blockDot) input(i int) Mem { return Mem{Base: d.x, Disp: d.atX + i} }

// wholeDot takes a block of 256 at a time, and two rows of X, or the last one.
func (g *generator) wholeDot(f base.Func) {
	a := pointer("a")
	field := fieldsOf(a)
	var order reg.VecVirtual
	if f.Group == 16 { // of two words, the first 8 times and then the second
		order = g.keep(g.wordsInTurn())
	}
	at := GP64()
	XORQ(at, at)
	rows := func(name string, n int) {
		codes, scales, sum := field(blockCodes), field(blockScales), XMM()
		VXORPS(sum, sum, sum)
		ds := make([]*blockDot, n)
		for r := range ds {
			x, of, blocks := GP64(), GP64(), field(blockCols)
			MOVQ(Mem{Base: a, Index: at, Scale: 8, Disp: blockX + 8*r}, x)
			LEAQ(Mem{Base: x, Index: blocks, Scale: 1}, of)
			SHRQ(U8(8), blocks)
			LEAQ(Mem{Base: of, Index: blocks, Scale: 8}, blocks)
			ds[r] = &blockDot{generator: g, unsigned: f.Biased || f.Group == 16, biased: f.Biased, codes: codes, scales: scales, x: x, of: of, sums: blocks}
		}
		blocks := field(blockCols)
		SHRQ(U8(8), blocks)
		loop(name+"_blocks", blocks, func() {
			addWhole(ds, sum, order)
			ADDQ(U32(wholeSize), scales)
			ADDQ(U32(256), codes)
		})
		y := Mem{Base: a, Index: at, Scale: 4, Disp: blockY}
		if n == 1 {
			VMOVSS(sum, y)
		} else {
			VMOVLPS(sum, y)
		}
		ADDQ(U32(uint32(n)), at)
	}
	twosAndOne(f.Name, func() reg.Register { return field(blockRows) }, rows)
	end()
}

// addWhole adds a block to the sums of rows of X, of which each has a blockDot and a lane.
func addWhole(ds []*blockDot, sum, order reg.VecVirtual) {
	totals := make([][2]reg.VecVirtual, len(ds))
	for k := range 8 {
		q := YMM()
		VMOVDQU(Mem{Base: ds[0].codes, Disp: 32 * k}, q)
		scale := ds[0].scale(k, order)
		for r, p := range products(ds, q, 32*k) {
			addScaled(&totals[r][k%2], p, scale)
		}
	}
	var whole, least []reg.VecVirtual
	for r, d := range ds {
		total := totals[r][0]
		VPADDD(totals[r][1], total, total)
		if d.unsigned {
			minima := YMM()
			VMOVDQU(Mem{Base: d.sums}, minima)
			VPMADDWD(Mem{Base: d.scales, Disp: wholeMinima}, minima, minima)
			if least = append(least, minima); !d.biased {
				VPSUBD(minima, total, total)
			}
			ADDQ(U32(32), d.sums)
		}
		whole = append(whole, total)
	}
	part := addedNumbers(ds, whole, least)
	VADDPS(part, sum, sum)
	for _, d := range ds {
		ADDQ(U32(256), d.x)
		ADDQ(U32(8), d.of)
	}
}

// addedNumbers adds up the lanes of what there is of each row of X, and multiplies it by the
// numbers of the block.
func addedNumbers(ds []*blockDot, whole, least []reg.VecVirtual) reg.VecVirtual {
	pair := func(v []reg.VecVirtual) reg.VecVirtual {
		return folded(v[0], v[len(v)-1], VPUNPCKLDQ, VPUNPCKHDQ, VPADDD)
	}
	dots, high, by, d := pair(whole), XMM(), XMM(), ds[0]
	number := func(disp int) Mem { return Mem{Base: d.scales, Disp: disp} }
	if d.biased { // of two rows both totals, then both least ones
		dots = foldInts(dots, pair(least))
		VMOVSD(number(wholeD), by) // and DMin
		VPSHUFD(U8(0b01_01_00_00), by, by)
	} else {
		turned := YMM()
		VPSHUFD(U8(0b01_00_11_10), dots, turned)
		VPADDD(turned, dots, dots)
		VBROADCASTSS(number(wholeD), by)
	}
	VEXTRACTI128(U8(1), dots, high)
	sum := dots.AsX().(reg.VecVirtual)
	VPADDD(high, sum, sum)
	VCVTDQ2PS(sum, sum)
	of := XMM()
	if len(ds) == 1 {
		VBROADCASTSS(Mem{Base: d.of}, of)
	} else {
		VMOVSS(Mem{Base: d.of}, of)
		VINSERTPS(U8(0x10), Mem{Base: ds[1].of}, of, of)
		VMOVLHPS(of, of, of)
	}
	VMULPS(of, by, by)
	VMULPS(by, sum, sum)
	if d.biased {
		VMOVHLPS(sum, sum, high)
		VSUBPS(high, sum, sum)
	}
	return sum
}

// products is times for several rows of X, of which it leaves the codes.
func products(ds []*blockDot, q reg.VecVirtual, at int) (all []reg.VecVirtual) {
	size := q
	if !ds[0].unsigned {
		size = YMM()
		VPABSB(q, size)
	}
	for _, d := range ds {
		y, from := YMM(), Mem{Base: d.x, Disp: at}
		if d.unsigned {
			VPMADDUBSW(from, q, y)
		} else {
			VMOVDQU(from, y)
			VPSIGNB(q, y, y)
			VPMADDUBSW(y, size, y)
		}
		all = append(all, y)
	}
	return all
}

// wordsInTurn is the order of two words in which the first comes 8 times, and then the second.
func (g *generator) wordsInTurn() Mem {
	return g.table("wordsInTurn", 8, func(i int) Constant { return U32([]uint32{0x01000100, 0x03020302}[i/4]) })
}

// scale returns the scales of the k-th 32 inputs of a block, as words.
func (d *blockDot) scale(k int, order reg.VecVirtual) reg.VecVirtual {
	scale := YMM()
	VPBROADCASTD(Mem{Base: d.scales, Disp: wholeScales + 4*k}, scale)
	if order != nil {
		VPSHUFB(order, scale, scale)
	}
	return scale
}

// addScaled adds products of 32 inputs times their scales to a total.
func addScaled(total *reg.VecVirtual, p, scale reg.VecVirtual) {
	VPMADDWD(scale, p, p)
	if *total != nil {
		VPADDD(p, *total, *total)
	} else {
		*total = p
	}
}

// times returns the products of 32 inputs from at on, two of them added in 16 bits, with codes in a
// register, which it changes. Codes have no sign.
func (d *blockDot) times(q reg.VecVirtual, at int) reg.VecVirtual {
	y := YMM()
	VPMADDUBSW(d.input(at), q, y)
	return y
}

// timesSigned is blockDot.times for codes with a sign that are above -128: they take the sign of
// inputs x, of which sizes are without it.
func (g *generator) timesSigned(q reg.VecVirtual, x, sizes Mem) reg.VecVirtual {
	y := YMM()
	VMOVDQU(sizes, y)
	VPSIGNB(x, q, q)
	VPMADDUBSW(q, y, y)
	return y
}
