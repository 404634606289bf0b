package main

import (
	"fmt"
	"math"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// vectorGenerator writes the primitives of package host's table vectors, whose comments say what
// each computes.
type vectorGenerator struct {
	suffix string
	lanes  int // float32 in a vector
	data   map[string]Mem
	kept   map[string]reg.VecVirtual // constants in registers
}

// vectors writes all primitives.
func (g *generator) vectors() { (&vectorGenerator{suffix: g.suffix, lanes: g.lanes}).write() }

func (g *vectorGenerator) vec() reg.VecVirtual {
	if g.lanes == 16 {
		return ZMM()
	}
	return YMM()
}

// text begins a function.
func (g *vectorGenerator) text(name, signature, doc string) {
	name += g.suffix
	TEXT(name, NOSPLIT, signature)
	Pragma("noescape")
	Doc(name + " " + doc)
}

func (g *vectorGenerator) write() {
	g.vectorTables()
	g.dot()
	g.norm()
	g.gatedNorm()
	g.add()
	g.axpy()
	g.merge()
	g.swiglu()
	g.gate()
	g.combine()
	g.conv()
	g.rope()
	g.ropePairs()
	for _, bits := range []int{2, 4, 8} {
		g.dequantise(bits)
	}
	g.widen()
	g.widen8()
	g.transpose8()
	g.transpose()
	g.multiply()
	g.softmax()
	g.delta()
	g.touch()
}

// The exponential: x = n·ln 2 + r, e^r = 1 + r·(1 + r·(c0 + r·(c1 + …))), the polynomial being the
// one of least relative error, 3e-9, over |r| <= ln 2/2. Beyond low a result is zero, beyond high
// infinite.
var exponential = map[string]float32{
	"low": -104, "high": 89, "log2e": math.Log2E, "ln2high": 0.693359375, "ln2low": -2.12194440e-4, "one": 1,
	"c0": 0.499999934478, "c1": 0.166665206317, "c2": 0.0416683880453, "c3": 0.00836871687973, "c4": 0.00138145986467,
}

// lowest is below every score, and finite: a block of scores that are all -Inf then weighs nothing.
const lowest = -math.MaxFloat32

func (g *vectorGenerator) vectorTables() {
	g.data = map[string]Mem{}
	table := func(name string, n int, f func(i int) Constant) {
		m := GLOBL(strings.ToLower(g.suffix)+"vector"+name, RODATA|NOPTR)
		for i := range n {
			DATA(4*i, f(i))
		}
		g.data[name] = m
	}
	all := func(name string, c Constant) { table(name, g.lanes, func(int) Constant { return c }) }
	for _, name := range []string{"low", "high", "log2e", "ln2high", "ln2low", "one", "c0", "c1", "c2", "c3", "c4"} {
		all(name, F32(exponential[name]))
	}
	all("sign", U32(1<<31))
	if g.lanes == 16 {
		all("zero", U32(0))
		table("even", 16, func(i int) Constant { return U32(uint32(2 * i)) })
		table("odd", 16, func(i int) Constant { return U32(uint32(2*i + 1)) })
	} else {
		// eight of all bits, eight of none
		table("tail", 16, func(i int) Constant { return U32(uint32(int32(i-8) >> 31)) })
	}
	for _, bits := range []int{2, 4, 8} {
		table(fmt.Sprintf("mask%d", bits), 8, func(int) Constant { return U32(1<<bits - 1) })
	}
}

// use loads constants into registers, where there are enough of them.
func (g *vectorGenerator) use(names ...string) {
	g.kept = map[string]reg.VecVirtual{}
	if g.lanes < 16 {
		return
	}
	for _, n := range names {
		g.kept[n] = g.vec()
		VMOVUPS(g.data[n], g.kept[n])
	}
}

func (g *vectorGenerator) useExp() {
	g.use("low", "high", "log2e", "ln2high", "ln2low", "one", "c0", "c1", "c2", "c3", "c4", "sign")
}

// c returns a constant, from memory if use did not load it.
func (g *vectorGenerator) c(name string) Op {
	if v, ok := g.kept[name]; ok {
		return v
	}
	return g.data[name]
}

// exp returns e^x; NaN stays NaN.
func (g *vectorGenerator) exp(x reg.VecVirtual) reg.VecVirtual {
	r, n, p := g.vec(), g.vec(), g.vec()
	low := g.c("low")
	if m, ok := low.(Mem); ok { // the operand that a NaN passes through is the other one
		VMOVUPS(m, r)
		VMAXPS(x, r, r)
		VMOVUPS(g.c("high"), n)
		VMINPS(r, n, r)
	} else {
		VMAXPS(x, low, r)
		VMINPS(r, g.c("high"), r)
	}
	VMULPS(g.c("log2e"), r, n)
	if g.lanes == 16 {
		VRNDSCALEPS(U8(0), n, n)
	} else {
		VROUNDPS(U8(8), n, n)
	}
	VFNMADD231PS(g.c("ln2high"), n, r)
	VFNMADD231PS(g.c("ln2low"), n, r)
	VMOVUPS(g.c("c4"), p)
	for _, c := range []string{"c3", "c2", "c1", "c0", "one", "one"} {
		VFMADD213PS(g.c(c), r, p)
	}
	if g.lanes == 16 {
		VSCALEFPS(n, p, p)
		return p
	}
	half := g.vec()
	VCVTPS2DQ(n, n)
	VPSRAD(U8(1), n, half)
	VPSUBD(half, n, n)
	for _, e := range []reg.VecVirtual{half, n} { // 2^n in two parts, each a normal number
		VPSLLD(U8(23), e, e)
		VPADDD(g.c("one"), e, e)
		VMULPS(e, p, p)
	}
	return p
}

// sigmoid returns 1/(1+e^-x), from t = e^-|x| as 1/(1+t) or t/(1+t): nothing overflows and no
// digits are lost.
func (g *vectorGenerator) sigmoid(x reg.VecVirtual) reg.VecVirtual {
	v := g.vec()
	if g.lanes == 16 {
		VPORD(g.c("sign"), x, v)
	} else {
		VORPS(g.c("sign"), x, v)
	}
	t := g.exp(v)
	d, one := g.vec(), g.vec()
	VMOVUPS(g.c("one"), one)
	VADDPS(one, t, d)
	if g.lanes == 16 {
		negative := K()
		VPMOVD2M(x, negative)
		VMOVAPS(t, negative, one)
	} else {
		VBLENDVPS(x, t, one, one)
	}
	VDIVPS(d, one, one)
	return one
}

// tail is a part of a vector; nil is a whole one.
type tail struct{ mask reg.Register }

// tail returns the mask of the first n lanes, 0 <= n <= lanes.
func (g *vectorGenerator) tail(n reg.Register) *tail {
	if g.lanes == 16 {
		k, m := K(), GP32()
		MOVL(U32(0xffff), m)
		BZHIL(n.(reg.GPVirtual).As32(), m, m)
		KMOVW(m, k)
		return &tail{k}
	}
	p, v := GP64(), YMM()
	LEAQ(g.data["tail"], p)
	SHLQ(U8(2), n)
	SUBQ(n, p)
	SHRQ(U8(2), n)
	VMOVUPS(Mem{Base: p, Disp: 32}, v)
	return &tail{v}
}

// load returns the floats at m, zeros beyond t.
func (g *vectorGenerator) loadVec(m Mem, t *tail) reg.VecVirtual {
	v := g.vec()
	switch {
	case t == nil:
		VMOVUPS(m, v)
	case g.lanes == 16:
		VMOVUPS_Z(m, t.mask, v)
	default:
		VMASKMOVPS(m, t.mask, v)
	}
	return v
}

func (g *vectorGenerator) storeVec(v reg.Register, m Mem, t *tail) {
	switch {
	case t == nil:
		VMOVUPS(v, m)
	case g.lanes == 16:
		VMOVUPS(v, t.mask, m)
	default:
		VMASKMOVPS(v, t.mask, m)
	}
}

func at(p reg.Register, disp int) Mem { return Mem{Base: p, Disp: disp} }

func base(name string) reg.Register   { return Load(Param(name).Base(), GP64()) }
func length(name string) reg.Register { return Load(Param(name).Len(), GP64()) }

// address is a parameter's place, for instructions that read memory.
func address(c gotypesComponent) Mem {
	b, err := c.Resolve()
	if err != nil {
		panic(err)
	}
	return b.Addr
}

// zeros comes from memory where the register allocator does not know that the exclusive or reads
// nothing.
func (g *vectorGenerator) zeros() reg.VecVirtual {
	v := g.vec()
	if g.lanes == 16 {
		VMOVUPS(g.data["zero"], v)
	} else {
		VXORPS(v, v, v)
	}
	return v
}

func (g *vectorGenerator) broadcast(m Mem) reg.VecVirtual {
	v := g.vec()
	VBROADCASTSS(m, v)
	return v
}

// each runs body over n floats, vector by vector; the pointers move along.
func (g *vectorGenerator) each(name string, n reg.Register, pointers []reg.Register, body func(t *tail)) {
	CMPQ(n, U32(uint32(g.lanes)))
	JB(LabelRef(name + "_tail"))
	Label(name + "_loop")
	body(nil)
	for _, p := range pointers {
		ADDQ(U32(uint32(4*g.lanes)), p)
	}
	SUBQ(U32(uint32(g.lanes)), n)
	CMPQ(n, U32(uint32(g.lanes)))
	JAE(LabelRef(name + "_loop"))
	Label(name + "_tail")
	TESTQ(n, n)
	JZ(LabelRef(name + "_done"))
	body(g.tail(n))
	Label(name + "_done")
}

// fold adds (or takes the larger of) the lanes of v, in lane 0 of the result: halves, then halves
// of these.
func (g *vectorGenerator) fold(v reg.VecVirtual, op func(a, b, c Op)) reg.VecVirtual {
	y := v
	if g.lanes == 16 {
		y = YMM()
		VEXTRACTF64X4(U8(1), v, y)
		op(v.AsY(), y, y)
	}
	x, z := XMM(), XMM()
	VEXTRACTF128(U8(1), y, x)
	op(y.AsX(), x, x)
	VPERMILPS(U8(0x4e), x, z)
	op(z, x, x)
	VPERMILPS(U8(0xb1), x, z)
	op(z, x, x)
	return x
}

// leave ends a function.
func leave() {
	VZEROUPPER()
	RET()
}
