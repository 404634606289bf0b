// Command gen writes the assembly of package host's matrix-product loops, one instruction set a run:
//
//	go run . -isa avx512 -pkg host -out ../avx512_amd64.s -stubs ../avx512_amd64.go
//	go run . -isa avx2 -pkg host -out ../avx2_amd64.s -stubs ../avx2_amd64.go
//
// It is a module of its own, so that the engine does not depend on the assembler it is written with. Inputs keep their
// order: vector j of a group holds its inputs from j·lanes on. The loops over packed and unpacked rows are
// made by the same functions from other loads, so that they add in one order.
package main

import (
	"flag"
	"fmt"
	"log"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// blockInputs is how many inputs an iteration takes where there are no groups, unpackInputs where codes are unpacked.
const (
	blockInputs  = 64
	unpackInputs = 32
)

func main() {
	isa := flag.String("isa", "", "avx512 or avx2")
	vectors := flag.Bool("vectors", false, "write the primitives of operations other than matrix products")
	flag.Parse()
	var g *generator
	switch *isa {
	case "avx512":
		g = &generator{suffix: "AVX512", lanes: 16}
	case "avx2":
		g = &generator{suffix: "AVX2", lanes: 8}
	default:
		log.Fatalf("gen: -isa is %q, want avx512 or avx2", *isa)
	}
	ConstraintExpr("amd64,!noasm")
	if *vectors {
		(&vectorGenerator{suffix: g.suffix, lanes: g.lanes}).write()
		Generate()
		return
	}
	g.tables()
	for _, bits := range []int{2, 4, 8} {
		for _, group := range []int{32, 64, 128} {
			g.oneGrouped(bits, group)
		}
		g.unpack(bits)
	}
	g.onePlain("oneBF16", "byte", g.bf16)
	g.unpack(16)
	g.onePlain("last", "float32", g.unpacked)
	g.twoPlain()
	for _, group := range []int{32, 64, 128} {
		g.lastGrouped(group)
		g.twoGrouped(group)
	}
	Generate()
}

// generator is what differs between instruction sets.
type generator struct {
	suffix string
	lanes  int // float32 in a vector
	data   map[string]Mem
	vecs   map[string]reg.VecVirtual
	odd    reg.OpmaskVirtual // words of the upper halves of float32
}

func (g *generator) vec() reg.VecVirtual {
	if g.lanes == 16 {
		return ZMM()
	}
	return YMM()
}

func (g *generator) zero() reg.VecVirtual {
	v := g.vec()
	if g.lanes == 16 {
		VPXORD(v, v, v)
	} else {
		VXORPS(v, v, v)
	}
	return v
}

// tables writes the constants of the codes' loads.
func (g *generator) tables() {
	g.data = map[string]Mem{}
	table := func(name string, n int, f func(i int) Constant) {
		m := GLOBL(strings.ToLower(g.suffix)+name, RODATA|NOPTR)
		for i := range n {
			DATA(4*i, f(i))
		}
		g.data[name] = m
	}
	if g.lanes == 16 {
		table("nibbles", 16, func(i int) Constant { return U32(uint32(4 * i)) })
		table("values4", 16, func(i int) Constant { return F32(float32(i)) })
		table("pairs", 16, func(i int) Constant { return U32(uint32(2 * i)) })
		table("values2", 16, func(i int) Constant { return F32(float32(i % 4)) })
		return
	}
	table("nibbles", 8, func(i int) Constant { return U32(uint32(4 * i)) })
	table("mask4", 8, func(int) Constant { return U32(15) })
	table("pairs", 8, func(i int) Constant { return U32(uint32(2 * i)) })
	table("highpairs", 8, func(i int) Constant { return U32(uint32(16 + 2*i)) })
	table("mask2", 8, func(int) Constant { return U32(3) })
}

// keep loads the constants that codes of a width need into registers.
func (g *generator) keep(bits int) {
	names := map[int][]string{}
	if g.lanes == 16 {
		names[4], names[2] = []string{"nibbles", "values4"}, []string{"pairs", "values2"}
	} else {
		names[4], names[2] = []string{"nibbles", "mask4"}, []string{"pairs", "highpairs", "mask2"}
	}
	g.vecs = map[string]reg.VecVirtual{}
	for _, n := range names[bits] {
		g.vecs[n] = g.vec()
		VMOVUPS(g.data[n], g.vecs[n])
	}
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

// codes returns the load of codes of a width.
func (g *generator) codes(bits int) load {
	switch {
	case bits == 16:
		return g.bf16
	case bits == 8:
		return func(p reg.Register, i int) reg.VecVirtual {
			v := g.vec()
			VPMOVZXBD(Mem{Base: p, Disp: i}, v)
			VCVTDQ2PS(v, v)
			return v
		}
	case g.lanes == 16 && bits == 4:
		return func(p reg.Register, i int) reg.VecVirtual {
			v := g.vec() // a table look-up takes the low four bits: no mask
			VPMULTISHIFTQB_BCST(Mem{Base: p, Disp: i / 2}, g.vecs["nibbles"], v)
			VPERMPS(g.vecs["values4"], v, v)
			return v
		}
	case g.lanes == 16:
		return func(p reg.Register, i int) reg.VecVirtual {
			v := g.vec()
			VPBROADCASTD(Mem{Base: p, Disp: i / 4}, v)
			VPSRLVD(g.vecs["pairs"], v, v)
			VPERMPS(g.vecs["values2"], v, v)
			return v
		}
	}
	return func(p reg.Register, i int) reg.VecVirtual {
		v := g.vec()
		shifts, mask := "nibbles", "mask4"
		if bits == 2 {
			shifts, mask = "pairs", "mask2"
			if i%16 != 0 {
				shifts = "highpairs"
			}
		}
		VPBROADCASTD(Mem{Base: p, Disp: i * bits / 32 * 4}, v)
		VPSRLVD(g.vecs[shifts], v, v)
		VPAND(g.vecs[mask], v, v)
		VCVTDQ2PS(v, v)
		return v
	}
}

// text begins a function.
func (g *generator) text(name, signature, doc string) string {
	name += g.suffix
	TEXT(name, NOSPLIT, signature)
	Pragma("noescape")
	Doc(name + " " + doc)
	return name
}

func pointer(name string) reg.Register { return Load(Param(name), GP64()) }

// loop repeats body as often as the parameter count says, at least once.
func loop(name, count string, body func()) {
	n := Load(Param(count), GP64())
	Label("loop_" + name)
	body()
	DECQ(n)
	JNZ(LabelRef("loop_" + name))
}

// column is the sum for one row of X.
type column struct {
	x, sums reg.Register
	total   reg.VecVirtual // lanes of Σ scale·Σ q·x
	bias    reg.VecVirtual // four lanes of Σ bias·Σ x
	result  string
}

func (g *generator) column(x, sums, result string) *column {
	c := &column{x: pointer(x), sums: pointer(sums), total: g.zero(), bias: XMM(), result: result}
	VXORPS(c.bias, c.bias, c.bias)
	return c
}

// grouped is the loop over groups: all packed and unpacked affine rows.
func (g *generator) grouped(name string, group, rowBytes int, row reg.Register, l load, columns ...*column) {
	scales, biases := pointer("scales"), pointer("biases")
	if g.lanes == 16 {
		g.odd = K()
		m := GP32()
		MOVL(U32(0xaaaaaaaa), m)
		KMOVD(m, g.odd)
	}
	loop(name, "groups", func() {
		dots := make([][2]reg.VecVirtual, len(columns))
		for j := range group / g.lanes {
			q := l(row, j*g.lanes)
			for i, c := range columns {
				x := Mem{Base: c.x, Disp: 4 * j * g.lanes}
				if j < 2 {
					dots[i][j] = g.vec()
					VMULPS(x, q, dots[i][j])
				} else {
					VFMADD231PS(x, q, dots[i][j%2])
				}
			}
		}
		scale := g.vec()
		if g.lanes == 16 {
			VPBROADCASTW_Z(Mem{Base: scales}, g.odd, scale)
		} else {
			VPBROADCASTW(Mem{Base: scales}, scale)
			VPSLLD(U8(16), scale, scale)
		}
		bias := XMM()
		VPBROADCASTW(Mem{Base: biases}, bias)
		VPSLLD(U8(16), bias, bias)
		for i, c := range columns {
			VADDPS(dots[i][1], dots[i][0], dots[i][0])
			VFMADD231PS(scale, dots[i][0], c.total)
			sums := XMM()
			switch group {
			case 32:
				VMOVSS(Mem{Base: c.sums}, sums)
			case 64:
				VMOVSD(Mem{Base: c.sums}, sums)
			default:
				VMOVUPS(Mem{Base: c.sums}, sums)
			}
			VFMADD231PS(sums, bias, c.bias)
			ADDQ(U32(uint32(4*group)), c.x)
			ADDQ(U32(uint32(group/8)), c.sums)
		}
		ADDQ(U32(uint32(rowBytes)), row)
		ADDQ(U32(2), scales)
		ADDQ(U32(2), biases)
	})
	g.finish(columns...)
}

// finish returns the sums of the columns' lanes.
func (g *generator) finish(columns ...*column) {
	sums := make([]reg.VecVirtual, len(columns))
	for i, c := range columns {
		sums[i] = g.reduce(c)
	}
	VZEROUPPER() // before the stores, which are not VEX instructions
	for i, c := range columns {
		Store(sums[i], Return(c.result))
	}
	RET()
}

// reduce adds c's lanes up, in lane 0 of the result.
func (g *generator) reduce(c *column) reg.VecVirtual {
	y := c.total
	if g.lanes == 16 {
		y = YMM()
		VEXTRACTF64X4(U8(1), c.total, y)
		VADDPS(c.total.AsY(), y, y)
	}
	x := XMM()
	VEXTRACTF128(U8(1), y, x)
	VADDPS(y.AsX(), x, x)
	if c.bias != nil {
		VADDPS(c.bias, x, x)
	}
	VHADDPS(x, x, x)
	VHADDPS(x, x, x)
	return x
}

const oneDoc = "returns row·x for a row of %d-bit codes in groups of %d; groups is at least 1."

func (g *generator) oneGrouped(bits, group int) {
	name := g.text(fmt.Sprintf("one%dx%d", bits, group),
		"func(row, scales, biases *byte, x, sums *float32, groups int) (y float32)", fmt.Sprintf(oneDoc, bits, group))
	g.keep(bits)
	g.grouped(name, group, group*bits/8, pointer("row"), g.codes(bits), g.column("x", "sums", "y"))
}

func (g *generator) lastGrouped(group int) {
	name := g.text(fmt.Sprintf("last%d", group),
		"func(q *float32, scales, biases *byte, x, sums *float32, groups int) (y float32)",
		fmt.Sprintf("returns row·x for codes unpacked to q, in groups of %d; groups is at least 1.", group))
	g.grouped(name, group, 4*group, pointer("q"), g.unpacked, g.column("x", "sums", "y"))
}

func (g *generator) twoGrouped(group int) {
	name := g.text(fmt.Sprintf("two%d", group),
		"func(q *float32, scales, biases *byte, x0, sums0, x1, sums1 *float32, groups int) (y0, y1 float32)",
		fmt.Sprintf("is last%d for two rows of X.", group))
	g.grouped(name, group, 4*group, pointer("q"), g.unpacked,
		g.column("x0", "sums0", "y0"), g.column("x1", "sums1", "y1"))
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
	loop(name, "blocks", func() {
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
	var done []*column
	for i, s := range sums {
		VADDPS(s[1], s[0], s[0])
		VADDPS(s[3], s[2], s[2])
		VADDPS(s[2], s[0], s[0])
		done = append(done, &column{total: s[0], result: results[i]})
	}
	g.finish(done...)
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

// unpack writes codes, or bf16 if they are 16 bits wide, as float32.
func (g *generator) unpack(bits int) {
	name := g.text(fmt.Sprintf("unpack%d", bits), "func(dst *float32, row *byte, blocks int)",
		fmt.Sprintf("writes blocks of %d elements of %d bits, at least 1, to dst.", unpackInputs, bits))
	g.keep(bits)
	dst, row := pointer("dst"), pointer("row")
	l := g.codes(bits)
	loop(name, "blocks", func() {
		for j := range unpackInputs / g.lanes {
			VMOVUPS(l(row, j*g.lanes), Mem{Base: dst, Disp: 4 * j * g.lanes})
		}
		ADDQ(U32(4*unpackInputs), dst)
		ADDQ(U32(uint32(unpackInputs*bits/8)), row)
	})
	VZEROUPPER()
	RET()
}
