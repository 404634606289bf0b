package gputest

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// Rounds reports whether a device that is set to round inputs of products to 8 bits does so where
// the matrix is of a format.
type Rounds func(f quant.Format) bool

// held returns x as the device holds it when it multiplies it by w, and the error it may have when
// x is off by at most off (nil: exact).
func (s *setup) held(w *weights, x, off []float64) (y, yOff []float64) {
	if s.rounds == nil || !s.rounds(w.Format) {
		return x, off
	}
	y = make([]float64, len(x))
	if off != nil {
		yOff = make([]float64, len(x))
	}
	n := w.Format.Rounded()
	for g := 0; g < len(x); g += n {
		most, mostOff := 0., 0.
		for i := g; i < g+n; i++ {
			most = max(most, math.Abs(x[i]))
			if off != nil {
				mostOff = max(mostOff, off[i])
			}
		}
		scale := float64(float32(most) / 127)
		if scale == 0 {
			continue
		}
		for i := g; i < g+n; i++ {
			steps := float64(float32(x[i]) / float32(scale))
			q := math.RoundToEven(steps)
			y[i] = q * scale
			if off == nil {
				continue
			}
			yOff[i] = math.Abs(q) * mostOff / 127
			// Where x is off it may be rounded to the other side of a half.
			slack := (off[i]+math.Abs(q)*mostOff/127)/scale + 2*unit*math.Abs(steps)
			if math.Abs(math.Abs(steps-q)-0.5) <= slack {
				yOff[i] += scale
			}
		}
	}
	return y, yOff
}

// queryGroup divides the groups in which queries are rounded, see gpu.Attention.
const queryGroup = 16

// query returns a query as the device multiplies it by the keys of kv, and by what the products
// are multiplied.
func (s *setup) query(kv *gpu.KV, q []float32, scale float32) (held []float64, by float64) {
	held = make([]float64, len(q))
	if !s.queries || kv.Format != gpu.KVInt8 || kv.Group%queryGroup != 0 {
		for i, v := range q {
			held[i] = float64(v)
		}
		return held, float64(scale)
	}
	for g := 0; g < len(q); g += kv.Group {
		most := 0.
		for i := g; i < g+kv.Group; i++ {
			held[i] = float64(scale * q[i])
			most = max(most, math.Abs(held[i]))
		}
		step := float64(float32(most) / 127)
		for i := g; i < g+kv.Group; i++ {
			held[i] = math.RoundToEven(float64(float32(held[i]/step))) * step
		}
	}
	return held, 1
}

// roundedQueryCases are those of attention to keys in 8 bits, and roundedQueryNear.
func roundedQueryCases() []testCase {
	all := slices.DeleteFunc(cases(), func(c testCase) bool {
		kind := c.kind()
		return kind != "attention" && kind != "valuedim" || !strings.Contains(c.name, "/int8=") || strings.Contains(c.name, "/int8=0/")
	})
	return append(all, testCase{"attention/rounded", roundedQueryNear})
}

// roundedQueryNear wants rounded queries to change the result a little. A score is a sum of
// products that are each off by a hundredth or less either way, and so is a weight.
func roundedQueryNear(s *setup) {
	const near = 0.02
	a := attentionShape{heads: 8, kvHeads: 2, dim: 128, pageRows: 64, segments: [][2]int{{600, 1}, {100, 9}}, group: 128}
	s.queries = false // of the reference
	y, _ := s.attended(a)
	exact := y.want
	y.limit = fill(len(y.limit), 1)
	s.run()
	wrong, norm := 0., 0.
	for i, v := range y.floats() {
		if !y.written(i) {
			continue
		}
		wrong += (float64(v) - exact[i]) * (float64(v) - exact[i])
		norm += exact[i] * exact[i]
	}
	if loss := math.Sqrt(wrong / norm); !(loss <= near) || loss < 1e-4 {
		s.t.Errorf("queries of 8 bits change the result by %.2g of its norm, want at least 0.0001 and at most %v", loss, near)
	}
}

// roundedLoss bounds the norm of what rounding the inputs changes, against the norm of the exact
// result. The largest of 64 normal inputs is 2.4 or so of their deviations; a step is a 127th of
// that and errs by its 12th root: half a hundredth.
const roundedLoss = 0.01

// roundedCases are about the rounding of inputs itself.
func roundedCases(rounds Rounds) []testCase {
	var all []testCase
	for _, f := range append(codeFormats(), panelFormats()...) {
		if !rounds(f) {
			continue
		}
		all = append(all, testCase{fmt.Sprintf("rounded/near/format=%v", f), func(s *setup) { roundedNear(s, f) }},
			testCase{fmt.Sprintf("rounded/not-finite/format=%v", f), func(s *setup) { roundedNotFinite(s, f) }})
	}
	return append(append(all, roundedBlocks(rounds)...), testCase{"rounded/joined", roundedJoined})
}

// roundedNear wants products near those of the inputs before they are rounded.
func roundedNear(s *setup, f quant.Format) {
	const out, in, rows = 64, 512, 5
	w, data := s.matrix("W", out, in, f), s.normal(rows*in)
	y := s.output("Y", rows*out)
	gpu.Encode(&s.cmds, gpu.MatMul{W: w.Matrix, X: s.input("X", data).view(), Y: y.view(), Rows: rows})
	s.run()
	if s.unchecked {
		return
	}
	var wrong, norm float64
	for r := range rows {
		want, _ := w.times(float64s(data[r*in:(r+1)*in]), nil)
		for o, v := range want {
			d := float64(y.floats()[r*out+o]) - v
			wrong, norm = wrong+d*d, norm+v*v
		}
	}
	if loss := math.Sqrt(wrong / norm); !(loss <= roundedLoss) || loss == 0 {
		s.t.Errorf("inputs of 8 bits change the result by %.2g of its norm, want more than 0 and at most %v", loss, roundedLoss)
	}
}

// roundedNotFinite wants a row with one infinite number or none to give no numbers, and the other
// rows to be left alone by it.
func roundedNotFinite(s *setup, f quant.Format) {
	const out, in, rows = 32, 256, 9
	w, data := s.matrix("W", out, in, f), s.normal(rows*in)
	data[1*in+200], data[4*in], data[8*in+255] = float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))
	y := s.output("Y", rows*out)
	gpu.Encode(&s.cmds, gpu.MatMul{W: w.Matrix, X: s.input("X", data).view(), Y: y.view(), Rows: rows})
	s.run()
	for i, v := range y.floats() {
		row := i / out
		if odd := row == 1 || row == 4 || row == 8; odd != (v != v) {
			s.t.Fatalf("row %d, output %d: %v", row, i%out, v)
		}
	}
}

// roundedJoined multiplies one X by several matrices next to each other, which a device may do at
// once.
func roundedJoined(s *setup) {
	const dim, rows = 128, 3
	data := s.normal(rows * dim)
	x := s.input("X", data)
	q4 := quant.Affine(4, 64).In(quant.Panels, quant.PanelRows)
	q8 := quant.Affine(8, 32)
	for i, f := range []quant.Format{q4, q8, quant.BF16, q4, q8, q4, q4, q8, q4, {}, q8} {
		w, y := s.matrix(fmt.Sprintf("W %d", i), dim, dim, f), s.output(fmt.Sprintf("Y %d", i), rows*dim)
		exact := i%4 == 3
		want, limit := make([]float64, 0, rows*dim), make([]float64, 0, rows*dim)
		for r := range rows {
			held := float64s(data[r*dim : (r+1)*dim])
			if !exact {
				held, _ = s.held(w, held, nil)
			}
			v, l := w.times(held, nil)
			want, limit = append(want, v...), append(limit, l...)
		}
		y.expect(want, limit)
		gpu.Encode(&s.cmds, gpu.MatMul{W: w.Matrix, X: x.view(), Y: y.view(), Rows: rows, Exact: exact})
	}
	s.run()
}
