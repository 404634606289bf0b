package main

import (
	"log"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/moeflux/moeflux-actor/gpu/host/gen/base"
)

// exponential returns the names of what exp and sigmoid need.
func exponential() []string {
	names := []string{"sign"}
	for _, c := range base.Exponential {
		names = append(names, c.Name)
	}
	return names
}

// constant returns a constant in memory, repeated for every lane.
func (g *generator) constant(name string) Mem {
	all := func(c Constant) Mem { return g.table("vector"+name, g.isa.Lanes, func(int) Constant { return c }) }
	switch name {
	case "sign":
		return all(U32(1 << 31))
	case "even":
		return g.table("vectoreven", g.isa.Lanes, func(i int) Constant { return U32(uint32(2 * i)) })
	case "odd":
		return g.table("vectorodd", g.isa.Lanes, func(i int) Constant { return U32(uint32(2*i + 1)) })
	}
	for _, c := range base.Exponential {
		if c.Name == name {
			return all(F32(c.Value))
		}
	}
	log.Fatalf("gen: no constant %s", name)
	return Mem{}
}

// use loads constants into registers if there are enough registers.
func (g *generator) use(names ...string) {
	g.kept = map[string]reg.VecVirtual{}
	if !g.wide() {
		return
	}
	for _, n := range names {
		g.kept[n] = g.keep(g.constant(n))
	}
}

func (g *generator) useExp() {
	g.use(exponential()...)
}

// c returns a constant, in memory if use did not load it.
func (g *generator) c(name string) Op {
	if v, ok := g.kept[name]; ok {
		return v
	}
	return g.constant(name)
}

// exp returns e^x; NaN stays NaN.
func (g *generator) exp(x reg.VecVirtual) reg.VecVirtual {
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
	if g.isa.Lanes == 16 {
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
	if g.isa.Lanes == 16 {
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
func (g *generator) sigmoid(x reg.VecVirtual) reg.VecVirtual {
	v := g.vec()
	if g.isa.Lanes == 16 {
		VPORD(g.c("sign"), x, v)
	} else {
		VORPS(g.c("sign"), x, v)
	}
	t := g.exp(v)
	d, one := g.vec(), g.vec()
	VMOVUPS(g.c("one"), one)
	VADDPS(one, t, d)
	if g.isa.Lanes == 16 {
		negative := K()
		VPMOVD2M(x, negative)
		VMOVAPS(t, negative, one)
	} else {
		VBLENDVPS(x, t, one, one)
	}
	VDIVPS(d, one, one)
	return one
}

// tail is part of a vector; nil means a whole one.
type tail struct{ mask reg.Register }

// tail returns the mask of the first n lanes, 0 <= n <= lanes.
func (g *generator) tail(n reg.Register) *tail {
	if g.isa.Lanes == 16 {
		k, m := K(), GP32()
		MOVL(U32(0xffff), m)
		BZHIL(n.(reg.GPVirtual).As32(), m, m)
		KMOVW(m, k)
		return &tail{k}
	}
	p, v := GP64(), YMM()
	// eight of all bits, eight of none
	LEAQ(g.table("vectortail", 16, func(i int) Constant { return U32(uint32(int32(i-8) >> 31)) }), p)
	SHLQ(U8(2), n)
	SUBQ(n, p)
	SHRQ(U8(2), n)
	VMOVUPS(Mem{Base: p, Disp: 32}, v)
	return &tail{v}
}

// loadVec returns the floats at m, and zeros outside t.
func (g *generator) loadVec(m Mem, t *tail) reg.VecVirtual {
	v := g.vec()
	switch {
	case t == nil:
		VMOVUPS(m, v)
	case g.isa.Lanes == 16:
		VMOVUPS_Z(m, t.mask, v)
	default:
		VMASKMOVPS(m, t.mask, v)
	}
	return v
}

func (g *generator) storeVec(v reg.Register, m Mem, t *tail) {
	switch {
	case t == nil:
		VMOVUPS(v, m)
	case g.isa.Lanes == 16:
		VMOVUPS(v, t.mask, m)
	default:
		VMASKMOVPS(v, t.mask, m)
	}
}

func at(p reg.Register, disp int) Mem { return Mem{Base: p, Disp: disp} }

func start(name string) reg.Register  { return Load(Param(name).Base(), GP64()) }
func length(name string) reg.Register { return Load(Param(name).Len(), GP64()) }

// address returns a parameter as a memory operand.
func address(c gotypesComponent) Mem {
	b, err := c.Resolve()
	if err != nil {
		panic(err)
	}
	return b.Addr
}

func (g *generator) broadcast(m Mem) reg.VecVirtual {
	v := g.vec()
	VBROADCASTSS(m, v)
	return v
}

// each runs body over n floats, vector by vector, and advances the pointers.
func (g *generator) each(name string, n reg.Register, pointers []reg.Register, body func(t *tail)) {
	CMPQ(n, U32(uint32(g.isa.Lanes)))
	JB(LabelRef(name + "_tail"))
	Label(name + "_loop")
	body(nil)
	for _, p := range pointers {
		ADDQ(U32(uint32(4*g.isa.Lanes)), p)
	}
	SUBQ(U32(uint32(g.isa.Lanes)), n)
	CMPQ(n, U32(uint32(g.isa.Lanes)))
	JAE(LabelRef(name + "_loop"))
	Label(name + "_tail")
	TESTQ(n, n)
	JZ(LabelRef(name + "_done"))
	body(g.tail(n))
	Label(name + "_done")
}

// lanes0 adds up the lanes of v, or takes their maximum, in lane 0 of the result: it combines
// halves, then halves of these.
func (g *generator) lanes0(v reg.VecVirtual, op func(a, b, c Op)) reg.VecVirtual {
	y := v
	if g.isa.Lanes == 16 {
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
