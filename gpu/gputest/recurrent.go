package gputest

import (
	"fmt"
	"math"

	"github.com/moeflux/moeflux-actor/gpu"
)

func recurrentCases() []testCase {
	var all []testCase
	for _, c := range []convShape{
		{channels: 1, kernel: 1, rows: []int{2}},
		{channels: 5, kernel: 2, rows: []int{1}},
		{channels: 37, kernel: 4, rows: []int{1, 2, 3, 4, 19}},
		{channels: 70, kernel: 3, rows: []int{5}},
		{channels: 700, kernel: 4, rows: []int{40, 1}},
		{channels: 8192, kernel: 4, rows: []int{1}},
	} {
		name := fmt.Sprintf("causalconv/channels=%d/kernel=%d/rows=%v", c.channels, c.kernel, c.rows)
		all = append(all, testCase{name, func(s *setup) { conv(s, c) }})
	}
	for _, d := range []deltaShape{
		{keyHeads: 1, valueHeads: 1, keyDim: 1, valueDim: 1, rows: []int{3}},
		{keyHeads: 2, valueHeads: 4, keyDim: 5, valueDim: 3, rows: []int{1, 4}},
		{keyHeads: 2, valueHeads: 8, keyDim: 16, valueDim: 24, rows: []int{2, 1, 9}},
		{keyHeads: 2, valueHeads: 4, keyDim: 128, valueDim: 128, rows: []int{1, 64}},
		{keyHeads: 2, valueHeads: 4, keyDim: 64, valueDim: 44, rows: []int{70, 1}},
		{keyHeads: 1, valueHeads: 2, keyDim: 256, valueDim: 16, rows: []int{3, 64}},
		{keyHeads: 1, valueHeads: 1, keyDim: 48, valueDim: 33, rows: []int{66}, extreme: true},
		{keyHeads: 1, valueHeads: 1, keyDim: 70, valueDim: 2, rows: []int{20}, extreme: true},
	} {
		name := fmt.Sprintf("deltarule/keyheads=%d/valueheads=%d/dims=%dx%d/rows=%v/extreme=%t",
			d.keyHeads, d.valueHeads, d.keyDim, d.valueDim, d.rows, d.extreme)
		all = append(all, testCase{name, func(s *setup) { delta(s, d) }})
	}
	return all
}

// spread gives each segment rows with one row between them that no segment has.
func spread(rows []int) (first []int, n int) {
	for i, r := range rows {
		if i > 0 {
			n++
		}
		first = append(first, n)
		n += r
	}
	return first, n
}

// stateAt is how far from a segment's State an operation's own part begins: any number but 0.
const stateAt = 12

// stateOf is the State of a segment whose state is where the operand is.
func stateOf(o *operand) gpu.View { return o.view().At(-stateAt) }

type convShape struct {
	channels, kernel int
	rows             []int
}

// conv: Y[t, c] = silu( Σ_j W[c, j]·x_{t-(Kernel-1)+j}[c] ).
func conv(s *setup, c convShape) {
	first, rows := spread(c.rows)
	past := c.kernel - 1
	x, w := s.normal(rows*c.channels), s.normal(c.channels*c.kernel)
	y := s.output("Y", rows*c.channels)
	want, limit, used := make([]float64, rows*c.channels), make([]float64, rows*c.channels), make([]bool, rows)
	op := gpu.CausalConv{X: s.input("X", x).view(), W: s.input("W", w).view(), Y: y.view(), Channels: c.channels, Kernel: c.kernel, StateAt: stateAt}
	for i, n := range c.rows {
		seg := gpu.StateSegment{Row: first[i], Rows: n}
		history := append([]float32{}, s.normal(past*c.channels)...)
		if past > 0 {
			state := s.inout(fmt.Sprintf("state %d", i), history)
			seg.State = stateOf(state)
			history = append(history, x[first[i]*c.channels:(first[i]+n)*c.channels]...)
			state.expectExactly(history[n*c.channels:])
		} else {
			history = x[first[i]*c.channels:]
		}
		op.Segments = append(op.Segments, seg)
		for r := range n {
			used[first[i]+r] = true
			for ch := range c.channels {
				sum, magnitude := 0.0, 0.0
				for j := range c.kernel {
					p := float64(w[ch*c.kernel+j]) * float64(history[(r+j)*c.channels+ch])
					sum += p
					magnitude += math.Abs(p)
				}
				at := (first[i]+r)*c.channels + ch
				want[at] = silu(sum)
				limit[at] = siluSlope*sumTolerance(c.kernel)*magnitude + functionTolerance*math.Abs(want[at]) + tiny
			}
		}
	}
	y.where(func(i int) bool { return used[i/c.channels] }).expect(want, limit)
	gpu.Encode(&s.cmds, op)
	s.run()
}

type deltaShape struct {
	keyHeads, valueHeads, keyDim, valueDim int
	rows                                   []int
	extreme                                bool
}

func (d *deltaShape) width() int { return 2*d.keyHeads*d.keyDim + d.valueHeads*d.valueDim }

// op places the operands of rows rows, without segments.
func (d *deltaShape) op(s *setup, rows int) (gpu.DeltaRule, *operand, *deltaInputs) {
	numbers := s.normal
	if d.extreme {
		numbers = s.extreme
	}
	in := &deltaInputs{qkv: s.normal(rows * d.width()), alpha: numbers(rows * d.valueHeads), beta: numbers(rows * d.valueHeads),
		aLog: s.normal(d.valueHeads), dtBias: s.normal(d.valueHeads)}
	if d.extreme {
		in.aLog[0] = -9 // so slow a decay that even a softplus of 10000 leaves something
	}
	y := s.output("Y", rows*d.valueHeads*d.valueDim)
	return gpu.DeltaRule{QKV: s.input("QKV", in.qkv).view(), Alpha: s.input("Alpha", in.alpha).view(),
		Beta: s.input("Beta", in.beta).view(), ALog: s.input("ALog", in.aLog).view(), DtBias: s.input("DtBias", in.dtBias).view(),
		Y: y.view(), KeyHeads: d.keyHeads, ValueHeads: d.valueHeads, KeyDim: d.keyDim, ValueDim: d.valueDim}, y, in
}

type deltaInputs struct{ qkv, alpha, beta, aLog, dtBias []float32 }

// delta compares the gated delta rule with its definition.
func delta(s *setup, d deltaShape) {
	first, rows := spread(d.rows)
	op, y, in := d.op(s, rows)
	op.StateAt = stateAt
	vectors := d.valueHeads * d.valueDim
	want, limit, used := make([]float64, rows*vectors), make([]float64, rows*vectors), make([]bool, rows)
	for i, n := range d.rows {
		start := s.normal(vectors * d.keyDim)
		state := s.inout(fmt.Sprintf("state %d", i), start)
		op.Segments = append(op.Segments, gpu.StateSegment{Row: first[i], Rows: n, State: stateOf(state)})
		S := float64s(start)
		for r := first[i]; r < first[i]+n; r++ {
			used[r] = true
			d.step(in, S, r, want[r*vectors:(r+1)*vectors], limit[r*vectors:(r+1)*vectors])
		}
		off := make([]float64, len(S))
		for v := 0; v < len(S); v += d.keyDim {
			row := 0.0
			for _, e := range S[v : v+d.keyDim] {
				row = max(row, math.Abs(e))
			}
			for j := range d.keyDim {
				off[v+j] = deltaTolerance*row + tiny
			}
		}
		state.expect(S, off)
	}
	y.where(func(i int) bool { return used[i/vectors] }).expect(want, limit)
	gpu.Encode(&s.cmds, op)
	s.run()
}

// step takes row r through the states S [ValueHeads, ValueDim, KeyDim].
func (d *deltaShape) step(in *deltaInputs, S []float64, r int, y, limit []float64) {
	row := float64s(in.qkv[r*d.width() : (r+1)*d.width()])
	for h := range d.valueHeads {
		key := h / (d.valueHeads / d.keyHeads)
		q := unitVector(row[key*d.keyDim:(key+1)*d.keyDim], math.Pow(float64(d.keyDim), -0.5))
		k := unitVector(row[(d.keyHeads+key)*d.keyDim:(d.keyHeads+key+1)*d.keyDim], 1)
		alpha := float64(in.alpha[r*d.valueHeads+h]) + float64(in.dtBias[h])
		softplus := math.Max(alpha, 0) + math.Log1p(math.Exp(-math.Abs(alpha)))
		g := math.Exp(-math.Exp(float64(in.aLog[h])) * softplus)
		beta := sigmoid(float64(in.beta[r*d.valueHeads+h]))
		for i := range d.valueDim {
			s := S[(h*d.valueDim+i)*d.keyDim:][:d.keyDim]
			predicted := 0.0
			for j := range s {
				s[j] *= g
				predicted += s[j] * k[j]
			}
			delta := beta * (row[2*d.keyHeads*d.keyDim+h*d.valueDim+i] - predicted)
			out, magnitude := 0.0, 0.0
			for j := range s {
				s[j] += delta * k[j]
				out += s[j] * q[j]
				magnitude += (math.Abs(s[j]) + math.Abs(delta*k[j])) * math.Abs(q[j])
			}
			y[h*d.valueDim+i], limit[h*d.valueDim+i] = out, deltaTolerance*magnitude+tiny
		}
	}
}

// unitVector returns x/sqrt(Σx²+1e-6)·scale.
func unitVector(x []float64, scale float64) []float64 {
	sum := 0.0
	for _, v := range x {
		sum += v * v
	}
	u := make([]float64, len(x))
	for i, v := range x {
		u[i] = v / math.Sqrt(sum+1e-6) * scale
	}
	return u
}
