package gputest

import (
	"fmt"
	"math"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// edgeCases are about inputs at the ends of what float32 holds: a device may multiply numbers of
// its own making.
func edgeCases() []testCase {
	var all []testCase
	for _, f := range append(formats(), panelFormats()...) {
		for _, copies := range []int{1, 7} {
			all = append(all, testCase{fmt.Sprintf("matmul/edges/format=%v/copies=%d", f, copies), func(s *setup) { edges(s, f, copies) }})
		}
	}
	return all
}

// edges multiplies rows of all kinds, each several times, so that they travel in companies of
// several sizes.
func edges(s *setup, f quant.Format, copies int) {
	const out, in = 32, 256
	w := s.matrix("W", out, in, f)
	kinds := []func(x []float32){
		func(x []float32) { x[200] = float32(math.NaN()) },
		func(x []float32) { x[0] = float32(math.Inf(1)) },
		func(x []float32) { x[255] = float32(math.Inf(-1)) },
		func(x []float32) {},
		func(x []float32) { clear(x) },
		func(x []float32) { clear(x[:128]); x[3] = float32(math.Copysign(0, -1)) },
		func(x []float32) { scaleBy(x, 1e-30) },
		func(x []float32) { scaleBy(x, 1e-40) }, // not normal
		func(x []float32) { scaleBy(x, 1e30) },
		func(x []float32) { x[70] = -1e7 },
		func(x []float32) { x[130] = math.Nextafter32(2, 0); x[131] = -2 },
	}
	const notFinite = 3 // of them
	rows := copies * len(kinds)
	data := s.normal(rows * in)
	want, limit := make([]float64, rows*out), make([]float64, rows*out)
	for r := range rows {
		x := data[r*in : (r+1)*in]
		kinds[r%len(kinds)](x)
		v, l := w.times(float64s(x), heldOff(f, x))
		copy(want[r*out:], v)
		copy(limit[r*out:], l)
	}
	y := s.output("Y", rows*out)
	gpu.Encode(&s.cmds, gpu.MatMul{W: w.Matrix, X: s.input("X", data).view(), Y: y.view(), Rows: rows})
	s.run()
	for i, v := range y.floats() {
		kind, got := i/out%len(kinds), float64(v)
		switch {
		// An infinity times a weight of 0 is a NaN, times others it is infinite: a device may
		// make either of all.
		case kind < notFinite && (math.IsNaN(got) || kind > 0 && math.IsInf(got, 0)):
		case kind >= notFinite && (s.unchecked || math.Abs(got-want[i]) <= limit[i]):
		default:
			s.t.Fatalf("row %d of kind %d, output %d: %v, want %v within %.3g", i/out, kind, i%out, got, want[i], limit[i])
		}
	}
}

// heldOff is how far off a device may hold the inputs of an affine matrix, see gpu.MatMul; nil: not
// at all.
func heldOff(f quant.Format, x []float32) []float64 {
	if !f.Rounds() {
		return nil
	}
	off := make([]float64, len(x))
	for g := 0; g < len(x); g += f.Group() {
		most := 0.
		for _, v := range x[g : g+f.Group()] {
			most = max(most, math.Abs(float64(v)))
		}
		for i := g; i < g+f.Group(); i++ {
			off[i] = 2 * unit * most
		}
	}
	return off
}

func scaleBy(x []float32, by float32) {
	for i := range x {
		x[i] *= by
	}
}
