package main

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/gpu/host/gen/base"
)

// Registers of the products of a panel; the sums are V16 to V31.
const (
	args     gen = 0
	codes    gen = 1
	scales   gen = 2
	biases   gen = 3
	inputs   gen = 4  // R4 to R7: rows of X
	numbers  gen = 8  // R8 to R11: their groups' scales and sums
	outputs  gen = 12 // R12 to R15
	colsLeft gen = 19
	group    gen = 20
	steps    gen = 21
	constant gen = 22
	firstSum vec = 16
)

// field is a field of package host's panelArgs; element i of x or y.
func field(name string, i int) string {
	if i > 0 {
		return fmt.Sprintf("panelArgs_%s+%d(%v)", name, 8*i, args)
	}
	return fmt.Sprintf("panelArgs_%s(%v)", name, args)
}

// beginPanel loads the arguments of a product with n rows of X and clears Y.
func beginPanel(a *assembly, n int) {
	a.ins("MOVD", a.arg("a"), args)
	a.ins("MOVD", field("w", 0), codes)
	a.ins("MOVD", field("scales", 0), scales)
	a.ins("MOVD", field("biases", 0), biases)
	a.ins("MOVD", field("cols", 0), colsLeft)
	a.ins("MOVD", field("group", 0), group)
	a.zero(0, 1, 2, 3)
	for r := range n {
		a.ins("MOVD", field("x", r), inputs+gen(r))
		a.ins("MOVD", field("y", r), outputs+gen(r))
		a.store(outputs+gen(r), 0, 1, 2, 3)
	}
}

// eachGroup repeats body for the groups of inputs.
func eachGroup(a *assembly, body func()) {
	l := a.label()
	body()
	a.ins("SUBS", group, colsLeft)
	a.ins("BNE", l)
	a.ret()
}

// widen writes a group's scales or biases to V(to) to V(to+3) as float32.
func widen(a *assembly, from gen, to vec) {
	a.take(from, to+2, to+3)
	a.word(shll.two(to, to+2))
	a.word(shll2.two(to+1, to+2))
	a.word(shll.two(to+2, to+3))
	a.word(shll2.two(to+3, to+3))
}

func product(a *assembly, f base.Func) {
	if f.Int8 {
		mulInt8(a, f)
	} else {
		mulFloat(a, f)
	}
}

// mulInt8 multiplies a panel of codes by n rows of int8. The 16 rows of W are lanes of four
// vectors; one instruction adds the products of four inputs in each lane. It takes codes as signed
// numbers, so 128 is subtracted from 8-bit codes and 128 times the sum of the group's inputs is
// added. The sums are exact, so they may be split among registers to hide latency. Codes that do
// not stand for themselves are looked up in a table of whole steps.
func mulInt8(a *assembly, f base.Func) {
	bits, n := f.Coding.Bits(), f.Rows
	// x, raw and code are four each; whole is one a row
	const x, raw, code, whole, mask, ones, step, table, least vec = 0, 4, 8, 8, 12, 13, 13, 14, 15
	split := max(1, 4/n)
	sum := func(part, r, v int) vec { return firstSum + vec((part*n+r)*4+v) }
	beginPanel(a, n)
	a.ins("MOVD", field("cols", 0), numbers)
	for r := n - 1; r >= 0; r-- {
		a.ins("ADD", inputs+gen(r), numbers, numbers+gen(r))
	}
	if bits == 8 {
		a.word(fill(mask, 0x80))
		a.word(fill(ones, 1))
	} else {
		a.word(fill(mask, 1<<bits-1))
	}
	if !f.Coding.Itself() {
		a.wholes(f.Coding, table, constant)
		a.steps(f.Coding, step, constant)
		a.leastPower(least, constant)
	}
	eachGroup(a, func() {
		for i := range vec(4 * n * split) {
			a.zero(firstSum + i)
		}
		if bits == 8 {
			for r := range vec(n) {
				a.zero(whole + r)
			}
		}
		a.ins("LSR", imm(4), group, steps)
		a.loop(steps, func() { // 16 inputs
			for r := range n {
				a.take(inputs+gen(r), x+vec(r))
				if bits == 8 {
					a.word(sdot.three(whole+vec(r), x+vec(r), ones))
				}
			}
			for part := range 4 { // four inputs; a chunk of codes has 32/bits
				if part%(8/bits) == 0 {
					a.take(codes, raw, raw+1, raw+2, raw+3)
				}
				from := signed(a, bits, part%(8/bits), raw, code, mask)
				if !f.Coding.Itself() {
					for v := range vec(4) {
						a.word(lookup(from+v, table, from+v))
					}
				}
				for r := range n {
					for v := range 4 {
						a.word(sdotElement.element(sum(part%split, r, v), from+vec(v), x+vec(r), part))
					}
				}
			}
		})
		for i := range vec(4 * n * (split - 1)) {
			to := firstSum + i%vec(4*n)
			a.word(add.three(to, to, firstSum+vec(4*n)+i))
		}
		for r := range n {
			if bits == 8 {
				addWhole(a, whole+vec(r), sum(0, r, 0))
			}
		}
		if powers(f) {
			widenPowers(a, scales, 0, least)
			for v := range vec(4) { // those of whole steps
				a.word(fmulElement.element(4+v, v, step, 1))
				a.word(fmulElement.element(v, v, step, 0))
			}
		} else {
			widen(a, scales, 0)
			widen(a, biases, 4)
		}
		for r := range n {
			scaleInt8(a, r, sum(0, r, 0))
		}
	})
}

// signed writes the codes of four inputs as bytes, from part of a chunk in four registers from raw
// on. It returns the first register that has them.
func signed(a *assembly, bits, part int, raw, code, mask vec) vec {
	for v := range vec(4) {
		switch {
		case bits == 8:
			a.word(eor.three(raw+v, raw+v, mask))
		case part == 0:
			a.word(and.three(code+v, raw+v, mask))
		default:
			a.word(ushrBytes.shift(code+v, raw+v, part*bits))
			if (part+1)*bits < 8 {
				a.word(and.three(code+v, code+v, mask))
			}
		}
	}
	if bits == 8 {
		return raw
	}
	return code
}

// addWhole adds 128 times the sum of v's lanes to four sums.
func addWhole(a *assembly, v, sum vec) {
	a.word(addp.three(v, v, v))
	a.word(addp.three(v, v, v))
	a.word(shlWords.shift(v, v, 7))
	for i := range vec(4) {
		a.word(add.three(sum+i, sum+i, v))
	}
}

// scaleInt8 adds a group's dot·(scale·s) + bias·S to row r of Y, each step rounded. Scales are in
// V0 to V3, biases in V4 to V7.
func scaleInt8(a *assembly, r int, sum vec) {
	const number, t, y vec = 8, 9, 10
	a.ins("FMOVD.P", at(numbers+gen(r), 8), "F8")
	for v := range vec(4) {
		place := at(outputs+gen(r), int(16*v))
		a.ins("FMOVQ", place, fmt.Sprintf("F%d", y))
		a.word(scvtf.two(sum+v, sum+v))
		a.word(fmulElement.element(t, v, number, 0))
		a.word(fmul.three(sum+v, sum+v, t))
		a.word(fmulElement.element(t, 4+v, number, 1))
		a.word(fadd.three(sum+v, sum+v, t))
		a.word(fadd.three(y, y, sum+v))
		a.ins("FMOVQ", fmt.Sprintf("F%d", y), place)
	}
}

// mulFloat multiplies a panel of codes by n rows of float32. Weights are code·scale + bias, rounded
// once, or a code's value times the scale. The products of a group's inputs are added in order,
// each fused with its sum, then the groups' sums are added.
func mulFloat(a *assembly, f base.Func) {
	bits, n := f.Coding.Bits(), f.Rows
	// x, scale and bias are four each; without biases the table and the least scale are there
	const x, raw, mask, code, weight, scale, bias, table, least vec = 0, 4, 5, 6, 7, 8, 12, 12, 13
	sum := func(r int, v vec) vec { return firstSum + vec(4*r) + v }
	beginPanel(a, n)
	a.ins("MOVD", imm(1<<bits-1), steps)
	a.word(dupRegister(mask, steps))
	if !f.Coding.Itself() {
		a.values(f.Coding, table, constant)
		a.leastPower(least, constant)
	}
	eachGroup(a, func() {
		for i := range vec(4 * n) {
			a.zero(firstSum + i)
		}
		if powers(f) {
			widenPowers(a, scales, scale, least)
		} else {
			widen(a, scales, scale)
			widen(a, biases, bias)
		}
		a.ins("MOVD", field("groupBytes", 0), steps)
		a.ins("LSR", imm(6), steps)
		a.loop(steps, func() { // a chunk of codes
			for part := range 8 / bits { // four inputs
				for r := range n {
					a.take(inputs+gen(r), x+vec(r))
				}
				for v := range vec(4) {
					a.ins("FMOVQ", at(codes, int(16*v)), fmt.Sprintf("F%d", raw))
					for j := range 4 {
						from := raw
						if shift := 8*j + part*bits; shift > 0 {
							a.word(ushrWords.shift(code, raw, shift))
							from = code
						}
						if j < 3 || (part+1)*bits < 8 {
							a.word(and.three(code, from, mask))
						}
						if f.Coding.Itself() {
							a.word(ucvtf.two(code, code))
							a.word(orr.three(weight, bias+v, bias+v))
							a.word(fmla.three(weight, code, scale+v))
						} else {
							a.value(f.Coding, weight, code, table)
							a.word(fmul.three(weight, weight, scale+v))
						}
						for r := range n {
							a.word(fmlaElement.element(sum(r, v), weight, x+vec(r), j))
						}
					}
				}
			}
			a.ins("ADD", imm(64), codes)
		})
		for r := range n {
			for v := range vec(4) {
				place := at(outputs+gen(r), int(16*v))
				a.ins("FMOVQ", place, fmt.Sprintf("F%d", raw))
				a.word(fadd.three(raw, raw, sum(r, v)))
				a.ins("FMOVQ", fmt.Sprintf("F%d", raw), place)
			}
		}
	})
}
