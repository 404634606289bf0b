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
	biased bool

	codes, scales, x, of, sums reg.Register
}

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
		codes, scales := field(blockCodes), field(blockScales)
		ds, sums := make([]*blockDot, n), make([]reg.VecVirtual, n)
		for r := range ds {
			x, of, blocks := GP64(), GP64(), field(blockCols)
			MOVQ(Mem{Base: a, Index: at, Scale: 8, Disp: blockX + 8*r}, x)
			LEAQ(Mem{Base: x, Index: blocks, Scale: 1}, of)
			SHRQ(U8(8), blocks)
			LEAQ(Mem{Base: of, Index: blocks, Scale: 8}, blocks)
			ds[r], sums[r] = &blockDot{generator: g, biased: f.Biased, codes: codes, scales: scales, x: x, of: of, sums: blocks}, g.zero()
		}
		blocks := field(blockCols)
		SHRQ(U8(8), blocks)
		loop(name+"_blocks", blocks, func() {
			whole(ds, sums, order)
			ADDQ(U32(wholeSize), scales)
			ADDQ(U32(256), codes)
		})
		y := GP64()
		MOVQ(at, y)
		SHLQ(U8(5), y)
		for r, sum := range sums {
			VMOVUPS(sum, Mem{Base: a, Index: y, Scale: 1, Disp: blockY + 32*r})
		}
		ADDQ(U32(uint32(n)), at)
	}
	twosAndOne(f.Name, func() reg.Register { return field(blockRows) }, rows)
	end()
}

// whole adds a block to the sums of rows of X, of which each has a blockDot.
func whole(ds []*blockDot, sums []reg.VecVirtual, order reg.VecVirtual) {
	totals := make([][2]reg.VecVirtual, len(ds))
	for k := range 8 {
		q := YMM()
		VMOVDQU(Mem{Base: ds[0].codes, Disp: 32 * k}, q)
		scale := ds[0].scale(k, order)
		for r, p := range products(ds, q, 32*k) {
			VPMADDWD(scale, p, p)
			if total := &totals[r][k%2]; *total != nil {
				VPADDD(p, *total, *total)
			} else {
				*total = p
			}
		}
	}
	for r, d := range ds {
		d.addWhole(sums[r], totals[r])
		ADDQ(U32(256), d.x)
		ADDQ(U32(8), d.of)
	}
}

// products is times for several rows of X, of which it leaves the codes.
func products(ds []*blockDot, q reg.VecVirtual, at int) (all []reg.VecVirtual) {
	size := q
	if !ds[0].biased {
		size = YMM()
		VPABSB(q, size)
	}
	for _, d := range ds {
		y, from := YMM(), Mem{Base: d.x, Disp: at}
		if d.biased {
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

// addWhole adds the products of a block, which are in two totals.
func (d *blockDot) addWhole(acc reg.VecVirtual, totals [2]reg.VecVirtual) {
	total, of := totals[0], YMM()
	VPADDD(totals[1], total, total)
	VCVTDQ2PS(total, total)
	VBROADCASTSS(Mem{Base: d.of}, of)
	times := func(disp int, v reg.VecVirtual) {
		by := YMM()
		VBROADCASTSS(Mem{Base: d.scales, Disp: disp}, by)
		VMULPS(of, by, by)
		VMULPS(by, v, v)
	}
	times(wholeD, total)
	if d.biased {
		least := YMM()
		VMOVDQU(Mem{Base: d.sums}, least)
		VPMADDWD(Mem{Base: d.scales, Disp: wholeMinima}, least, least)
		VCVTDQ2PS(least, least)
		times(wholeDMin, least)
		VSUBPS(least, total, total)
		ADDQ(U32(32), d.sums)
	}
	VADDPS(total, acc, acc)
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
// register, which it changes. Codes of formats with biases or minima have no sign. The others have
// one, of which the inputs are relieved: a code of -128 times inputs of up to 127, twice, is below
// 2^15.
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

// timesSigned is times for codes with a sign that are above -128: they take the sign of inputs x,
// of which sizes are without it.
func (g *generator) timesSigned(q reg.VecVirtual, x, sizes Mem) reg.VecVirtual {
	y := YMM()
	VMOVDQU(sizes, y)
	VPSIGNB(x, q, q)
	VPMADDUBSW(q, y, y)
	return y
}
