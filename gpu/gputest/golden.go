package gputest

import (
	"encoding/binary"
	"math"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// The golden vectors are small examples worked out in float64, apart from the definitions in this
// package; they are printed to seven digits.
const goldenTolerance = 2e-7

func goldenCases() []testCase {
	return []testCase{
		{"golden/unpack", goldenUnpack},
		{"golden/delta", goldenDelta},
		{"golden/epsilon", goldenEpsilon},
		{"golden/gatednorm", goldenGatedNorm},
		{"golden/rope", goldenRope},
		{"golden/clamp", goldenClamp},
	}
}

// goldenUnpack dequantises the word 0x76543210 with scale 0.5 and bias -1.
func goldenUnpack(s *setup) {
	codes := make([]byte, 16)
	for i := range 4 {
		binary.LittleEndian.PutUint32(codes[4*i:], 0x76543210)
	}
	table := gpu.Matrix{Rows: 1, Cols: 32, Format: quant.Affine(4, 32)}
	table.Weight = s.place("codes", codes, 4).view()
	table.Scales = s.place("scales", s.bf16s([]float32{0.5}), 2).view()
	table.Biases = s.place("biases", s.bf16s([]float32{-1}), 2).view()
	y := s.output("Y", 32)
	var want []float32
	for range 4 {
		want = append(want, -1, -0.5, 0, 0.5, 1, 1.5, 2, 2.5)
	}
	y.expectExactly(want)
	gpu.Encode(&s.cmds, gpu.Embed{Table: table, Tokens: []int32{0}, Y: y.view()})
	s.run()
}

// goldenDelta takes three rows through one head with two keys and two values.
func goldenDelta(s *setup) {
	y, state := s.output("Y", 6), s.inout("state", make([]float32, 4))
	y.expect([]float64{0.1581138, -0.1581138, -0.0030227, -0.5749294, 0.1100959, 0.0424227}, fill(6, goldenTolerance))
	state.expect([]float64{0.1576893, -0.0062282, -0.0004375, 0.4871936}, fill(4, goldenTolerance))
	gpu.Encode(&s.cmds, gpu.DeltaRule{
		QKV: s.input("QKV", []float32{
			1, 2, 1, 0, 1, -1,
			0.5, -1, 0.6, 0.8, 0.5, 2,
			2, 0.25, -1, 1, -0.25, 0.75}).view(),
		Alpha:  s.input("Alpha", []float32{0.1, -0.3, 0.7}).view(),
		Beta:   s.input("Beta", []float32{0, 1, -0.5}).view(),
		ALog:   s.input("ALog", []float32{0.2}).view(),
		DtBias: s.input("DtBias", []float32{0.05}).view(),
		Y:      y.view(), KeyHeads: 1, ValueHeads: 1, KeyDim: 2, ValueDim: 2,
		Segments: []gpu.StateSegment{{Rows: 3, State: state.view()}},
	})
	s.run()
}

// goldenEpsilon finds the 1e-6 of the key norms in the sum and not in the mean: 128 equal elements
// of 0.01 have the length 0.99996, of 0.001 0.99612. From an empty state with β = 1 and v = 1 the
// output is the square of that over √128.
func goldenEpsilon(s *setup) {
	qkv := make([]float32, 2*257)
	for r, v := range []float32{0.01, 0.001} {
		for i := range 256 {
			qkv[r*257+i] = v
		}
		qkv[r*257+256] = 1
	}
	y := s.output("Y", 2)
	y.expect([]float64{0.99996 * 0.99996 / math.Sqrt(128), 0.99612 * 0.99612 / math.Sqrt(128)}, fill(2, 2e-6))
	op := gpu.DeltaRule{QKV: s.input("QKV", qkv).view(), Alpha: s.input("Alpha", []float32{0, 0}).view(),
		Beta: s.input("Beta", []float32{100, 100}).view(), ALog: s.input("ALog", []float32{0}).view(),
		DtBias: s.input("DtBias", []float32{0}).view(), Y: y.view(), KeyHeads: 1, ValueHeads: 1, KeyDim: 128, ValueDim: 1}
	for r, name := range []string{"state 0", "state 1"} {
		op.Segments = append(op.Segments, gpu.StateSegment{Row: r, Rows: 1, State: s.inout(name, make([]float32, 128)).view()})
	}
	gpu.Encode(&s.cmds, op)
	s.run()
}

func goldenGatedNorm(s *setup) {
	y := s.output("Y", 4)
	y.expect([]float64{0.0582618, 0.1424886, 1.5140581, 0}, fill(4, goldenTolerance))
	gpu.Encode(&s.cmds, gpu.GatedNorm{
		X: s.input("X", []float32{1, -2, 0.5, 3}).view(),
		W: s.input("W", []float32{1, 0.5, 2, 1.5}).view(),
		Z: s.input("Z", []float32{0.2, -1, 3, 0}).view(),
		Y: y.view(), Vectors: 1, Dim: 4, Eps: 1e-6,
	})
	s.run()
}

// goldenRope turns unit vectors at position 1000 by four of the frequencies of θ = 1e7 over 64
// channels.
func goldenRope(s *setup) {
	frequencies := []float64{1, 0.60429639, 3.16227766e-4, 1.65481710e-7}
	x, table := make([]float32, 8), make([]float32, 8)
	want := make([]float64, 8)
	for i, f := range frequencies {
		x[i] = 1
		want[i], want[i+4] = math.Cos(1000*f), math.Sin(1000*f)
		table[2*i], table[2*i+1] = float32(want[i]), float32(want[i+4])
	}
	o := s.inout("X", x)
	o.expect(want, fill(8, unit))
	gpu.Encode(&s.cmds, gpu.Rope{X: o.view(), Table: s.input("Table", table).view(), Rows: 1, Heads: 1, Rotary: 8,
		RowStride: 8, HeadStride: 8})
	s.run()
}

// goldenClamp takes gates and ups to both sides of the limit of 7, and two that are no numbers: an
// expert for each, of one input and one output.
func goldenClamp(s *setup) {
	nan := float32(math.NaN())
	gates := []float32{1, -3, 9, 2, 8, 0.5, nan, 1}
	ups := []float32{2, 0.5, 1, -8, 10, -1, 1, nan}
	n := len(gates)
	one := func(name string, x float32) gpu.Matrix {
		return gpu.Matrix{Rows: 1, Cols: 1, Weight: s.input(name, []float32{x}).view()}
	}
	y, scratch := s.output("Y", n), s.output("Scratch", 2*n)
	want := []float64{2.5373873, -0.0271070, 13.9999063, -11.6139517, 55.9996250, 0, math.NaN(), math.NaN()}
	limit := fill(n, goldenTolerance)
	for i, v := range want {
		limit[i] += functionTolerance * math.Abs(v)
	}
	y.expect(want, limit)
	op := gpu.Experts{X: s.input("X", []float32{1}).view(), Y: y.view(), Scratch: scratch.view(), Rows: 1, TopK: n, Table: new(gpu.ExpertTable),
		Clamp: gpu.Clamp{Limit: 7, Alpha: 1.702}}
	for i := range n {
		op.Table.Experts = append(op.Table.Experts, gpu.Expert{Gate: one("gate", gates[i]), Up: one("up", ups[i]), Down: one("down", 1)})
		op.Picks.Host = append(op.Picks.Host, int32(i))
	}
	gpu.Encode(&s.cmds, op)
	s.run()
}
