package main

// elementwise is a primitive whose arguments are slices of one length, the first being the result,
// and then numbers. f makes the result, in V16, of the operands in V0, V1, …; the numbers are in
// V17, V18. It may use the registers up to V15 and V19, and those of the exponential if exp.
type elementwise struct {
	name, signature, doc string
	result               string
	operands             []string // the result among them if it is read
	offsets              []int    // of the operands
	numbers              []string
	size                 int // of the arguments
	exp                  bool
	f                    func(a *assembly)
}

// y is where an elementwise makes its result.
const y, number, number2 vec = 16, 17, 18

var elementwises = []elementwise{
	{name: "gatedNormNEON", signature: "(y, x, w, z []float32, r float32)", doc: "writes w·(x·r)·silu(z) to y.",
		result: "y", operands: []string{"x", "w", "z"}, offsets: []int{24, 48, 72}, numbers: []string{"r"}, size: 96, exp: true,
		f: func(a *assembly) {
			a.word(fmul.three(0, 0, number))
			a.word(fmul.three(0, 0, 1))
			sigmoid(a, y, 2, 3, 4, 5)
			a.word(fmul.three(y, y, 2))
			a.word(fmul.three(y, y, 0))
		}},
	{name: "addNEON", signature: "(y, a, b []float32)", doc: "writes a + b to y.",
		result: "y", operands: []string{"a", "b"}, offsets: []int{24, 48}, size: 72,
		f: func(a *assembly) { a.word(fadd.three(y, 0, 1)) }},
	{name: "axpyNEON", signature: "(y, x []float32, f float32)", doc: "adds f·x to y.",
		result: "y", operands: []string{"y", "x"}, offsets: []int{0, 24}, numbers: []string{"f"}, size: 48,
		f: func(a *assembly) {
			a.word(move(y, 0))
			a.word(fmla.three(y, 1, number))
		}},
	{name: "mergeNEON", signature: "(y, x []float32, f, h float32)", doc: "writes f·y + h·x to y.",
		result: "y", operands: []string{"y", "x"}, offsets: []int{0, 24}, numbers: []string{"f", "h"}, size: 48,
		f: func(a *assembly) {
			a.word(fmul.three(y, 0, number))
			a.word(fmla.three(y, 1, number2))
		}},
	{name: "swigluNEON", signature: "(y, gate, up []float32)", doc: "writes silu(gate)·up to y.",
		result: "y", operands: []string{"gate", "up"}, offsets: []int{24, 48}, size: 72, exp: true,
		f: func(a *assembly) {
			sigmoid(a, y, 0, 3, 4, 5)
			a.word(fmul.three(y, y, 0))
			a.word(fmul.three(y, y, 1))
		}},
	{name: "gateNEON", signature: "(x, gate []float32)", doc: "multiplies x by σ(gate).",
		result: "x", operands: []string{"x", "gate"}, offsets: []int{0, 24}, size: 48, exp: true,
		f: func(a *assembly) {
			sigmoid(a, y, 1, 3, 4, 5)
			a.word(fmul.three(y, y, 0))
		}},
}

func (e elementwise) write(a *assembly) {
	a.text(e.name, e.signature, e.size+4*len(e.numbers), e.doc)
	const out, first, n, t gen = 0, 1, 20, 21
	if e.exp {
		useExp(a, t)
	}
	a.base(e.result, 0, out)
	a.length(e.result, 0, n)
	for i, o := range e.operands {
		a.base(o, e.offsets[i], first+gen(i))
	}
	for i, x := range e.numbers {
		a.float(x, e.size+4*i, number+vec(i))
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

// dot has four vectors of lanes, which take vectors of inputs in turn, as long as there are four;
// the first takes the rest.
func dot(a *assembly) {
	a.text("dotNEON", "(x, y []float32) (sum float32)", 52, "returns Σ x·y.")
	const x, y, n gen = 0, 1, 2
	a.base("x", 0, x)
	a.base("y", 24, y)
	a.length("x", 0, n)
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
	a.ins("FMOVS", "F16", arg("sum", 48))
	a.ret()
}

func norm(a *assembly) {
	a.text("normNEON", "(y, x, w []float32, r float32)", 76, "writes w·(x·r) to y, or x·r if w is empty.")
	const y, x, w, n, weights gen = 0, 1, 2, 3, 4
	a.base("y", 0, y)
	a.length("y", 0, n)
	a.base("x", 24, x)
	a.base("w", 48, w)
	a.length("w", 48, weights)
	a.float("r", 72, number)
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

func combine(a *assembly) {
	a.text("combineNEON", "(y, residual, routed, weights, shared []float32, scale float32)", 124,
		"writes residual + (Σ weights[k]·routed[k] + scale·shared) to y; shared may be empty.")
	const out, residual, routed, shared, picks, stride, n, row, weight, left gen = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
	const weights, some gen = 10, 11
	a.base("y", 0, out)
	a.length("y", 0, n)
	a.ins("LSL", imm(2), n, stride)
	a.base("residual", 24, residual)
	a.base("routed", 48, routed)
	a.base("weights", 72, weights)
	a.length("weights", 72, picks)
	a.base("shared", 96, shared)
	a.length("shared", 96, some)
	a.float("scale", 120, number)
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

func conv(a *assembly) {
	a.text("convNEON", "(y, w, x0, x1, x2, x3 []float32)", 144, "writes silu(Σ w[j]·xj) to y [n], w being [4, n].")
	const out, tap, x, n, t gen = 0, 1, 5, 20, 21 // taps are in R1 to R4, inputs in R5 to R8
	useExp(a, t)
	a.base("y", 0, out)
	a.length("y", 0, n)
	a.base("w", 24, tap)
	for j, name := range []string{"x0", "x1", "x2", "x3"} {
		a.base(name, 48+24*j, x+gen(j))
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

// beginRope loads the arguments of rope and ropePairs.
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
	a.base("x", 0, ropeX)
	a.base("table", 24, ropeTable)
	a.length("table", 24, ropeLeft)
	a.ins("LSL", imm(1), ropeLeft, ropeHalf) // bytes of half the channels
	a.ins("MOVD", arg("heads", 48), ropeHeads)
	a.ins("MOVD", arg("stride", 56), ropeStride)
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

func rope(a *assembly) {
	a.text("ropeNEON", "(x, table []float32, heads, stride int)", 64,
		"rotates channels i and i+n/2 of heads whose first n lie stride floats apart; n is a multiple of 8.")
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

func ropePairs(a *assembly) {
	a.text("ropePairsNEON", "(x, table []float32, heads, stride int)", 64,
		"rotates channels 2i and 2i+1 of heads whose first n lie stride floats apart; n is a multiple of 4.")
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

// touch loads, as the other instruction sets do.
func touch(a *assembly) {
	a.text("touchNEON", "(mem []byte, width, stride, rows int)", 48, "reads a byte of each line of rows of width bytes, stride bytes apart.")
	const row, width, stride, rows, p, end, line gen = 0, 1, 2, 3, 4, 5, 6
	a.base("mem", 0, row)
	a.ins("MOVD", arg("width", 24), width)
	a.ins("MOVD", arg("stride", 32), stride)
	a.ins("MOVD", arg("rows", 40), rows)
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
