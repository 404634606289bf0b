package main

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/gpu/host/gen/base"
)

// dequantise takes a word of codes at a time.
func dequantise(a *assembly, f base.Func) {
	bits := f.Coding.Bits()
	const dst, words, scales, biases, n, group, wordStride, groupStride, left, t gen = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
	const mask, scale, bias, word, shift, table, least, sign, signs vec = 16, 17, 18, 19, 20, 24, 25, 26, 27 // shifts to V23
	vectors := 32 / bits / 4
	a.base("dst", dst)
	a.length("dst", n)
	a.base("words", words)
	a.base("scales", scales)
	a.base("biases", biases)
	a.base("shifts", t)
	a.ins("MOVD", a.arg("group"), group)
	a.ins("MOVD", a.arg("wordStride"), wordStride)
	a.ins("MOVD", a.arg("groupStride"), groupStride)
	for i := range vec(vectors) {
		a.take(t, shift+i)
		a.word(neg.two(shift+i, shift+i))
	}
	a.ins("MOVD", imm(1<<bits-1), t)
	a.word(dupRegister(mask, t))
	if !f.Coding.Itself() {
		a.values(f.Coding, table, t)
		a.leastPower(least, t)
		a.ins("MOVD", imm(1<<31), t)
		a.word(dupRegister(signs, t))
	}
	groups := a.label()
	if powers(f) {
		a.ins("MOVBU", at(scales, 0), t)
		a.word(dupRegister(scale, t))
		power(a, scale, least)
		a.ins("ADD", groupStride, scales)
	} else {
		for _, s := range []struct {
			from gen
			to   vec
		}{{scales, scale}, {biases, bias}} {
			a.ins("MOVHU", at(s.from, 0), t)
			a.ins("LSL", imm(16), t)
			a.word(dupRegister(s.to, t))
			a.ins("ADD", groupStride, s.from)
		}
	}
	a.ins("MOVD", group, left)
	wordsLoop := a.label()
	a.ins("MOVWU", at(words, 0), t)
	a.word(dupRegister(word, t))
	for i := range vec(vectors) {
		a.word(ushl.three(i, word, shift+i))
		a.word(and.three(i, i, mask))
		if !f.Coding.Itself() {
			a.word(shlWords.shift(sign, i, 28)) // zero has one, too
			a.value(f.Coding, i, i, table)
			a.word(bit.three(i, sign, signs))
			a.word(fmul.three(i, i, scale))
		} else {
			a.word(ucvtf.two(i, i))
			a.word(fmul.three(i, i, scale))
			a.word(fadd.three(i, i, bias))
		}
		a.put(dst, i)
	}
	a.ins("ADD", wordStride, words)
	a.ins("SUBS", imm(32/bits), left)
	a.ins("BNE", wordsLoop)
	a.ins("SUBS", group, n)
	a.ins("BNE", groups)
	a.ret()
}

// widen8 takes sixteen codes of a group while that many are left, then single ones.
func widen8(a *assembly, _ base.Func) {
	const dst, codes, scales, n, group, width, codeStride, scaleStride gen = 0, 1, 2, 3, 4, 5, 6, 7
	const q, s, some, left, spare gen = 8, 9, 10, 11, 12
	a.base("dst", dst)
	a.length("dst", n)
	a.base("codes", codes)
	a.base("scales", scales)
	for i, r := range []gen{group, width, codeStride, scaleStride} {
		a.ins("MOVD", a.arg([]string{"group", "width", "codeStride", "scaleStride"}[i]), r)
	}
	a.ins("LSL", imm(2), scaleStride)
	rows := a.label()
	a.ins("MOVD", codes, q)
	a.ins("MOVD", scales, s)
	a.ins("SUB", width, n)
	a.ins("MOVD", width, some)
	groups := a.label()
	tail, next := a.newLabel(), a.newLabel()
	float.get(a, s, number)
	a.ins("ADD", scaleStride, s)
	a.word(dupWord(number, number, 0))
	a.ins("SUB", group, some)
	a.ins("MOVD", group, left)
	a.ins("CMP", imm(16), left)
	a.ins("BLT", tail)
	loop := a.label()
	a.take(q, 0)
	a.word(sxtl.two(1, 0))
	a.word(sxtl2.two(2, 0))
	a.word(sxtlw.two(4, 1))
	a.word(sxth2.two(5, 1))
	a.word(sxtlw.two(6, 2))
	a.word(sxth2.two(7, 2))
	for v := vec(4); v < 8; v++ {
		a.word(scvtf.two(v, v))
		a.word(fmul.three(v, v, number))
	}
	a.put(dst, 4, 5, 6, 7)
	a.ins("SUB", imm(16), left)
	a.ins("CMP", imm(16), left)
	a.ins("BGE", loop)
	a.place(tail)
	a.ins("CBZ", left, next)
	a.loop(left, func() {
		a.ins("MOVB.P", at(q, 1), spare)
		a.ins("SCVTFWS", spare, "F0")
		a.word(fmul.three(0, 0, number))
		float.put(a, dst, 0)
	})
	a.place(next)
	a.ins("CBNZ", some, groups)
	a.ins("ADD", codeStride, codes)
	a.ins("ADD", imm(4), scales)
	a.ins("CBNZ", n, rows)
	a.ret()
}

// transpose8 takes four rows of sixteen codes, which are four words each. The words are transposed
// and their bytes widened.
func transpose8(a *assembly, _ base.Func) {
	const dsts, codes, scales, rows, group, width, dstStride, scaleStride gen = 6, 7, 8, 9, 10, 11, 12, 13
	const dst, column, s, some, left gen = 14, 15, 19, 20, 21
	a.base("dst", dsts)
	a.base("codes", codes)
	a.base("scales", scales)
	for i, r := range []gen{group, width, dstStride, stride, scaleStride, rows} {
		a.ins("MOVD", a.arg([]string{"group", "width", "dstStride", "codeStride", "scaleStride", "rows"}[i]), r)
	}
	a.ins("LSL", imm(2), dstStride)
	a.ins("LSL", imm(2), scaleStride)
	a.ins("LSR", imm(2), rows)
	a.loop(rows, func() {
		a.ins("MOVD", dsts, dst)
		a.ins("MOVD", codes, column)
		a.ins("MOVD", scales, s)
		a.ins("MOVD", width, some)
		groups := a.label()
		vector.get(a, s, number)
		a.ins("ADD", scaleStride, s)
		a.ins("SUB", group, some)
		a.ins("LSR", imm(4), group, left)
		a.loop(left, func() {
			a.ins("MOVD", column, next)
			transposed(a, 16)
			for word := range vec(4) {
				for k := range 4 {
					v := 16 + 4*word
					if k < 3 {
						a.word(shlWords.shift(0, v, 24-8*k))
						v = 0
					}
					a.word(sshrWords.shift(0, v, 24))
					a.word(scvtf.two(0, 0))
					a.word(fmul.three(0, 0, number))
					vector.set(a, dst, 0)
					a.ins("ADD", dstStride, dst)
				}
			}
			a.ins("ADD", imm(16), column)
		})
		a.ins("CBNZ", some, groups)
		a.ins("ADD", stride.String()+"<<2", codes)
		a.ins("ADD", imm(16), scales)
		a.ins("ADD", imm(16), dsts)
	})
	a.ret()
}

// transpose takes squares of four by four.
func transpose(a *assembly, _ base.Func) {
	// four rows from R8 on
	const dst, src, dstStride, srcStride, rows, columns, to, row, left gen = 0, 1, 2, 3, 4, 5, 6, 8, 12
	a.base("dst", dst)
	a.base("src", src)
	a.ins("MOVD", a.arg("dstStride"), dstStride)
	a.ins("MOVD", a.arg("srcStride"), srcStride)
	a.ins("MOVD", a.arg("rows"), rows)
	a.ins("MOVD", a.arg("columns"), columns)
	a.ins("LSL", imm(2), dstStride)
	a.ins("LSL", imm(2), srcStride)
	a.ins("LSR", imm(2), rows)
	a.ins("LSR", imm(2), columns)
	a.loop(rows, func() {
		a.ins("MOVD", src, row)
		for r := range gen(3) {
			a.ins("ADD", srcStride, row+r, row+r+1)
		}
		a.ins("ADD", srcStride, row+3, src)
		a.ins("MOVD", dst, to)
		a.ins("MOVD", columns, left)
		a.loop(left, func() {
			for r := range gen(4) {
				a.take(row+r, vec(r))
			}
			a.word(trn1.three(4, 0, 1))
			a.word(trn2.three(5, 0, 1))
			a.word(trn1.three(6, 2, 3))
			a.word(trn2.three(7, 2, 3))
			a.word(zip1d.three(0, 4, 6))
			a.word(zip1d.three(1, 5, 7))
			a.word(zip2d.three(2, 4, 6))
			a.word(zip2d.three(3, 5, 7))
			for c := range vec(4) {
				a.store(to, c)
				a.ins("ADD", dstStride, to)
			}
		})
		a.ins("ADD", imm(16), dst)
	})
	a.ret()
}

// Registers of multiply; strides are in bytes.
const (
	mulC       gen = 0
	mulA       gen = 1
	mulB       gen = 2
	mulCStride gen = 3
	mulAStride gen = 4
	mulBStride gen = 5
	mulRows    gen = 6
	mulDepth   gen = 7
	mulSum     gen = 8
	mulLeft    gen = 9  // columns
	mulBC      gen = 10 // b and c at the columns
	mulCC      gen = 11
	mulBK      gen = 12 // b at the depth
	mulK       gen = 13
	mulT       gen = 14
	mulAK      gen = 19 // to R22: rows of a at the depth
)

// multiply has tiles of 4 and 1 rows by 16, 4 and 1 columns. Each element is one chain of fused
// multiply-adds over the depth.
func multiply(a *assembly, _ base.Func) {
	a.base("c", mulC)
	a.base("a", mulA)
	a.ins("MOVD", a.arg("cStride"), mulCStride)
	a.ins("MOVD", a.arg("aStride"), mulAStride)
	a.ins("MOVD", a.arg("bStride"), mulBStride)
	a.ins("MOVD", a.arg("rows"), mulRows)
	a.ins("MOVD", a.arg("depth"), mulDepth)
	a.ins("MOVBU", a.arg("sum"), mulSum)
	for _, s := range []gen{mulCStride, mulAStride, mulBStride} {
		a.ins("LSL", imm(2), s)
	}
	for _, rows := range []int{4, 1} {
		below := a.newLabel()
		band := a.label()
		a.ins("CMP", imm(rows), mulRows)
		a.ins("BLT", below)
		a.base("b", mulBC)
		a.ins("MOVD", mulC, mulCC)
		a.ins("MOVD", a.arg("columns"), mulLeft)
		for _, columns := range []int{16, 4, 1} {
			fewer := a.newLabel()
			more := a.label()
			a.ins("CMP", imm(columns), mulLeft)
			a.ins("BLT", fewer)
			tile(a, rows, columns)
			a.ins("ADD", imm(4*columns), mulBC)
			a.ins("ADD", imm(4*columns), mulCC)
			a.ins("SUB", imm(columns), mulLeft)
			a.ins("B", more)
			a.place(fewer)
		}
		for range rows {
			a.ins("ADD", mulAStride, mulA)
			a.ins("ADD", mulCStride, mulC)
		}
		a.ins("SUB", imm(rows), mulRows)
		a.ins("B", band)
		a.place(below)
	}
	a.ret()
}

// tile is the product of some rows, at most 4, and columns. The sums are V16 to V31, b is in V0 to
// V3, a in V4 to V7.
func tile(a *assembly, rows, columns int) {
	w, vectors := vector, columns/4
	if columns == 1 {
		w, vectors = float, 1
	}
	sum := func(r, v int) vec { return 16 + vec(4*r+v) }
	some, begin := a.newLabel(), a.newLabel()
	eachSum := func(f func(at string, v vec)) {
		a.ins("MOVD", mulCC, mulT)
		for r := range rows {
			for v := range vectors {
				f(at(mulT, 16*v), sum(r, v))
			}
			a.ins("ADD", mulCStride, mulT)
		}
	}
	a.ins("CBNZ", mulSum, some)
	for r := range rows {
		for v := range vectors {
			a.zero(sum(r, v))
		}
	}
	a.ins("B", begin)
	a.place(some)
	eachSum(func(at string, v vec) { a.ins(w.move(""), at, fmt.Sprintf("F%d", v)) })
	a.place(begin)

	a.ins("MOVD", mulA, mulAK)
	for r := 1; r < rows; r++ {
		a.ins("ADD", mulAStride, mulAK+gen(r-1), mulAK+gen(r))
	}
	a.ins("MOVD", mulBC, mulBK)
	a.ins("MOVD", mulDepth, mulK)
	each(a, mulK, func(depth width) {
		for r := range rows {
			depth.next(a, mulAK+gen(r), 4+vec(r))
		}
		for k := range int(depth) / 4 {
			for v := range vectors {
				a.ins(w.move(""), at(mulBK, 16*v), fmt.Sprintf("F%d", v))
			}
			a.ins("ADD", mulBStride, mulBK)
			for r := range rows {
				for v := range vectors {
					a.word(fmlaElement.element(sum(r, v), vec(v), 4+vec(r), k))
				}
			}
		}
	})
	eachSum(func(at string, v vec) { a.ins(w.move(""), fmt.Sprintf("F%d", v), at) })
}

func softmax(a *assembly, _ base.Func) {
	const scores, stats, acc, rows, dim, p, left gen = 0, 1, 2, 3, 4, 5, 6
	const top, before, f, sum vec = 16, 17, 18, 7
	useExp(a, p)
	a.base("scores", scores)
	a.base("stats", stats)
	a.length("stats", rows)
	a.ins("LSR", imm(1), rows)
	a.base("acc", acc)
	a.ins("MOVD", a.arg("dim"), dim)
	a.loop(rows, func() {
		same := a.newLabel()
		a.ins("FMOVS", at(stats, 0), fmt.Sprintf("F%d", before))
		a.word(dupWord(before, before, 0))
		a.word(move(top, before))
		a.ins("MOVD", scores, p)
		for range base.SoftmaxPositions / 16 {
			a.take(p, 0, 1, 2, 3)
			for i := range vec(4) {
				a.word(fmax.three(top, top, i))
			}
		}
		a.word(fmaxv.two(top, top))
		a.word(dupWord(top, top, 0))
		a.ins("FCMPS", fmt.Sprintf("F%d", before), fmt.Sprintf("F%d", top))
		a.ins("BEQ", same)
		// The sums so far are scaled by e^(before - top).
		a.word(fsub.three(f, before, top))
		exp(a, f, 0, 1, 2)
		a.ins("FMOVS", at(stats, 4), "F0")
		a.word(fmul.three(0, 0, f))
		a.ins("FMOVS", "F0", at(stats, 4))
		a.ins("FMOVS", fmt.Sprintf("F%d", top), at(stats, 0))
		a.ins("MOVD", acc, p)
		a.ins("MOVD", dim, left)
		each(a, left, func(w width) {
			w.get(a, p, 0)
			a.word(fmul.three(0, 0, f))
			w.put(a, p, 0)
		})
		a.place(same)
		a.zero(sum)
		a.ins("MOVD", imm(base.SoftmaxPositions/4), left)
		a.loop(left, func() {
			vector.get(a, scores, 3)
			a.word(fsub.three(3, 3, top))
			exp(a, 3, 0, 1, 2)
			vector.put(a, scores, 3)
			a.word(fadd.three(sum, sum, 3))
		})
		addLanes(a, sum)
		a.ins("FMOVS", at(stats, 4), "F0")
		a.word(fadd.three(0, 0, sum))
		a.ins("FMOVS", "F0", at(stats, 4))
		a.ins("ADD", imm(8), stats)
		a.ins("ADD", dim.String()+"<<2", acc)
	})
	a.ret()
}
