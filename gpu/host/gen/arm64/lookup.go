package main

import (
	"math"

	"github.com/moeflux/moeflux-actor/gpu/host/gen/base"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// leastE8M0 are the bits of 2^-127 as float32, which a scale of bits 0 is.
const leastE8M0 = 1 << 22

// bytes fills v with one byte for each code of 4 bits.
func (a *assembly) bytes(v vec, spare gen, of func(code int) int) {
	var half [2]uint64
	for code := range 16 {
		half[code/8] |= uint64(uint8(of(code))) << (code % 8 * 8)
	}
	a.pair(v, spare, half[0])
	a.ins("MOVD", imm(int64(half[1])), spare)
	a.ins("VMOV", spare, v.String()+".D[1]")
}

// pair fills the low half of v, and clears the high one.
func (a *assembly) pair(v vec, spare gen, bits uint64) {
	a.ins("MOVD", imm(int64(bits)), spare)
	a.ins("FMOVD", spare, "F"+v.String()[1:])
}

// wholes fills v with the number of steps of each code above the least, see quant.Coding.Whole.
func (a *assembly) wholes(c quant.Coding, v vec, spare gen) { a.bytes(v, spare, c.Whole) }

// steps fills the low half of v with a step and the least value.
func (a *assembly) steps(c quant.Coding, v vec, spare gen) {
	step, least := c.Steps()
	a.pair(v, spare, uint64(math.Float32bits(least))<<32|uint64(math.Float32bits(step)))
}

// values fills v with what each code stands for, in steps: numbers with a sign. That of code 0 is
// 0.
func (a *assembly) values(c quant.Coding, v vec, spare gen) {
	step, _ := c.Steps()
	a.bytes(v, spare, func(code int) int { return int(c.Value(code) / step) })
}

// value sets the words of to to what the codes in the words of code stand for, by table, which
// values has filled. It changes code.
func (a *assembly) value(c quant.Coding, to, code, table vec) {
	step, _ := c.Steps()
	a.word(lookup(code, table, code)) // the three bytes above number code 0
	a.word(shlWords.shift(code, code, 24))
	a.word(fixed(to, code, 24-int(math.Log2(float64(step)))))
}

// leastPower fills v with the least scale.
func (a *assembly) leastPower(v vec, spare gen) {
	a.ins("MOVD", imm(leastE8M0), spare)
	a.word(dupRegister(v, spare))
}

// widenPowers writes a group's scales, which are exponents, to V(to) to V(to+3) as float32.
func widenPowers(a *assembly, from gen, to, least vec) {
	a.take(from, to+3)
	a.word(uxtl.two(to+1, to+3))
	a.word(uxtl2.two(to+3, to+3))
	a.word(uxtlw.two(to, to+1))
	a.word(uxth2.two(to+1, to+1))
	a.word(uxtlw.two(to+2, to+3))
	a.word(uxth2.two(to+3, to+3))
	for v := to; v < to+4; v++ {
		power(a, v, least)
	}
}

// power makes scales of exponents.
func power(a *assembly, v, least vec) {
	a.word(shlWords.shift(v, v, 23))
	a.word(umax.three(v, v, least))
}

// powers reports whether scales are exponents; the others of this instruction set are bf16.
func powers(f base.Func) bool { return f.Coding.ScaleBytes() == 1 }
