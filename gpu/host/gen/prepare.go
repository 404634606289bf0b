package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/moeflux/moeflux-actor/gpu/host/gen/base"
)

// quantise rounds a row of X to codes, scales and sums.
func (g *generator) quantise(f base.Func) {
	name := f.Name
	q, scales, x := pointer("q"), pointer("scales"), pointer("x")
	group, groups := pointer("group"), pointer("groups")
	loop(name+"_group", groups, func() {
		most := g.most(name, x, group)
		bits, spare := GP32(), GP32()
		VMOVD(most.AsX(), bits)
		SUBL(U32(base.LeastBits), bits)
		CMPL(bits, U32(base.InfiniteBits-base.LeastBits))
		JAE(LabelRef(name + "_odd"))

		s := XMM()
		VMOVSS(g.same("127f", base.Bits127), s)
		VDIVSS(s, most.AsX(), s)
		VMOVSS(s, Mem{Base: scales})
		sum := g.codes(name, q, x, group, s)
		VCVTDQ2PS(sum, sum)
		VMULSS(s, sum, sum)
		VMOVSS(sum, Mem{Base: scales, Disp: 4})
		JMP(LabelRef(name + "_next"))

		// All zeros, or NaN in the scale: the codes are zero.
		Label(name + "_odd")
		MOVL(U32(0), spare)
		CMPL(bits, U32(0x80000000))
		JAE(LabelRef(name + "_zeros"))
		MOVL(U32(base.NaNBits), spare)
		Label(name + "_zeros")
		MOVL(spare, Mem{Base: scales})
		MOVL(spare, Mem{Base: scales, Disp: 4})
		zero, n := YMM(), GP64()
		VPXOR(zero, zero, zero)
		XORQ(n, n)
		Label(name + "_clear")
		VMOVUPS(zero, Mem{Base: q, Index: n, Scale: 1})
		ADDQ(U32(32), n)
		CMPQ(n, group)
		JB(LabelRef(name + "_clear"))

		Label(name + "_next")
		ADDQ(group, q)
		LEAQ(Mem{Base: x, Index: group, Scale: 4}, x)
		ADDQ(U32(8), scales)
	})
	end()
}

// most returns max |x| of a group in lane 0. It compares bits, by which NaNs are greatest.
func (g *generator) most(name string, x, group reg.Register) reg.VecVirtual {
	abs, m, n := g.keep(g.same("abs", base.AbsMask)), g.zero(), GP64()
	XORQ(n, n)
	Label(name + "_most")
	for i := range 32 / g.isa.Lanes {
		v := g.vec()
		g.and(Mem{Base: x, Index: n, Scale: 4, Disp: 4 * g.isa.Lanes * i}, abs, v)
		VPMAXUD(v, m, m)
	}
	ADDQ(U32(32), n)
	CMPQ(n, group)
	JB(LabelRef(name + "_most"))
	g.fold(m, func(a, b reg.VecVirtual) { VPMAXUD(a, b, b) })
	return m
}

// fold combines v's lanes in lane 0.
func (g *generator) fold(v reg.VecVirtual, f func(a, b reg.VecVirtual)) {
	if g.wide() {
		upper := YMM()
		VEXTRACTI64X4(U8(1), v, upper)
		f(upper, v.AsY().(reg.VecVirtual))
	}
	upper, low := XMM(), v.AsX().(reg.VecVirtual)
	VEXTRACTI128(U8(1), v.AsY(), upper)
	f(upper, low)
	VPSHUFD(U8(0x4e), low, upper)
	f(upper, low)
	VPSHUFD(U8(0xb1), low, upper)
	f(upper, low)
}

// codes writes round(x/s) of a group and returns the codes' sum in lane 0.
func (g *generator) codes(name string, q, x, group reg.Register, s reg.VecVirtual) reg.VecVirtual {
	scale, sum, n := g.vec(), g.zero(), GP64()
	VBROADCASTSS(s, scale)
	var order reg.VecVirtual
	if !g.wide() {
		order = g.keep(g.table("order", 8, func(i int) Constant { return U32(uint32(i%2*4 + i/2)) }))
	}
	XORQ(n, n)
	Label(name + "_codes")
	v := g.vecs(32 / g.isa.Lanes)
	for i := range v {
		VMOVUPS(Mem{Base: x, Index: n, Scale: 4, Disp: 4 * g.isa.Lanes * i}, v[i])
		VDIVPS(scale, v[i], v[i])
		VCVTPS2DQ(v[i], v[i])
		VPADDD(v[i], sum, sum)
		if g.wide() {
			VPMOVDB(v[i], Mem{Base: q, Index: n, Scale: 1, Disp: 16 * i})
		}
	}
	if !g.wide() {
		VPACKSSDW(v[1], v[0], v[0])
		VPACKSSDW(v[3], v[2], v[2])
		VPACKSSWB(v[2], v[0], v[0])
		VPERMD(v[0], order, v[0])
		VMOVUPS(v[0], Mem{Base: q, Index: n, Scale: 1})
	}
	ADDQ(U32(32), n)
	CMPQ(n, group)
	JB(LabelRef(name + "_codes"))
	g.fold(sum, func(a, b reg.VecVirtual) { VPADDD(a, b, b) })
	return sum.AsX().(reg.VecVirtual)
}

// arrange arranges rows of codes as a panel.
func (g *generator) arrange(f base.Func) {
	dst, src, stride := pointer("dst"), pointer("src"), pointer("stride")
	var masks []reg.VecVirtual
	for _, s := range base.Swaps[f.Coding.Bits()] {
		masks = append(masks, g.keep(g.same("swap", s.Mask)))
	}
	loop(f.Name+"_block", pointer("blocks"), func() {
		g.transposed(src, stride, func(word, half int, v reg.VecVirtual) {
			for i, s := range base.Swaps[f.Coding.Bits()] {
				t := g.vec()
				VPSRLD(U8(s.Shift), v, t)
				g.xor(v, t, t)
				g.and(masks[i], t, t)
				g.xor(t, v, v)
				VPSLLD(U8(s.Shift), t, t)
				g.xor(t, v, v)
			}
			VMOVUPS(v, Mem{Base: dst, Disp: 64*word + 32*half})
		})
		ADDQ(U32(16), src)
		ADDQ(U32(256), dst)
	})
	end()
}

// transposed reads four words of each of 16 rows and calls use with vectors that have one word of
// each row. AVX2 does this in halves.
func (g *generator) transposed(src, stride reg.Register, use func(word, half int, v reg.VecVirtual)) {
	quarter := GP64() // four rows on
	LEAQ(Mem{Base: stride, Index: stride, Scale: 1}, quarter)
	ADDQ(quarter, quarter)
	panel := GP64() // all rows on: the next panel's
	LEAQ(Mem{Base: quarter, Index: quarter, Scale: 1}, panel)
	ADDQ(panel, panel)
	for half := range 16 / g.isa.Lanes {
		var rows [4]reg.VecVirtual // rows i, i+4, … of the half, one in each 128 bits
		for i := range rows {
			p := GP64()
			MOVQ(src, p)
			for range 8*half + i {
				ADDQ(stride, p)
			}
			rows[i] = g.vec()
			PREFETCHT1(Mem{Base: p, Index: panel, Scale: 1})
			VMOVDQU(Mem{Base: p}, rows[i].AsX())
			for part := 1; part < g.isa.Lanes/4; part++ {
				ADDQ(quarter, p)
				PREFETCHT1(Mem{Base: p, Index: panel, Scale: 1})
				if g.wide() {
					VINSERTI32X4(U8(part), Mem{Base: p}, rows[i], rows[i])
				} else {
					VINSERTI128(U8(part), Mem{Base: p}, rows[i], rows[i])
				}
			}
		}
		low, high := g.vecs(2), g.vecs(2)
		for i := range 2 {
			VPUNPCKLDQ(rows[2*i+1], rows[2*i], low[i])
			VPUNPCKHDQ(rows[2*i+1], rows[2*i], high[i])
		}
		for i, pair := range [][]reg.VecVirtual{low, high} {
			a, b := g.vec(), g.vec()
			VPUNPCKLQDQ(pair[1], pair[0], a)
			VPUNPCKHQDQ(pair[1], pair[0], b)
			use(2*i, half, a)
			use(2*i+1, half, b)
		}
	}
}

// arrangeScales arranges rows of scales as a panel.
func (g *generator) arrangeScales(f base.Func) {
	dst, src, stride := pointer("dst"), pointer("src"), pointer("stride")
	mask := g.keep(g.same("low", 0xffff))
	loop(f.Name+"_block", pointer("blocks"), func() {
		g.transposed(src, stride, func(word, half int, v reg.VecVirtual) {
			upper := g.vec()
			VPSRLD(U8(16), v, upper)
			for i, w := range []reg.VecVirtual{v, upper} {
				to := Mem{Base: dst, Disp: 32*(2*word+i) + 16*half}
				if g.wide() {
					VPMOVDW(w, to)
					continue
				}
				VPAND(mask, w, w)
				VPACKUSDW(w, w, w)
				VPERMQ(U8(0x08), w, w)
				VMOVDQU(w.AsX(), to)
			}
		})
		ADDQ(U32(16), src)
		ADDQ(U32(256), dst)
	})
	end()
}
