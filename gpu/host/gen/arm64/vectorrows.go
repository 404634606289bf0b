package main

import "github.com/moeflux/moeflux-actor/gpu/host/gen/base"

// elementwise is a primitive whose arguments are slices of one length, then numbers. f computes the
// result in V16 from operands in V0, V1, … and numbers in V17, V18. It may use the registers up to
// V15, and V19, and with exp the constants of the exponential.
type elementwise struct {
	result   string
	operands []string // the result among them if it is read
	numbers  []string
	exp      bool
	f        func(a *assembly)
}

// y is where an elementwise leaves its result.
const y, number, number2 vec = 16, 17, 18

var elementwises = map[string]elementwise{
	"gatedNorm": {result: "y", operands: []string{"x", "w", "z"}, numbers: []string{"r"}, exp: true,
		f: func(a *assembly) {
			a.word(fmul.three(0, 0, number))
			a.word(fmul.three(0, 0, 1))
			sigmoid(a, y, 2, 3, 4, 5)
			a.word(fmul.three(y, y, 2))
			a.word(fmul.three(y, y, 0))
		}},
	"add": {result: "y", operands: []string{"a", "b"},
		f: func(a *assembly) { a.word(fadd.three(y, 0, 1)) }},
	"axpy": {result: "y", operands: []string{"y", "x"}, numbers: []string{"f"},
		f: func(a *assembly) {
			a.word(move(y, 0))
			a.word(fmla.three(y, 1, number))
		}},
	"merge": {result: "y", operands: []string{"y", "x"}, numbers: []string{"f", "h"},
		f: func(a *assembly) {
			a.word(fmul.three(y, 0, number))
			a.word(fmla.three(y, 1, number2))
		}},
	"swiglu": {result: "y", operands: []string{"gate", "up"}, exp: true,
		f: func(a *assembly) {
			sigmoid(a, y, 0, 3, 4, 5)
			a.word(fmul.three(y, y, 0))
			a.word(fmul.three(y, y, 1))
		}},
	"gate": {result: "x", operands: []string{"x", "gate"}, exp: true,
		f: func(a *assembly) {
			sigmoid(a, y, 1, 3, 4, 5)
			a.word(fmul.three(y, y, 0))
		}},
}

func (e elementwise) write(a *assembly) {
	const out, first, n, t gen = 0, 1, 20, 21
	if e.exp {
		useExp(a, t)
	}
	a.base(e.result, out)
	a.length(e.result, n)
	for i, o := range e.operands {
		a.base(o, first+gen(i))
	}
	for i, x := range e.numbers {
		a.float(x, number+vec(i))
	}
	each(a, n, func(w width) {
		for i := range e.operands {
			w.next(a, first+gen(i), vec(i))
		}
		e.f(a)
		w.put(a, out, y)
	})
	a.ret()
}

// dot sums in four vectors, which take vectors of inputs in turn while four are left. The first
// takes the rest.
func dot(a *assembly, _ base.Func) {
	const x, y, n gen = 0, 1, 2
	a.base("x", x)
	a.base("y", y)
	a.length("x", n)
	a.zero(16, 17, 18, 19)
	rest := a.newLabel()
	a.ins("CMP", imm(16), n)
	a.ins("BLT", rest)
	loop := a.label()
	a.take(x, 0, 1, 2, 3)
	a.take(y, 4, 5, 6, 7)
	for i := range vec(4) {
		a.word(fmla.three(16+i, i, 4+i))
	}
	a.ins("SUB", imm(16), n)
	a.ins("CMP", imm(16), n)
	a.ins("BGE", loop)
	a.place(rest)
	each(a, n, func(w width) {
		w.next(a, x, 0)
		w.next(a, y, 1)
		a.word(fmla.three(16, 0, 1))
	})
	a.word(fadd.three(16, 16, 17))
	a.word(fadd.three(18, 18, 19))
	a.word(fadd.three(16, 16, 18))
	addLanes(a, 16)
	a.ins("FMOVS", "F16", a.arg("sum"))
	a.ret()
}

func norm(a *assembly, _ base.Func) {
	const y, x, w, n, weights gen = 0, 1, 2, 3, 4
	a.base("y", y)
	a.length("y", n)
	a.base("x", x)
	a.base("w", w)
	a.length("w", weights)
	a.float("r", number)
	bare := a.newLabel()
	a.ins("CBZ", weights, bare)
	each(a, n, func(s width) {
		s.next(a, x, 0)
		s.next(a, w, 1)
		a.word(fmul.three(0, 0, number))
		a.word(fmul.three(0, 0, 1))
		s.put(a, y, 0)
	})
	a.ret()
	a.place(bare)
	each(a, n, func(s width) {
		s.next(a, x, 0)
		a.word(fmul.three(0, 0, number))
		s.put(a, y, 0)
	})
	a.ret()
}

func combine(a *assembly, _ base.Func) {
	const out, residual, routed, shared, picks, stride, n, row, weight, left gen = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
	const weights, some gen = 10, 11
	a.base("y", out)
	a.length("y", n)
	a.ins("LSL", imm(2), n, stride)
	a.base("residual", residual)
	a.base("routed", routed)
	a.base("weights", weights)
	a.length("weights", picks)
	a.base("shared", shared)
	a.length("shared", some)
	a.float("scale", number)
	each(a, n, func(w width) {
		a.zero(y)
		a.ins("MOVD", routed, row)
		a.ins("MOVD", weights, weight)
		a.ins("MOVD", picks, left)
		a.loop(left, func() {
			w.get(a, row, 0)
			float.next(a, weight, 1)
			a.word(fmlaElement.element(y, 0, 1, 0))
			a.ins("ADD", stride, row)
		})
		a.ins("ADD", imm(int(w)), routed)
		own := a.newLabel()
		a.ins("CBZ", some, own)
		w.next(a, shared, 0)
		a.word(fmla.three(y, 0, number))
		a.place(own)
		w.next(a, residual, 0)
		a.word(fadd.three(y, y, 0))
		w.put(a, out, y)
	})
	a.ret()
}

func conv(a *assembly, _ base.Func) {
	const out, tap, x, n, t gen = 0, 1, 5, 20, 21 // taps are in R1 to R4, inputs in R5 to R8
	useExp(a, t)
	a.base("y", out)
	a.length("y", n)
	a.base("w", tap)
	for j, name := range []string{"x0", "x1", "x2", "x3"} {
		a.base(name, x+gen(j))
		if j > 0 {
			a.ins("ADD", n.String()+"<<2", tap+gen(j-1), tap+gen(j))
		}
	}
	each(a, n, func(w width) {
		for j := range 4 {
			w.next(a, tap+gen(j), 0)
			w.next(a, x+gen(j), 1)
			if j == 0 {
				a.word(fmul.three(2, 0, 1))
			} else {
				a.word(fmla.three(2, 0, 1))
			}
		}
		sigmoid(a, y, 2, 3, 4, 5)
		a.word(fmul.three(y, y, 2))
		w.put(a, out, y)
	})
	a.ret()
}

// Registers of rope and ropePairs.
const (
	ropeX      gen = 0
	ropeTable  gen = 1
	ropeLeft   gen = 2
	ropeHeads  gen = 3
	ropeStride gen = 4
	ropeHead   gen = 5
	ropeCount  gen = 6
	ropeHalf   gen = 7
	ropeUpper  gen = 8
)

func beginRope(a *assembly) {
	a.base("x", ropeX)
	a.base("table", ropeTable)
	a.length("table", ropeLeft)
	a.ins("LSL", imm(1), ropeLeft, ropeHalf) // bytes of half the channels
	a.ins("MOVD", a.arg("heads"), ropeHeads)
	a.ins("MOVD", a.arg("stride"), ropeStride)
	a.ins("LSL", imm(2), ropeStride)
}

// ropeEach repeats body for the heads.
func ropeEach(a *assembly, body func()) {
	a.ins("MOVD", ropeX, ropeHead)
	a.ins("MOVD", ropeHeads, ropeCount)
	a.loop(ropeCount, func() {
		body()
		a.ins("ADD", ropeStride, ropeHead)
	})
	a.ins("ADD", imm(16), ropeX)
}

func rope(a *assembly, _ base.Func) {
	beginRope(a)
	a.ins("LSR", imm(3), ropeLeft)
	a.loop(ropeLeft, func() {
		a.take(ropeTable, 0, 1)
		a.word(uzp1.three(2, 0, 1)) // cosines
		a.word(uzp2.three(3, 0, 1)) // sines
		ropeEach(a, func() {
			a.ins("ADD", ropeHalf, ropeHead, ropeUpper)
			vector.get(a, ropeHead, 4)
			vector.get(a, ropeUpper, 5)
			a.word(fmul.three(6, 4, 2))
			a.word(fmls.three(6, 5, 3))
			a.word(fmul.three(7, 4, 3))
			a.word(fmla.three(7, 5, 2))
			vector.set(a, ropeHead, 6)
			vector.set(a, ropeUpper, 7)
		})
	})
	a.ret()
}

func ropePairs(a *assembly, _ base.Func) {
	beginRope(a)
	a.ins("LSR", imm(2), ropeLeft)
	a.loop(ropeLeft, func() {
		a.take(ropeTable, 0)
		a.word(trn1.three(2, 0, 0)) // cosines
		a.word(trn2.three(3, 0, 0)) // sines
		a.word(fneg.two(4, 3))
		a.word(trn1.three(3, 4, 3)) // less for the first of a pair
		ropeEach(a, func() {
			vector.get(a, ropeHead, 4)
			a.word(rev64.two(5, 4))
			a.word(fmul.three(6, 4, 2))
			a.word(fmla.three(6, 5, 3))
			vector.set(a, ropeHead, 6)
		})
	})
	a.ret()
}

// touch uses loads, as the other instruction sets do.
func touch(a *assembly, _ base.Func) {
	const row, width, stride, rows, p, end, line gen = 0, 1, 2, 3, 4, 5, 6
	a.base("mem", row)
	a.ins("MOVD", a.arg("width"), width)
	a.ins("MOVD", a.arg("stride"), stride)
	a.ins("MOVD", a.arg("rows"), rows)
	a.loop(rows, func() {
		a.ins("AND", imm(-64), row, p)
		a.ins("ADD", width, row, end)
		lines := a.label()
		a.ins("MOVBU", at(p, 0), line)
		a.ins("ADD", imm(64), p)
		a.ins("CMP", end, p)
		a.ins("BLO", lines)
		a.ins("ADD", stride, row)
	})
	a.ret()
}
