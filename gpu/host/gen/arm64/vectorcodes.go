package main

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/gpu/host/gen/base"
)

// dotCodes has tiles of 4 and 1 queries by 16 positions. The sums are V16 to V31, keys are in V0 to
// V3, queries in V4 to V7.
func dotCodes(a *assembly, _ base.Func) {
	const q, words, scores, scales, qStride, group, groups, left, column gen = 0, 1, 2, 3, 4, 5, 6, 7, 8
	const keys, scale, y, steps, groupsLeft, record gen = 9, 10, 11, 12, 13, 14
	const at0, number gen = 19, 23 // four each: a tile's queries and their numbers
	const factor, s, sum0, rowBytes = vec(8), vec(12), vec(16), 4 * base.SoftmaxPositions
	sum := func(r, v int) vec { return sum0 + vec(4*r+v) }
	a.base("scores", scores)
	a.base("q", q)
	a.base("words", words)
	a.base("scales", scales)
	for i, r := range []gen{qStride, group, groups, left} {
		a.ins("MOVD", a.arg([]string{"qStride", "group", "groups", "rows"}[i]), r)
	}
	a.ins("MUL", group, groups, record)
	for _, rows := range []int{4, 1} {
		below := a.newLabel()
		band := a.label()
		a.ins("CMP", imm(rows), left)
		a.ins("BLT", below)
		a.ins("MOVD", imm(0), column)
		columns := a.label()
		a.ins("ADD", words, column, keys)
		a.ins("ADD", scales, column, scale)
		a.ins("ADD", scores, column, y)
		a.zero(0, 1, 2, 3)
		for r := range rows {
			if r == 0 {
				a.ins("MOVD", q, at0)
			} else {
				a.ins("ADD", qStride, at0+gen(r-1), at0+gen(r))
			}
			a.ins("ADD", record, at0+gen(r), number+gen(r))
			for v := range 4 {
				a.ins("FMOVQ", fmt.Sprintf("F%d", v), at(y, r*rowBytes+16*v))
			}
		}
		a.ins("MOVD", groups, groupsLeft)
		a.loop(groupsLeft, func() {
			for r := range rows {
				for v := range 4 {
					a.zero(sum(r, v))
				}
			}
			a.ins("LSR", imm(4), group, steps)
			a.loop(steps, func() { // 16 channels
				for r := range rows {
					a.take(at0+gen(r), 4+vec(r))
				}
				for part := range 4 {
					a.load(keys, 0, 1, 2, 3)
					a.ins("ADD", imm(rowBytes), keys)
					for r := range rows {
						for v := range 4 {
							a.word(sdotElement.element(sum(r, v), vec(v), 4+vec(r), part))
						}
					}
				}
			})
			a.load(scale, factor, factor+1, factor+2, factor+3)
			a.ins("ADD", imm(rowBytes), scale)
			for r := range rows {
				a.ins("FMOVD.P", at(number+gen(r), 8), fmt.Sprintf("F%d", s))
				for v := range 4 {
					place := at(y, r*rowBytes+16*v)
					a.ins("FMOVQ", place, "F13")
					a.word(scvtf.two(sum(r, v), sum(r, v)))
					a.word(fmulElement.element(sum(r, v), sum(r, v), s, 0))
					a.word(fmul.three(sum(r, v), sum(r, v), factor+vec(v)))
					a.word(fadd.three(sum(r, v), sum(r, v), 13))
					a.ins("FMOVQ", fmt.Sprintf("F%d", sum(r, v)), place)
				}
			}
		})
		a.ins("ADD", imm(64), column)
		a.ins("CMP", imm(rowBytes), column)
		a.ins("BLT", columns)
		for range rows {
			a.ins("ADD", qStride, q)
		}
		a.ins("ADD", imm(rows*rowBytes), scores)
		a.ins("SUB", imm(rows), left)
		a.ins("B", band)
		a.place(below)
	}
	a.ret()
}
