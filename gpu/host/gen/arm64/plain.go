package main

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/gpu/host/gen/base"
)

// plain is the loop over blocks of a row without scales for one or two rows of X. Each row of X has
// eight accumulators of four lanes: vector j of a block adds to accumulator j%8. In the end they
// are added up in pairs, then the lanes in pairs.
func plain(a *assembly, f base.Func) {
	xs, results := []string{"x"}, []string{"y"}
	if f.Rows == 2 {
		xs, results = []string{"x0", "x1"}, []string{"y0", "y1"}
	}
	const w, count gen = 0, 1
	a.ins("MOVD", a.arg("row"), w)
	for c, x := range xs {
		a.ins("MOVD", a.arg(x), gen(2+c))
	}
	a.ins("MOVD", a.arg("blocks"), count)
	sum := func(c, j int) vec { return vec(16 + 8*c + j%8) }
	for c := range f.Rows {
		for j := range 8 {
			a.zero(sum(c, j))
		}
	}
	a.loop(count, func() {
		// four vectors of weights in V0 to V3, of inputs in V4 to V7
		for j := 0; j < base.BlockInputs/4; j += 4 {
			if f.BF16 {
				a.take(w, 4, 5)
				a.word(shll.two(0, 4))
				a.word(shll2.two(1, 4))
				a.word(shll.two(2, 5))
				a.word(shll2.two(3, 5))
			} else {
				a.take(w, 0, 1, 2, 3)
			}
			for c := range f.Rows {
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
		a.ins("FMOVS", fmt.Sprintf("F%d", sum(c, 0)), a.arg(y))
	}
	a.ret()
}

// unpack widens bf16.
func unpack(a *assembly, _ base.Func) {
	const dst, row, count gen = 0, 1, 2
	a.ins("MOVD", a.arg("dst"), dst)
	a.ins("MOVD", a.arg("row"), row)
	a.ins("MOVD", a.arg("blocks"), count)
	a.loop(count, func() {
		a.take(row, 8, 9, 10, 11)
		for i := range vec(base.UnpackInputs / 8) {
			a.word(shll.two(2*i, 8+i))
			a.word(shll2.two(2*i+1, 8+i))
		}
		a.put(dst, 0, 1, 2, 3)
		a.put(dst, 4, 5, 6, 7)
	})
	a.ret()
}
