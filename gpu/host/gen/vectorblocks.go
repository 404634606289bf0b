package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/moeflux/moeflux-actor/gpu/host/gen/base"
)

// transpose takes as many rows as there are lanes, and four columns, at a time: block i of register
// r holds row 4i+r, and four such registers are transposed within their blocks of four lanes.
func (g *generator) transpose(base.Func) {
	dsts, src := start("dst"), start("src")
	ds, ss, ss3 := Load(Param("dstStride"), GP64()), Load(Param("srcStride"), GP64()), GP64()
	left := Load(Param("rows"), GP64())
	SHLQ(U8(2), ds)
	SHLQ(U8(2), ss)
	Label("rows")
	dst, columns := GP64(), Load(Param("columns"), GP64())
	MOVQ(dsts, dst)
	var rows [4]reg.Register
	for i := range rows {
		rows[i] = GP64()
		if i == 0 {
			MOVQ(src, rows[0])
		} else {
			LEAQ(Mem{Base: rows[i-1], Index: ss, Scale: 1}, rows[i])
		}
	}
	SHLQ(U8(2), ss) // four rows
	LEAQ(Mem{Base: ss, Index: ss, Scale: 2}, ss3)
	Label("loop")
	var v [4]reg.VecVirtual
	for i, r := range rows {
		v[i] = g.vec()
		VMOVUPS(at(r, 0), v[i].AsX())
		if g.isa.Lanes == 16 {
			VINSERTF32X4(U8(1), Mem{Base: r, Index: ss, Scale: 1}, v[i], v[i])
			VINSERTF32X4(U8(2), Mem{Base: r, Index: ss, Scale: 2}, v[i], v[i])
			VINSERTF32X4(U8(3), Mem{Base: r, Index: ss3, Scale: 1}, v[i], v[i])
		} else {
			VINSERTF128(U8(1), Mem{Base: r, Index: ss, Scale: 1}, v[i], v[i])
		}
		ADDQ(U8(16), r)
	}
	var t [4]reg.VecVirtual
	for i := range t {
		t[i] = g.vec()
	}
	VUNPCKLPS(v[1], v[0], t[0])
	VUNPCKHPS(v[1], v[0], t[1])
	VUNPCKLPS(v[3], v[2], t[2])
	VUNPCKHPS(v[3], v[2], t[3])
	for i := range v {
		if i%2 == 0 {
			VUNPCKLPD(t[2+i/2], t[i/2], v[i])
		} else {
			VUNPCKHPD(t[2+i/2], t[i/2], v[i])
		}
		VMOVUPS(v[i], at(dst, 0))
		ADDQ(ds, dst)
	}
	SUBQ(U8(4), columns)
	JNZ(LabelRef("loop"))
	LEAQ(Mem{Base: src, Index: ss, Scale: uint8(g.isa.Lanes / 4)}, src)
	SHRQ(U8(2), ss)
	ADDQ(U8(4*g.isa.Lanes), dsts)
	SUBQ(U8(g.isa.Lanes), left)
	JNZ(LabelRef("rows"))
	end()
}

// transpose8 takes as many rows as there are lanes, and sixteen codes of each, which are four
// words: block i of register r holds row 4i+r. The words are transposed within their blocks of four
// lanes, and their bytes are widened.
func (g *generator) transpose8(base.Func) {
	left, width := AllocLocal(8), AllocLocal(8) // counters in memory: registers are short
	MOVQ(Load(Param("rows"), GP64()), left)
	dsts, codes, scales := start("dst"), start("codes"), start("scales")
	ds, cs4, cs12 := Load(Param("dstStride"), GP64()), Load(Param("codeStride"), GP64()), GP64()
	SHLQ(U8(2), ds)
	SHLQ(U8(2), cs4)
	LEAQ(Mem{Base: cs4, Index: cs4, Scale: 2}, cs12)
	Label("rows")
	MOVQ(Load(Param("width"), GP64()), width)
	dst, s := GP64(), GP64()
	MOVQ(dsts, dst)
	MOVQ(scales, s)
	cs := Load(Param("codeStride"), GP64())
	var rows [4]reg.Register
	for i := range rows {
		rows[i] = GP64()
		if i == 0 {
			MOVQ(codes, rows[0])
		} else {
			LEAQ(Mem{Base: rows[i-1], Index: cs, Scale: 1}, rows[i])
		}
	}
	Label("groups")
	scale := g.loadVec(at(s, 0), nil)
	next := Load(Param("scaleStride"), GP64())
	LEAQ(Mem{Base: s, Index: next, Scale: 4}, s)
	some := Load(Param("group"), GP64())
	SUBQ(some, width)
	Label("loop")
	for _, w := range g.words(rows, cs4, cs12) {
		for k := range 4 {
			x := g.vec()
			if k < 3 {
				VPSLLD(U8(24-8*k), w, x)
				VPSRAD(U8(24), x, x)
			} else {
				VPSRAD(U8(24), w, x)
			}
			VCVTDQ2PS(x, x)
			VMULPS(scale, x, x)
			VMOVUPS(x, at(dst, 0))
			ADDQ(ds, dst)
		}
	}
	SUBQ(U8(16), some)
	JNZ(LabelRef("loop"))
	CMPQ(width, U8(0))
	JNE(LabelRef("groups"))
	LEAQ(Mem{Base: codes, Index: cs4, Scale: uint8(g.isa.Lanes / 4)}, codes)
	ADDQ(U8(4*g.isa.Lanes), scales)
	ADDQ(U8(4*g.isa.Lanes), dsts)
	SUBQ(U8(g.isa.Lanes), left)
	JNZ(LabelRef("rows"))
	end()
}

// words reads sixteen bytes of each row. It returns the rows' first words, their second words, and
// so on, and advances rows. r4 and r12 are the bytes of four and of twelve rows.
func (g *generator) words(rows [4]reg.Register, r4, r12 reg.Register) (words [4]reg.VecVirtual) {
	var v, t [4]reg.VecVirtual
	for i, r := range rows {
		v[i], t[i], words[i] = g.vec(), g.vec(), g.vec()
		VMOVUPS(at(r, 0), v[i].AsX())
		if g.isa.Lanes == 16 {
			VINSERTI32X4(U8(1), Mem{Base: r, Index: r4, Scale: 1}, v[i], v[i])
			VINSERTI32X4(U8(2), Mem{Base: r, Index: r4, Scale: 2}, v[i], v[i])
			VINSERTI32X4(U8(3), Mem{Base: r, Index: r12, Scale: 1}, v[i], v[i])
		} else {
			VINSERTI128(U8(1), Mem{Base: r, Index: r4, Scale: 1}, v[i], v[i])
		}
		ADDQ(U8(16), r)
	}
	VPUNPCKLDQ(v[1], v[0], t[0])
	VPUNPCKHDQ(v[1], v[0], t[1])
	VPUNPCKLDQ(v[3], v[2], t[2])
	VPUNPCKHDQ(v[3], v[2], t[3])
	for i := range 2 {
		VPUNPCKLQDQ(t[2+i], t[i], words[2*i])
		VPUNPCKHQDQ(t[2+i], t[i], words[2*i+1])
	}
	return words
}

// multiply has tiles of 8 (AVX-512), 4, 2 and 1 rows by two vectors of columns. Each element is one
// chain of fused multiply-adds over the depth.
func (g *generator) multiply(base.Func) {
	g.bands(nil)
	end()
}

// multiplyAhead is multiply that also prefetches lines.
func (g *generator) multiplyAhead(base.Func) {
	l := &lines{next: GP64(), last: AllocLocal(8), bytes: 4 * g.isa.Lanes}
	place, last := Load(Param("next"), GP64()), GP64()
	MOVQ(at(place, 0), l.next)
	MOVQ(at(place, 8), last)
	MOVQ(last, l.last)
	g.bands(l)
	place = Load(Param("next"), GP64())
	MOVQ(l.next, at(place, 0))
	end()
}

// lines are cache lines to prefetch in the iterations over the depth, so that they arrive while
// products are computed.
type lines struct {
	next  reg.Register
	last  Mem // the last place of next
	bytes int // in a step
}

func (l *lines) step() {
	if l == nil {
		return
	}
	PREFETCHT0(at(l.next, 0))
	ADDQ(U8(uint8(l.bytes)), l.next)
	CMPQ(l.next, l.last)
	CMOVQHI(l.last, l.next)
}

// bands writes the loops of multiply.
func (g *generator) bands(l *lines) {
	rows, left := AllocLocal(8), AllocLocal(8) // counters in memory: registers are short
	MOVQ(Load(Param("rows"), GP64()), rows)
	a, c := start("a"), start("c")
	as, bs := Load(Param("aStride"), GP64()), Load(Param("bStride"), GP64())
	SHLQ(U8(2), as)
	SHLQ(U8(2), bs)
	for n := g.isa.Lanes / 2; n > 0; n /= 2 {
		Label(fmt.Sprintf("rows%d", n))
		CMPQ(rows, U32(uint32(n)))
		JB(LabelRef(fmt.Sprintf("below%d", n)))
		g.band(n, a, b{as, bs, left, l}, c)
		advance := GP64()
		MOVQ(as, advance)
		IMUL3Q(U32(uint32(n)), advance, advance)
		ADDQ(advance, a)
		advance = GP64()
		Load(Param("cStride"), advance)
		IMUL3Q(U32(uint32(4*n)), advance, advance)
		ADDQ(advance, c)
		SUBQ(U32(uint32(n)), rows)
		JMP(LabelRef(fmt.Sprintf("rows%d", n)))
		Label(fmt.Sprintf("below%d", n))
	}
}

// b holds the strides of a and b in bytes, the columns left to do, and the lines to prefetch.
type b struct {
	as, bs reg.Register
	left   Mem
	lines  *lines
}

// band is n rows and all columns.
func (g *generator) band(n int, a reg.Register, s b, c reg.Register) {
	left := s.left
	MOVQ(Load(Param("columns"), GP64()), left)
	bc, cc := start("b"), GP64()
	MOVQ(c, cc)
	name := func(part string) string { return fmt.Sprintf("band%d_%s", n, part) }
	CMPQ(left, U32(uint32(2*g.isa.Lanes)))
	JB(LabelRef(name("tail")))
	Label(name("columns"))
	g.tile(name("whole"), n, a, bc, cc, s, [2]*tail{})
	ADDQ(U32(uint32(8*g.isa.Lanes)), bc)
	ADDQ(U32(uint32(8*g.isa.Lanes)), cc)
	SUBQ(U32(uint32(2*g.isa.Lanes)), left)
	CMPQ(left, U32(uint32(2*g.isa.Lanes)))
	JAE(LabelRef(name("columns")))
	Label(name("tail"))
	CMPQ(left, U8(0))
	JE(LabelRef(name("done")))
	first, second, lanes := GP64(), GP64(), GP64()
	MOVQ(U32(uint32(g.isa.Lanes)), lanes)
	MOVQ(left, first)
	CMPQ(first, lanes)
	CMOVQHI(lanes, first)
	MOVQ(left, second)
	SUBQ(first, second)
	g.tile(name("part"), n, a, bc, cc, s, [2]*tail{g.tail(first), g.tail(second)})
	Label(name("done"))
}

// strided returns the addresses of n rows. Groups of four share a base.
func strided(p, stride reg.Register, n int) []Mem {
	var places []Mem
	var triple reg.Register
	if n > 3 {
		triple = GP64()
		LEAQ(Mem{Base: stride, Index: stride, Scale: 2}, triple)
	}
	bases := []reg.Register{p}
	if n > 4 {
		far := GP64()
		LEAQ(Mem{Base: p, Index: stride, Scale: 4}, far)
		bases = append(bases, far)
	}
	for i := range n {
		m := Mem{Base: bases[i/4]}
		switch i % 4 {
		case 1, 2:
			m.Index, m.Scale = stride, uint8(i%4)
		case 3:
			m.Index, m.Scale = triple, 1
		}
		places = append(places, m)
	}
	return places
}

func (g *generator) tile(name string, n int, a, bc, cc reg.Register, s b, t [2]*tail) {
	acc := make([][2]reg.VecVirtual, n)
	for i := range acc {
		acc[i] = [2]reg.VecVirtual{g.zero(), g.zero()}
	}
	next := func(m Mem) Mem {
		m.Disp = 4 * g.isa.Lanes
		return m
	}
	sum := GP8()
	Load(Param("sum"), sum)
	TESTB(sum, sum)
	JZ(LabelRef(name + "_begin"))
	cs := Load(Param("cStride"), GP64())
	SHLQ(U8(2), cs)
	for i, m := range strided(cc, cs, n) {
		for j, place := range []Mem{m, next(m)} {
			switch {
			case t[j] == nil:
				VMOVUPS(place, acc[i][j])
			case g.isa.Lanes == 16:
				VMOVUPS_Z(place, t[j].mask, acc[i][j])
			default:
				VMASKMOVPS(place, t[j].mask, acc[i][j])
			}
		}
	}
	Label(name + "_begin")
	ap, bp, depth := GP64(), GP64(), Load(Param("depth"), GP64())
	MOVQ(a, ap)
	MOVQ(bc, bp)
	places := strided(ap, s.as, n)
	Label(name + "_depth")
	b0 := g.loadVec(at(bp, 0), t[0])
	b1 := g.loadVec(at(bp, 4*g.isa.Lanes), t[1])
	for i, m := range places {
		v := g.broadcast(m)
		VFMADD231PS(b0, v, acc[i][0])
		VFMADD231PS(b1, v, acc[i][1])
	}
	s.lines.step()
	ADDQ(U8(4), ap)
	if n > 4 {
		ADDQ(U8(4), places[4].Base)
	}
	ADDQ(s.bs, bp)
	DECQ(depth)
	JNZ(LabelRef(name + "_depth"))
	cs = Load(Param("cStride"), GP64())
	SHLQ(U8(2), cs)
	for i, m := range strided(cc, cs, n) {
		g.storeVec(acc[i][0], m, t[0])
		g.storeVec(acc[i][1], next(m), t[1])
	}
}

func (g *generator) softmax(base.Func) {
	g.useExp()
	scores, stats, acc, rows := start("scores"), start("stats"), start("acc"), length("stats")
	SHRQ(U8(1), rows)
	dim := Load(Param("dim"), GP64())
	n := base.SoftmaxPositions / g.isa.Lanes
	Label("rows")
	top := g.vec()
	for i := range n {
		if i == 0 {
			VMOVUPS(at(scores, 0), top)
		} else {
			VMAXPS(at(scores, 4*i*g.isa.Lanes), top, top)
		}
	}
	high := g.lanes0(top, VMAXPS4)
	before := XMM()
	VMOVSS(at(stats, 0), before)
	VMAXSS(before, high, high)
	VUCOMISS(before, high)
	JE(LabelRef("same"))
	{ // scale what there is by e^(before - max)
		d, f := XMM(), g.vec()
		VSUBSS(high, before, d)
		VBROADCASTSS(d, f)
		f = g.exp(f)
		s := XMM()
		VMULSS(at(stats, 4), f.AsX(), s)
		VMOVSS(s, at(stats, 4))
		VMOVSS(high, at(stats, 0))
		p, left := GP64(), GP64()
		MOVQ(acc, p)
		MOVQ(dim, left)
		g.each("scale", left, []reg.Register{p}, func(t *tail) {
			v := g.loadVec(at(p, 0), t)
			VMULPS(f, v, v)
			g.storeVec(v, at(p, 0), t)
		})
	}
	Label("same")
	topAll := g.vec()
	VBROADCASTSS(at(stats, 0), topAll)
	sums := []reg.VecVirtual{g.zero(), g.zero()}
	pairs := GP64()
	MOVQ(U32(uint32(n/len(sums))), pairs)
	Label("weights")
	for i, sum := range sums {
		v := g.loadVec(at(scores, 4*i*g.isa.Lanes), nil)
		VSUBPS(topAll, v, v)
		e := g.exp(v)
		g.storeVec(e, at(scores, 4*i*g.isa.Lanes), nil)
		VADDPS(e, sum, sum)
	}
	ADDQ(U32(uint32(4*len(sums)*g.isa.Lanes)), scores)
	DECQ(pairs)
	JNZ(LabelRef("weights"))
	VADDPS(sums[1], sums[0], sums[0])
	sum := g.lanes0(sums[0], VADDPS4)
	VADDSS(at(stats, 4), sum, sum)
	VMOVSS(sum, at(stats, 4))
	ADDQ(U8(8), stats)
	LEAQ(Mem{Base: acc, Index: dim, Scale: 4}, acc)
	DECQ(rows)
	JNZ(LabelRef("rows"))
	end()
}
