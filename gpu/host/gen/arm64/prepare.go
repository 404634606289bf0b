package main

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/gpu/host/gen/base"
)

// quantise rounds a row of X to codes, scales and sums.
func quantise(a *assembly, _ base.Func) {
	const (
		q, out, x, size, count, left, again, bits, spare gen = 0, 1, 2, 3, 4, 5, 6, 7, 8
		v                                                vec = 0 // to V3
		most, scale, sum, by127, abs                     vec = 16, 17, 18, 19, 20
	)
	a.ins("MOVD", a.arg("q"), q)
	a.ins("MOVD", a.arg("scales"), out)
	a.ins("MOVD", a.arg("x"), x)
	a.ins("MOVD", a.arg("group"), size)
	a.ins("MOVD", a.arg("groups"), count)
	a.ins("MOVD", imm(base.Bits127), spare)
	a.word(dupRegister(by127, spare))
	a.ins("MOVD", imm(base.AbsMask), spare)
	a.word(dupRegister(abs, spare))
	a.loop(count, func() {
		odd, zeros, write, done := a.newLabel(), a.newLabel(), a.newLabel(), a.newLabel()
		a.ins("MOVD", x, again)
		a.ins("LSR", imm(4), size, left)
		a.zero(most)
		// the largest |x|, by the numbers' bits: NaNs are greatest
		a.loop(left, func() {
			a.take(again, v, v+1, v+2, v+3)
			for i := range vec(4) {
				a.word(and.three(v+i, v+i, abs))
				a.word(umax.three(most, most, v+i))
			}
		})
		a.word(umaxv.two(most, most))
		a.ins("VMOV", most.String()+".S[0]", bits)
		a.ins("LSR", imm(4), size, left)
		a.ins("MOVD", imm(base.LeastBits), spare)
		a.ins("CMPW", spare, bits)
		a.ins("BLO", zeros)
		a.ins("MOVD", imm(base.InfiniteBits), spare)
		a.ins("CMPW", spare, bits)
		a.ins("BHS", odd)

		a.word(fdiv.three(scale, most, by127))
		a.word(dupWord(scale, scale, 0))
		a.zero(sum)
		a.loop(left, func() {
			a.take(x, v, v+1, v+2, v+3)
			for i := range vec(4) {
				a.word(fdiv.three(v+i, v+i, scale))
				a.word(fcvtns.two(v+i, v+i))
				a.word(add.three(sum, sum, v+i))
			}
			a.word(uzp1h.three(v, v, v+1))
			a.word(uzp1h.three(v+2, v+2, v+3))
			a.word(uzp1b.three(v, v, v+2))
			a.put(q, v)
		})
		a.word(addv.two(sum, sum))
		a.word(scvtf.two(sum, sum))
		a.word(fmul.three(sum, sum, scale))
		a.word(zip1.three(scale, scale, sum))
		a.ins("FMOVD.P", fmt.Sprintf("F%d", scale), at(out, 8))
		a.ins("B", done)

		// All zeros, or NaN in the scale: the codes are zero.
		a.place(odd)
		a.ins("MOVD", imm(base.NaNBits), spare)
		a.ins("B", write)
		a.place(zeros)
		a.ins("MOVD", imm(0), spare)
		a.place(write)
		a.ins("MOVW.P", spare, at(out, 4))
		a.ins("MOVW.P", spare, at(out, 4))
		a.zero(v)
		a.loop(left, func() { a.put(q, v) })
		a.ins("ADD", fmt.Sprintf("%v<<2", size), x)
		a.place(done)
	})
	a.ret()
}

// Registers of the functions that arrange rows as panels.
const (
	dst    gen = 0
	src    gen = 1
	stride gen = 2
	blocks gen = 3
	next   gen = 4
	spare  gen = 5
)

func beginArrange(a *assembly) {
	a.ins("MOVD", a.arg("dst"), dst)
	a.ins("MOVD", a.arg("src"), src)
	a.ins("MOVD", a.arg("stride"), stride)
	a.ins("MOVD", a.arg("blocks"), blocks)
}

// transposed reads four words of each of the next four rows. It writes vectors with one word of
// each row to V(to), V(to+4), ….
func transposed(a *assembly, to vec) {
	for i := range vec(4) {
		a.load(next, i)
		a.ins("ADD", stride, next)
	}
	a.word(trn1.three(4, 0, 1))
	a.word(trn2.three(5, 0, 1))
	a.word(trn1.three(6, 2, 3))
	a.word(trn2.three(7, 2, 3))
	a.word(zip1d.three(to, 4, 6))
	a.word(zip1d.three(to+4, 5, 7))
	a.word(zip2d.three(to+8, 4, 6))
	a.word(zip2d.three(to+12, 5, 7))
}

// arrange arranges rows of codes as a panel.
func arrange(a *assembly, f base.Func) {
	beginArrange(a)
	for i, s := range base.Swaps[f.Coding.Bits()] {
		a.ins("MOVD", imm(s.Mask), spare)
		a.word(dupRegister(8+vec(i), spare))
	}
	a.loop(blocks, func() {
		a.ins("MOVD", src, next)
		for quarter := range vec(4) {
			transposed(a, 16+quarter)
		}
		for word := range vec(4) {
			for quarter := range vec(4) {
				v := 16 + 4*word + quarter
				for i, s := range base.Swaps[f.Coding.Bits()] {
					a.word(ushrWords.shift(0, v, s.Shift))
					a.word(eor.three(0, 0, v))
					a.word(and.three(0, 0, 8+vec(i)))
					a.word(shlWords.shift(1, 0, s.Shift))
					a.word(eor.three(v, v, 0))
					a.word(eor.three(v, v, 1))
				}
			}
			v := 16 + 4*word
			a.put(dst, v, v+1, v+2, v+3)
		}
		a.ins("ADD", imm(16), src)
	})
	a.ret()
}

// arrangeScales arranges rows of scales or biases as a panel.
func arrangeScales(a *assembly, _ base.Func) {
	beginArrange(a)
	a.loop(blocks, func() {
		a.ins("MOVD", src, next)
		for quarter := range vec(4) {
			transposed(a, 16+quarter)
		}
		for word := range vec(4) { // two groups
			v := 16 + 4*word
			a.word(uzp1h.three(0, v, v+1))
			a.word(uzp1h.three(1, v+2, v+3))
			a.word(uzp2h.three(2, v, v+1))
			a.word(uzp2h.three(3, v+2, v+3))
			a.put(dst, 0, 1, 2, 3)
		}
		a.ins("ADD", imm(16), src)
	})
	a.ret()
}
