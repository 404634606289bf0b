package main

import "fmt"

// blockInputs is how many inputs an iteration of the products of plain rows takes.
const (
	blockInputs  = 64
	unpackInputs = 32 // where bf16 is widened
)

// plain is the loop over blocks of a row without scales for one or two rows of X. Each row of X has
// eight accumulators of four lanes: vector j of a block adds to accumulator j%8. In the end they
// are added up in pairs, then the lanes in pairs.
func plain(a *assembly, name, doc string, bf16 bool, columns int) {
	row, element := "q", "float32"
	if bf16 {
		row, element = "row", "byte"
	}
	xs, results := []string{"x"}, []string{"y"}
	signature := fmt.Sprintf("(%s *%s, x *float32, blocks int) (y float32)", row, element)
	if columns == 2 {
		xs, results = []string{"x0", "x1"}, []string{"y0", "y1"}
		signature = fmt.Sprintf("(%s *%s, x0, x1 *float32, blocks int) (y0, y1 float32)", row, element)
	}
	a.text(name, signature, 8*(2+columns)+4*columns, doc)
	const w, count gen = 0, 1
	a.ins("MOVD", arg(row, 0), w)
	for c, x := range xs {
		a.ins("MOVD", arg(x, 8+8*c), gen(2+c))
	}
	a.ins("MOVD", arg("blocks", 8+8*columns), count)
	sum := func(c, j int) vec { return vec(16 + 8*c + j%8) }
	for c := range columns {
		for j := range 8 {
			a.zero(sum(c, j))
		}
	}
	a.loop(count, func() {
		// four vectors of weights in V0 to V3, of inputs in V4 to V7
		for j := 0; j < blockInputs/4; j += 4 {
			if bf16 {
				a.take(w, 4, 5)
				a.word(shll.two(0, 4))
				a.word(shll2.two(1, 4))
				a.word(shll.two(2, 5))
				a.word(shll2.two(3, 5))
			} else {
				a.take(w, 0, 1, 2, 3)
			}
			for c := range columns {
				a.take(gen(2+c), 4, 5, 6, 7)
				for i := range 4 {
					a.word(fmla.three(sum(c, j+i), vec(4+i), vec(i)))
				}
			}
		}
	})
	for c, y := range results {
		for step := 1; step < 8; step *= 2 {
			for j := 0; j < 8; j += 2 * step {
				a.word(fadd.three(sum(c, j), sum(c, j), sum(c, j+step)))
			}
		}
		a.word(faddp.three(sum(c, 0), sum(c, 0), sum(c, 0)))
		a.word(faddv.two(sum(c, 0), sum(c, 0)))
		a.ins("FMOVS", fmt.Sprintf("F%d", sum(c, 0)), arg(y, 8*(2+columns)+4*c))
	}
	a.ret()
}

// unpack widens bf16.
func unpack(a *assembly) {
	a.text("unpack16NEON", "(dst *float32, row *byte, blocks int)", 24,
		fmt.Sprintf("writes blocks of %d bf16, at least 1, to dst.", unpackInputs))
	const dst, row, count gen = 0, 1, 2
	a.ins("MOVD", arg("dst", 0), dst)
	a.ins("MOVD", arg("row", 8), row)
	a.ins("MOVD", arg("blocks", 16), count)
	a.loop(count, func() {
		a.take(row, 8, 9, 10, 11)
		for i := range vec(unpackInputs / 8) {
			a.word(shll.two(2*i, 8+i))
			a.word(shll2.two(2*i+1, 8+i))
		}
		a.put(dst, 0, 1, 2, 3)
		a.put(dst, 4, 5, 6, 7)
	})
	a.ret()
}
