package main

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/gpu/host/gen/base"
)

// Primitives compute the elements after the last whole vector one by one with the same
// instructions: the bits of an element do not depend on its place.

// exponential are the constants of e^x. They live in the registers from low on.
func exponential(a *assembly) {
	var list []float32
	for _, c := range base.Exponential {
		list = append(list, c.Value)
	}
	a.floats("neonExponential", append(list, 0)) // three vectors
}

const (
	low     vec = 20
	high    vec = 21
	log2e   vec = 22
	ln2high vec = 23
	ln2low  vec = 24
	one     vec = 25
	c0      vec = 26 // to V30
)

// useExp loads the constants. It overwrites t.
func useExp(a *assembly, t gen) {
	a.ins("MOVD", "$neonExponential<>(SB)", t)
	a.load(t, 0, 1, 2)
	for i := range vec(11) {
		a.word(dupWord(low+i, i/4, int(i%4)))
	}
}

// exp replaces x by e^x; NaN stays NaN. It overwrites three more registers.
func exp(a *assembly, x, n, p, t vec) {
	a.word(fmax.three(x, x, low))
	a.word(fmin.three(x, x, high))
	a.word(fmul.three(n, x, log2e))
	a.word(frintn.two(n, n))
	a.word(fmls.three(x, n, ln2high))
	a.word(fmls.three(x, n, ln2low))
	a.word(move(p, c0+4))
	for _, c := range []vec{c0 + 3, c0 + 2, c0 + 1, c0, one, one} {
		a.word(move(t, c))
		a.word(fmla.three(t, p, x))
		p, t = t, p
	}
	a.word(fcvtns.two(n, n))
	a.word(sshrWords.shift(t, n, 1))
	a.word(sub.three(n, n, t))
	for _, e := range []vec{t, n} { // 2^n in two parts, each a normal number
		a.word(shlWords.shift(e, e, 23))
		a.word(add.three(e, e, one))
	}
	a.word(fmul.three(p, p, t))
	a.word(fmul.three(x, p, n))
}

// sigmoid makes 1/(1+e^-x) in y, from t = e^-|x| as 1/(1+t) or t/(1+t): nothing overflows and no
// digits are lost. Three more registers are written.
func sigmoid(a *assembly, y, x, n, p, t vec) {
	a.word(fabs.two(y, x))
	a.word(fneg.two(y, y))
	exp(a, y, n, p, t)
	a.word(fadd.three(n, y, one))
	a.word(sshrWords.shift(t, x, 31))
	a.word(bsl.three(t, y, one))
	a.word(fdiv.three(y, t, n))
}

// move copies a register.
func move(d, n vec) (uint32, string) { return orr.three(d, n, n) }

// float loads a float32 argument to all lanes.
func (a *assembly) float(name string, v vec) {
	a.ins("FMOVS", a.arg(name), fmt.Sprintf("F%d", v))
	a.word(dupWord(v, v, 0))
}

// width is what an iteration of each takes: a vector or a float.
type width int

const (
	vector width = 16
	float  width = 4
)

// get loads what p points to and zeroes the other lanes. next also advances p.
func (w width) get(a *assembly, p gen, v vec) { a.ins(w.move(""), at(p, 0), fmt.Sprintf("F%d", v)) }
func (w width) next(a *assembly, p gen, v vec) {
	a.ins(w.move(".P"), at(p, int(w)), fmt.Sprintf("F%d", v))
}

// set stores to where p points. put also advances p.
func (w width) set(a *assembly, p gen, v vec) { a.ins(w.move(""), fmt.Sprintf("F%d", v), at(p, 0)) }
func (w width) put(a *assembly, p gen, v vec) {
	a.ins(w.move(".P"), fmt.Sprintf("F%d", v), at(p, int(w)))
}

func (w width) move(suffix string) string {
	if w == vector {
		return "FMOVQ" + suffix
	}
	return "FMOVS" + suffix
}

// each runs body over n floats: vectors, then single floats. n ends at 0.
func each(a *assembly, n gen, body func(w width)) {
	tail, done := a.newLabel(), a.newLabel()
	a.ins("CMP", imm(4), n)
	a.ins("BLT", tail)
	loop := a.label()
	body(vector)
	a.ins("SUB", imm(4), n)
	a.ins("CMP", imm(4), n)
	a.ins("BGE", loop)
	a.place(tail)
	a.ins("CBZ", n, done)
	a.loop(n, func() { body(float) })
	a.place(done)
}

// addLanes adds up v's lanes in pairs, in lane 0 of v.
func addLanes(a *assembly, v vec) {
	a.word(faddp.three(v, v, v))
	a.word(faddv.two(v, v))
}
