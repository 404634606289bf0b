package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/moeflux/moeflux-actor/gpu/host/gen/base"
)

// load makes a vector of float32 of the lanes inputs from i on that p points to.
type load func(p reg.Register, i int) reg.VecVirtual

func (g *generator) unpacked(p reg.Register, i int) reg.VecVirtual {
	v := g.vec()
	VMOVUPS(Mem{Base: p, Disp: 4 * i}, v)
	return v
}

func (g *generator) bf16(p reg.Register, i int) reg.VecVirtual {
	v := g.vec()
	VPMOVZXWD(Mem{Base: p, Disp: 2 * i}, v)
	VPSLLD(U8(16), v, v)
	return v
}

// plain is the loop over blocks of a row without scales; each row of X has four accumulators.
func (g *generator) plain(f base.Func) {
	l, rowBytes := load(g.unpacked), 4*base.BlockInputs
	if f.BF16 {
		l, rowBytes = g.bf16, 2*base.BlockInputs
	}
	xs, results := []string{"x"}, []string{"y"}
	if f.Rows == 2 {
		xs, results = []string{"x0", "x1"}, []string{"y0", "y1"}
	}
	row := pointer("row")
	columns := make([]reg.Register, len(xs))
	sums := make([][4]reg.VecVirtual, len(xs))
	for i, x := range xs {
		columns[i] = pointer(x)
		for j := range sums[i] {
			sums[i][j] = g.zero()
		}
	}
	loop("loop_"+f.Name, pointer("blocks"), func() {
		for j := range base.BlockInputs / g.isa.Lanes {
			q := l(row, j*g.isa.Lanes)
			for i, x := range columns {
				VFMADD231PS(Mem{Base: x, Disp: 4 * j * g.isa.Lanes}, q, sums[i][j%4])
			}
		}
		ADDQ(U32(uint32(rowBytes)), row)
		for _, x := range columns {
			ADDQ(U32(4*base.BlockInputs), x)
		}
	})
	var done []reg.VecVirtual
	for _, s := range sums {
		VADDPS(s[1], s[0], s[0])
		VADDPS(s[3], s[2], s[2])
		VADDPS(s[2], s[0], s[0])
		done = append(done, g.reduce(s[0]))
	}
	VZEROUPPER() // before the stores, which are not VEX instructions
	for i, sum := range done {
		Store(sum, Return(results[i]))
	}
	RET()
}

// reduce adds up v's lanes, in lane 0 of the result.
func (g *generator) reduce(v reg.VecVirtual) reg.VecVirtual {
	y := v
	if g.wide() {
		y = YMM()
		VEXTRACTF64X4(U8(1), v, y)
		VADDPS(v.AsY(), y, y)
	}
	x := XMM()
	VEXTRACTF128(U8(1), y, x)
	VADDPS(y.AsX(), x, x)
	VHADDPS(x, x, x)
	VHADDPS(x, x, x)
	return x
}

// unpack widens bf16.
func (g *generator) unpack(f base.Func) {
	dst, row := pointer("dst"), pointer("row")
	loop("loop_"+f.Name, pointer("blocks"), func() {
		for j := range base.UnpackInputs / g.isa.Lanes {
			VMOVUPS(g.bf16(row, j*g.isa.Lanes), Mem{Base: dst, Disp: 4 * j * g.isa.Lanes})
		}
		ADDQ(U32(4*base.UnpackInputs), dst)
		ADDQ(U32(2*base.UnpackInputs), row)
	})
	end()
}
