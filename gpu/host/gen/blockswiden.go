package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/moeflux/moeflux-actor/gpu/host/gen/base"
)

// widenCodes writes code·scale + bias of groups of 16 or 32 codes.
func (g *generator) widenCodes(f base.Func) {
	group := f.Group
	dst, codes, scales, biases := pointer("dst"), pointer("codes"), pointer("scales"), pointer("biases")
	loop(f.Name+"_group", pointer("groups"), func() {
		scale, bias := YMM(), YMM()
		VBROADCASTSS(Mem{Base: scales}, scale)
		if f.Biased {
			VBROADCASTSS(Mem{Base: biases}, bias)
		}
		for i := 0; i < group; i += 8 {
			y := YMM()
			VPMOVSXBD(Mem{Base: codes, Disp: i}, y)
			VCVTDQ2PS(y, y)
			if f.Biased {
				VFMADD213PS(bias, scale, y)
			} else {
				VMULPS(scale, y, y)
			}
			VMOVUPS(y, Mem{Base: dst, Disp: 4 * i})
		}
		ADDQ(U32(uint32(group)), codes)
		ADDQ(U32(uint32(4*group)), dst)
		ADDQ(U32(4), scales)
		if f.Biased {
			ADDQ(U32(4), biases)
		}
	})
	end()
}

// oneCodes is plain for one row of X, where the row of W is codes, scales and biases.
func (g *generator) oneCodes(f base.Func) {
	codes, scales, biases, x := pointer("codes"), pointer("scales"), pointer("biases"), pointer("x")
	var sums [4]reg.VecVirtual
	for i := range sums {
		sums[i] = g.zero()
	}
	loop("loop_"+f.Name, pointer("blocks"), func() {
		scale, bias := YMM(), YMM()
		for j := range base.BlockInputs / 8 {
			if k := 8 * j / f.Group; 8*j%f.Group == 0 {
				VBROADCASTSS(Mem{Base: scales, Disp: 4 * k}, scale)
				if f.Biased {
					VBROADCASTSS(Mem{Base: biases, Disp: 4 * k}, bias)
				}
			}
			q := YMM()
			VPMOVSXBD(Mem{Base: codes, Disp: 8 * j}, q)
			VCVTDQ2PS(q, q)
			if f.Biased {
				VFMADD213PS(bias, scale, q)
			} else {
				VMULPS(scale, q, q)
			}
			VFMADD231PS(Mem{Base: x, Disp: 32 * j}, q, sums[j%4])
		}
		groups := uint32(4 * base.BlockInputs / f.Group)
		ADDQ(U32(base.BlockInputs), codes)
		ADDQ(U32(4*base.BlockInputs), x)
		ADDQ(U32(groups), scales)
		if f.Biased {
			ADDQ(U32(groups), biases)
		}
	})
	VADDPS(sums[1], sums[0], sums[0])
	VADDPS(sums[3], sums[2], sums[2])
	VADDPS(sums[2], sums[0], sums[0])
	sum := g.reduce(sums[0])
	VZEROUPPER()
	Store(sum, Return("y"))
	RET()
}

// halves widens fp16 numbers.
func (g *generator) halves(f base.Func) {
	dst, row := pointer("dst"), pointer("row")
	loop("loop_"+f.Name, pointer("blocks"), func() {
		for j := range base.UnpackInputs / 8 {
			y := YMM()
			VCVTPH2PS(Mem{Base: row, Disp: 16 * j}, y)
			VMOVUPS(y, Mem{Base: dst, Disp: 32 * j})
		}
		ADDQ(U32(4*base.UnpackInputs), dst)
		ADDQ(U32(2*base.UnpackInputs), row)
	})
	end()
}
