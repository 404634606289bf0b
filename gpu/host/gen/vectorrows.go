package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/gotypes"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/moeflux/moeflux-actor/gpu/host/gen/base"
	"github.com/moeflux/moeflux-actor/model/quant"
)

type gotypesComponent = gotypes.Component

// elementwise writes a primitive of y [n] and operands of the same length. f computes a vector of y
// from the operands' vectors.
func (g *generator) elementwise(y string, operands []string, f func(t *tail, at []Mem) reg.VecVirtual) {
	n := length(y)
	pointers := []reg.Register{start(y)}
	for _, o := range operands {
		pointers = append(pointers, start(o))
	}
	g.each("each", n, pointers, func(t *tail) {
		var places []Mem
		for _, p := range pointers[1:] {
			places = append(places, at(p, 0))
		}
		g.storeVec(f(t, places), at(pointers[0], 0), t)
	})
	end()
}

// dot sums in four vectors, which take vectors of inputs in turn while four are left. The first
// takes the rest.
func (g *generator) dot(base.Func) {
	n, x, y := length("x"), start("x"), start("y")
	sums := []reg.VecVirtual{g.zero(), g.zero(), g.zero(), g.zero()}
	step := 4 * g.isa.Lanes
	CMPQ(n, U32(uint32(step)))
	JB(LabelRef("rest"))
	Label("loop")
	for i, s := range sums {
		VFMADD231PS(at(y, 4*i*g.isa.Lanes), g.loadVec(at(x, 4*i*g.isa.Lanes), nil), s)
	}
	ADDQ(U32(uint32(4*step)), x)
	ADDQ(U32(uint32(4*step)), y)
	SUBQ(U32(uint32(step)), n)
	CMPQ(n, U32(uint32(step)))
	JAE(LabelRef("loop"))
	Label("rest")
	g.each("each", n, []reg.Register{x, y}, func(t *tail) {
		VFMADD231PS(g.loadVec(at(y, 0), t), g.loadVec(at(x, 0), t), sums[0])
	})
	VADDPS(sums[1], sums[0], sums[0])
	VADDPS(sums[3], sums[2], sums[2])
	VADDPS(sums[2], sums[0], sums[0])
	sum := g.lanes0(sums[0], VADDPS4)
	VZEROUPPER()
	Store(sum, Return("sum"))
	RET()
}

// VADDPS4 and VMAXPS4 are the instructions as functions of one type.
func VADDPS4(a, b, c Op) { VADDPS(a, b, c) }
func VMAXPS4(a, b, c Op) { VMAXPS(a, b, c) }

func (g *generator) norm(base.Func) {
	r := g.broadcast(address(Param("r")))
	n, y, x, w := length("y"), start("y"), start("x"), start("w")
	TESTQ(w, w)
	JZ(LabelRef("bare"))
	g.each("each", n, []reg.Register{y, x, w}, func(t *tail) {
		v := g.loadVec(at(x, 0), t)
		VMULPS(r, v, v)
		VMULPS(g.loadVec(at(w, 0), t), v, v)
		g.storeVec(v, at(y, 0), t)
	})
	end()
	Label("bare")
	g.each("bare", n, []reg.Register{y, x}, func(t *tail) {
		v := g.loadVec(at(x, 0), t)
		VMULPS(r, v, v)
		g.storeVec(v, at(y, 0), t)
	})
	end()
}

func (g *generator) gatedNorm(base.Func) {
	g.useExp()
	r := g.broadcast(address(Param("r")))
	g.elementwise("y", []string{"x", "w", "z"}, func(t *tail, m []Mem) reg.VecVirtual {
		z := g.loadVec(m[2], t)
		s := g.sigmoid(z)
		VMULPS(z, s, s)
		v := g.loadVec(m[0], t)
		VMULPS(r, v, v)
		VMULPS(g.loadVec(m[1], t), v, v)
		VMULPS(s, v, v)
		return v
	})
}

func (g *generator) add(base.Func) {
	g.elementwise("y", []string{"a", "b"}, func(t *tail, m []Mem) reg.VecVirtual {
		v := g.loadVec(m[0], t)
		VADDPS(g.loadVec(m[1], t), v, v)
		return v
	})
}

func (g *generator) axpy(base.Func) {
	f := g.broadcast(address(Param("f")))
	g.elementwise("y", []string{"y", "x"}, func(t *tail, m []Mem) reg.VecVirtual {
		v := g.loadVec(m[0], t)
		VFMADD231PS(g.loadVec(m[1], t), f, v)
		return v
	})
}

func (g *generator) merge(base.Func) {
	f, h := g.broadcast(address(Param("f"))), g.broadcast(address(Param("h")))
	g.elementwise("y", []string{"y", "x"}, func(t *tail, m []Mem) reg.VecVirtual {
		v := g.loadVec(m[0], t)
		VMULPS(f, v, v)
		VFMADD231PS(g.loadVec(m[1], t), h, v)
		return v
	})
}

func (g *generator) swiglu(base.Func) {
	g.useExp()
	g.elementwise("y", []string{"gate", "up"}, func(t *tail, m []Mem) reg.VecVirtual {
		x := g.loadVec(m[0], t)
		s := g.sigmoid(x)
		VMULPS(x, s, s)
		VMULPS(g.loadVec(m[1], t), s, s)
		return s
	})
}

func (g *generator) gate(base.Func) {
	g.useExp()
	g.elementwise("x", []string{"x", "gate"}, func(t *tail, m []Mem) reg.VecVirtual {
		s := g.sigmoid(g.loadVec(m[1], t))
		VMULPS(g.loadVec(m[0], t), s, s)
		return s
	})
}

func (g *generator) combine(base.Func) {
	n, stride := length("y"), length("y")
	SHLQ(U8(2), stride)
	y, residual, routed, shared, weights := start("y"), start("residual"), start("routed"), start("shared"), start("weights")
	scale := g.broadcast(address(Param("scale")))
	i := 0
	g.each("each", n, []reg.Register{y, residual, routed}, func(t *tail) {
		i++
		label := func(s string) string { return fmt.Sprintf("%s%d", s, i) }
		acc := g.zero()
		row, w, count := GP64(), GP64(), length("weights")
		MOVQ(routed, row)
		MOVQ(weights, w)
		Label(label("pick"))
		VFMADD231PS(g.loadVec(at(row, 0), t), g.broadcast(at(w, 0)), acc)
		ADDQ(stride, row)
		ADDQ(U8(4), w)
		DECQ(count)
		JNZ(LabelRef(label("pick")))
		TESTQ(shared, shared)
		JZ(LabelRef(label("own")))
		VFMADD231PS(g.loadVec(at(shared, 0), t), scale, acc)
		ADDQ(U32(uint32(4*g.isa.Lanes)), shared)
		Label(label("own"))
		VADDPS(g.loadVec(at(residual, 0), t), acc, acc)
		g.storeVec(acc, at(y, 0), t)
	})
	end()
}

func (g *generator) conv(base.Func) {
	g.useExp()
	n, stride := length("y"), length("y")
	SHLQ(U8(2), stride)
	y, w := start("y"), start("w")
	xs := []reg.Register{start("x0"), start("x1"), start("x2"), start("x3")}
	g.each("each", n, append([]reg.Register{y, w}, xs...), func(t *tail) {
		acc := g.loadVec(at(xs[0], 0), t)
		VMULPS(g.loadVec(at(w, 0), t), acc, acc)
		tap := GP64()
		MOVQ(w, tap)
		for _, x := range xs[1:] {
			ADDQ(stride, tap)
			VFMADD231PS(g.loadVec(at(tap, 0), t), g.loadVec(at(x, 0), t), acc)
		}
		s := g.sigmoid(acc)
		VMULPS(acc, s, s)
		g.storeVec(s, at(y, 0), t)
	})
	end()
}

// rope takes whole vectors of pairs.
func (g *generator) rope(base.Func) {
	g.use("even", "odd")
	table, n := start("table"), length("table")
	half := GP64()
	LEAQ(Mem{Base: n, Index: n, Scale: 1}, half) // bytes of n/2 floats
	stride := Load(Param("stride"), GP64())
	SHLQ(U8(2), stride)
	x := start("x")
	Label("pairs")
	cos, sin := g.vec(), g.vec()
	if g.isa.Lanes == 16 {
		first, last := g.loadVec(at(table, 0), nil), g.loadVec(at(table, 64), nil)
		VMOVUPS(g.c("even"), cos)
		VMOVUPS(g.c("odd"), sin)
		VPERMI2PS(last, first, cos)
		VPERMI2PS(last, first, sin)
	} else {
		first, last := g.loadVec(at(table, 0), nil), g.loadVec(at(table, 32), nil)
		VSHUFPS(U8(0x88), last, first, cos)
		VSHUFPS(U8(0xdd), last, first, sin)
		VPERMPD(U8(0xd8), cos, cos)
		VPERMPD(U8(0xd8), sin, sin)
	}
	head, heads := GP64(), Load(Param("heads"), GP64())
	MOVQ(x, head)
	Label("heads")
	a, b := g.loadVec(at(head, 0), nil), g.loadVec(Mem{Base: head, Index: half, Scale: 1}, nil)
	u, v := g.vec(), g.vec()
	VMULPS(sin, b, u)
	VFMSUB231PS(cos, a, u)
	VMULPS(sin, a, v)
	VFMADD231PS(cos, b, v)
	VMOVUPS(u, at(head, 0))
	VMOVUPS(v, Mem{Base: head, Index: half, Scale: 1})
	ADDQ(stride, head)
	DECQ(heads)
	JNZ(LabelRef("heads"))
	ADDQ(U32(uint32(8*g.isa.Lanes)), table)
	ADDQ(U32(uint32(4*g.isa.Lanes)), x)
	SUBQ(U32(uint32(2*g.isa.Lanes)), n)
	JNZ(LabelRef("pairs"))
	end()
}

func (g *generator) ropePairs(base.Func) {
	table, n := start("table"), length("table")
	stride := Load(Param("stride"), GP64())
	SHLQ(U8(2), stride)
	x := start("x")
	Label("pairs")
	cos, sin := g.vec(), g.vec()
	VMOVSLDUP(at(table, 0), cos)
	VMOVSHDUP(at(table, 0), sin)
	head, heads := GP64(), Load(Param("heads"), GP64())
	MOVQ(x, head)
	Label("heads")
	a, swapped := g.loadVec(at(head, 0), nil), g.vec()
	VPERMILPS(U8(0xb1), a, swapped)
	VMULPS(sin, swapped, swapped)
	VFMADDSUB213PS(swapped, cos, a)
	VMOVUPS(a, at(head, 0))
	ADDQ(stride, head)
	DECQ(heads)
	JNZ(LabelRef("heads"))
	ADDQ(U32(uint32(4*g.isa.Lanes)), table)
	ADDQ(U32(uint32(4*g.isa.Lanes)), x)
	SUBQ(U32(uint32(g.isa.Lanes)), n)
	JNZ(LabelRef("pairs"))
	end()
}

// dequantise takes eight lanes in both instruction sets, as many as a word of 4-bit codes has.
func (g *generator) dequantise(f base.Func) {
	bits := f.Coding.Bits()
	n, dst, words, scales, biases, shifts := length("dst"), start("dst"), start("words"), start("scales"), start("biases"), start("shifts")
	wordStride, groupStride := Load(Param("wordStride"), GP64()), Load(Param("groupStride"), GP64())
	newVec := YMM
	if bits == 8 {
		newVec = XMM
	}
	perWord := 32 / bits
	parts := max(1, perWord/8)
	mask := newVec()
	VMOVUPS(g.table(fmt.Sprintf("vectormask%d", bits), 8, func(int) Constant { return U32(1<<bits - 1) }), mask)
	var shift []reg.VecVirtual
	for i := range parts {
		v := newVec()
		VMOVUPS(at(shifts, 32*i), v)
		shift = append(shift, v)
	}
	Label("groups")
	scale, bias := newVec(), newVec()
	biased := f.Coding.BiasBytes() > 0
	g.widenedAll(f.Coding, at(scales, 0), scale)
	if biased {
		g.widenedAll(f.Coding, at(biases, 0), bias)
	}
	left := Load(Param("group"), GP64())
	SUBQ(left, n)
	Label("words")
	for i, s := range shift {
		v := newVec()
		VPBROADCASTD(at(words, 0), v)
		VPSRLVD(s, v, v)
		switch {
		case f.Coding.Itself():
			VPAND(mask, v, v)
			VCVTDQ2PS(v, v)
		case !f.Coding.Stepped(): // e4m3, see product.lowByte
			VPSLLD(U8(24), v, v)
			VPSRAD(U8(4), v, v)
			VPAND(g.eight("float8", e4m3Bits), v, v)
			VMULPS(g.eight("power", e4m3Power), v, v)
		default:
			g.signed(f.Coding, v)
		}
		VMULPS(scale, v, v)
		if biased {
			VADDPS(bias, v, v)
		}
		VMOVUPS(v, at(dst, 32*i))
	}
	ADDQ(wordStride, words)
	ADDQ(U32(uint32(4*perWord)), dst)
	SUBQ(U32(uint32(perWord)), left)
	JNZ(LabelRef("words"))
	ADDQ(groupStride, scales)
	if biased {
		ADDQ(groupStride, biases)
	}
	TESTQ(n, n)
	JNZ(LabelRef("groups"))
	end()
}

// eight returns eight times a 32-bit constant in memory.
func (g *generator) eight(name string, value uint32) Mem {
	return g.table(name+"8", 8, func(int) Constant { return U32(value) })
}

// widenedAll sets v to a group's scale or bias as float32, in all lanes.
func (g *generator) widenedAll(c quant.Coding, from Mem, v reg.VecVirtual) {
	switch {
	case c.ScaleBytes() == 4:
		VBROADCASTSS(from, v)
	case c.ScaleBytes() == 2:
		VPBROADCASTW(from, v)
		VPSLLD(U8(16), v, v)
	case c.Factor(): // e4m3 without a sign
		VPBROADCASTB(from, v)
		VPSRLD(U8(24), v, v)
		VPSLLD(U8(20), v, v)
		VMULPS(g.eight("power", e4m3Power), v, v)
	default: // E8M0, see product.widened
		VPBROADCASTB(from, v)
		VPSLLD(U8(23), v, v)
		VPAND(g.table("exponent", 8, func(int) Constant { return U32(0xff << 23) }), v, v)
		VPMAXUD(g.table("leastE8M0", 8, func(int) Constant { return U32(leastE8M0) }), v, v)
	}
}

// widen8 reads whole vectors of codes and uses those that belong to the group.
func (g *generator) widen8(base.Func) {
	dst, codes, scales, n := start("dst"), start("codes"), start("scales"), length("dst")
	codeStride, scaleStride := Load(Param("codeStride"), GP64()), Load(Param("scaleStride"), GP64())
	SHLQ(U8(2), scaleStride)
	ahead := GP64() // bytes of the rows that are on their way meanwhile
	MOVQ(codeStride, ahead)
	SHLQ(U8(4), ahead)
	Label("rows")
	q, s, width := GP64(), GP64(), Load(Param("width"), GP64())
	MOVQ(codes, q)
	MOVQ(scales, s)
	ADDQ(U8(4), scales)
	SUBQ(width, n)
	Label("groups")
	scale := g.broadcast(at(s, 0))
	left := Load(Param("group"), GP64())
	SUBQ(left, width)
	part := func(t *tail) {
		v := g.vec()
		PREFETCHT0(Mem{Base: q, Index: ahead, Scale: 1})
		VPMOVSXBD(at(q, 0), v)
		VCVTDQ2PS(v, v)
		VMULPS(scale, v, v)
		g.storeVec(v, at(dst, 0), t)
	}
	step := uint32(g.isa.Lanes)
	CMPQ(left, U32(step))
	JB(LabelRef("tail"))
	Label("loop")
	part(nil)
	ADDQ(U32(4*step), dst)
	ADDQ(U32(step), q)
	SUBQ(U32(step), left)
	CMPQ(left, U32(step))
	JAE(LabelRef("loop"))
	Label("tail")
	TESTQ(left, left)
	JZ(LabelRef("next"))
	some := GP64()
	MOVQ(left, some)
	part(g.tail(some))
	LEAQ(Mem{Base: dst, Index: left, Scale: 4}, dst)
	ADDQ(left, q)
	Label("next")
	ADDQ(scaleStride, s)
	TESTQ(width, width)
	JNZ(LabelRef("groups"))
	ADDQ(codeStride, codes)
	TESTQ(n, n)
	JNZ(LabelRef("rows"))
	end()
}

// touch uses loads: of many prefetches at once, some are dropped.
func (g *generator) touch(base.Func) {
	row, stride, rows := start("mem"), Load(Param("stride"), GP64()), Load(Param("rows"), GP64())
	Label("rows")
	p, end := GP64(), Load(Param("width"), GP64())
	MOVQ(row, p)
	ADDQ(row, end)
	ANDQ(I8(-64), p)
	Label("lines")
	MOVB(at(p, 0), GP8())
	ADDQ(U8(64), p)
	CMPQ(p, end)
	JB(LabelRef("lines"))
	ADDQ(stride, row)
	DECQ(rows)
	JNZ(LabelRef("rows"))
	RET()
}
