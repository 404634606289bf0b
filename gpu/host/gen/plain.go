package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// blockInputs is how many inputs an iteration of the plain loops takes, unpackInputs where bf16 is
// widened.
const (
	blockInputs  = 64
	unpackInputs = 32
)

// plains writes the loops over rows of bf16 and float32.
func (g *generator) plains() {
	g.unpack()
	g.onePlain("oneBF16", "byte", g.bf16)
	g.onePlain("last", "float32", g.unpacked)
	g.twoPlain()
}

// load makes a vector of float32 from inputs i to i+lanes of what p points to.
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

// plain is the loop over blocks of rows without scales; each row of X has four accumulators.
func (g *generator) plain(name string, rowBytes int, row reg.Register, l load, xs, results []string) {
	columns := make([]reg.Register, len(xs))
	sums := make([][4]reg.VecVirtual, len(xs))
	for i, x := range xs {
		columns[i] = pointer(x)
		for j := range sums[i] {
			sums[i][j] = g.zero()
		}
	}
	loop("loop_"+name, pointer("blocks"), func() {
		for j := range blockInputs / g.lanes {
			q := l(row, j*g.lanes)
			for i, x := range columns {
				VFMADD231PS(Mem{Base: x, Disp: 4 * j * g.lanes}, q, sums[i][j%4])
			}
		}
		ADDQ(U32(uint32(rowBytes)), row)
		for _, x := range columns {
			ADDQ(U32(4*blockInputs), x)
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

// reduce adds v's lanes up, in lane 0 of the result.
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

func (g *generator) onePlain(name, element string, l load) {
	row, rowBytes := "q", 4*blockInputs
	if element == "byte" {
		row, rowBytes = "row", 2*blockInputs
	}
	name = g.text(name, fmt.Sprintf("func(%s *%s, x *float32, blocks int) (y float32)", row, element),
		fmt.Sprintf("returns row·x for blocks of %d inputs, at least 1.", blockInputs))
	g.plain(name, rowBytes, pointer(row), l, []string{"x"}, []string{"y"})
}

func (g *generator) twoPlain() {
	name := g.text("two", "func(q, x0, x1 *float32, blocks int) (y0, y1 float32)", "is last for two rows of X.")
	g.plain(name, 4*blockInputs, pointer("q"), g.unpacked, []string{"x0", "x1"}, []string{"y0", "y1"})
}

// unpack widens bf16.
func (g *generator) unpack() {
	name := g.text("unpack16", "func(dst *float32, row *byte, blocks int)",
		fmt.Sprintf("writes blocks of %d bf16, at least 1, to dst.", unpackInputs))
	dst, row := pointer("dst"), pointer("row")
	loop("loop_"+name, pointer("blocks"), func() {
		for j := range unpackInputs / g.lanes {
			VMOVUPS(g.bf16(row, j*g.lanes), Mem{Base: dst, Disp: 4 * j * g.lanes})
		}
		ADDQ(U32(4*unpackInputs), dst)
		ADDQ(U32(2*unpackInputs), row)
	})
	end()
}
