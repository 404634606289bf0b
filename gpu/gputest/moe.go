package gputest

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model/quant"
)

func expertCases() []testCase {
	var all []testCase
	for _, f := range append(formats(), panelFormats()...) {
		all = append(all, testCase{fmt.Sprintf("experts/format=%v/rows=9", f), func(s *setup) {
			experts(s, expertShape{dim: 256, inner: 128, rows: 9, topK: 3, experts: 7, gate: f, up: f, down: f})
		}})
	}
	p4 := quant.Affine(4, 64).In(quant.Panels, quant.PanelRows)
	q4, q8, f32 := quant.Affine(4, 64), quant.Affine(8, 32), quant.Format{}
	biased := expertShape{dim: 256, inner: 64, rows: 9, topK: 3, experts: 7, biased: true}
	for _, clamp := range []gpu.Clamp{{}, {Limit: 0.75, Alpha: 1.702}, {Limit: 0.25}} {
		for _, f := range [][2]quant.Format{{quant.MXFP4, quant.MXFP4}, {p4, p4}, {q4, q8}, {quant.BF16, q4}} {
			e := biased
			e.gate, e.up, e.down, e.clamp = f[0], f[1], f[0], clamp
			all = append(all, testCase{fmt.Sprintf("experts/biased/clamp=%v/%v,%v", clamp, f[0], f[1]), func(s *setup) { experts(s, e) }})
			e.resident = true
			all = append(all, testCase{fmt.Sprintf("experts/biased/clamp=%v/%v,%v/resident", clamp, f[0], f[1]), func(s *setup) { experts(s, e) }})
		}
	}
	for _, e := range []expertShape{
		{dim: 64, inner: 64, rows: 1, topK: 4, experts: 4, gate: q4, up: q4, down: q4, clamp: gpu.Clamp{Limit: 1, Alpha: 1}},
		{dim: 64, inner: 32, rows: 80, topK: 2, experts: 3, missing: 1, gate: p4, up: p4, down: quant.MXFP4, biased: true, clamp: gpu.Clamp{Limit: 0.5, Alpha: 1.702}},
		{dim: 13, inner: 7, rows: 5, topK: 4, experts: 5, biased: true, clamp: gpu.Clamp{Limit: 0.5, Alpha: 3}},
	} {
		name := fmt.Sprintf("experts/dim=%d/inner=%d/rows=%d/clamp=%v/biased=%t", e.dim, e.inner, e.rows, e.clamp, e.biased)
		all = append(all, testCase{name, func(s *setup) { experts(s, e) }})
	}
	for _, e := range []expertShape{
		{dim: 128, inner: 64, rows: 1, topK: 1, experts: 1, gate: q4, up: q4, down: q4},
		{dim: 512, inner: 192, rows: 1, topK: 8, experts: 8, gate: q4, up: q4, down: q4},
		{dim: 128, inner: 64, rows: 70, topK: 2, experts: 3, gate: q4, up: q8, down: f32},
		{dim: 128, inner: 64, rows: 3, topK: 2, experts: 3, gate: f32, up: f32, down: q4},
		{dim: 128, inner: 64, rows: 70, topK: 2, experts: 3, gate: p4, up: q8, down: p4},
		{dim: 512, inner: 192, rows: 1, topK: 8, experts: 8, gate: p4, up: p4, down: p4},
		{dim: 13, inner: 7, rows: 5, topK: 4, experts: 5, gate: f32, up: f32, down: f32},
		{dim: 128, inner: 64, rows: 20, topK: 4, experts: 8, missing: 5, gate: q4, up: q4, down: q4},
		{dim: 64, inner: 64, rows: 1, topK: 5, experts: 33, gate: q4, up: q4, down: q4},
		{dim: 64, inner: 64, rows: 150, topK: 6, experts: 70, missing: 3, gate: q4, up: q4, down: q4},
	} {
		name := fmt.Sprintf("experts/dim=%d/inner=%d/rows=%d/topk=%d/experts=%d-%d/%v,%v,%v",
			e.dim, e.inner, e.rows, e.topK, e.experts, e.missing, e.gate, e.up, e.down)
		all = append(all, testCase{name, func(s *setup) { experts(s, e) }})
		r := e
		r.resident = true
		all = append(all, testCase{name + "/resident", func(s *setup) { experts(s, r) }})
		m := r
		m.moved = true
		all = append(all, testCase{name + "/moved", func(s *setup) { experts(s, m) }})
		if e.missing == 0 {
			c := r
			c.routed = true
			all = append(all, testCase{name + "/routed", func(s *setup) { experts(s, c) }})
		}
	}
	return all
}

func combineCases() []testCase {
	var all []testCase
	for _, rows := range []int{1, 3, 50} {
		for _, c := range []combineShape{{}, {shared: true}, {shared: true, gated: true}, {shared: true, gated: true, inPlace: true},
			{shared: true, gated: true, resident: true}} {
			name := fmt.Sprintf("combine/rows=%d/shared=%t/gated=%t/inplace=%t/resident=%t", rows, c.shared, c.gated, c.inPlace, c.resident)
			all = append(all, testCase{name, func(s *setup) { combine(s, rows, 3, 131, c) }})
		}
	}
	return all
}

type expertShape struct {
	dim, inner, rows, topK, experts int
	missing                         int // experts that this operation leaves out, as another wave's
	gate, up, down                  quant.Format
	resident                        bool // table and picks lie on the device
	routed                          bool // and the picks were chosen there, just before
	moved                           bool // and each expert lay elsewhere at first
	biased                          bool
	clamp                           gpu.Clamp
}

// route draws topK different experts for each row. A pick of an expert that is left out is -1.
func (e *expertShape) route(s *setup) []int32 {
	var picks []int32
	for range e.rows {
		for _, x := range s.rng.Perm(e.experts)[:e.topK] {
			if x >= e.experts-e.missing {
				x = -1
			}
			picks = append(picks, int32(x))
		}
	}
	return picks
}

// where puts table and picks of an operation where they lie.
func (e *expertShape) where(s *setup, op *gpu.Experts, picks []int32) {
	if !e.resident {
		op.Picks.Host = picks
		return
	}
	if e.routed {
		op.Picks.At = e.chosen(s, picks)
	} else {
		op.Picks.At = s.place("Picks", intBytes(picks), 4).view()
	}
	at := s.place("Table", make([]byte, len(op.Table.Experts)*gpu.TableBytes), 16)
	at.ours = true
	op.Table.At = at.view()
	if !e.moved {
		gpu.Encode(&s.cmds, gpu.Tabulate{Table: op.Table})
		return
	}
	list := op.Table.Experts
	op.Table.Experts = append(slices.Clone(list[1:]), list[0])
	gpu.Encode(&s.cmds, gpu.Tabulate{Table: op.Table})
	for i, one := range list {
		gpu.Encode(&s.cmds, gpu.Retabulate{Table: op.Table, Index: i, Expert: one})
	}
}

// chosen has the device choose the picks: their scores are the highest, in their order.
func (e *expertShape) chosen(s *setup, picks []int32) gpu.View {
	scores := make([]float32, e.rows*e.experts)
	for i, x := range picks {
		scores[i/e.topK*e.experts+int(x)] = float32(e.topK - i%e.topK)
	}
	at, weights := s.output("Picks", len(picks)), s.output("Weights", len(picks))
	at.expectBytes(intBytes(picks))
	gpu.Encode(&s.cmds, gpu.Route{Scores: s.input("Scores", scores).view(), Picks: at.view(), Weights: weights.view(), Rows: e.rows, Experts: e.experts, TopK: e.topK})
	return at.view()
}

// intBytes returns the memory of list as bytes.
func intBytes(list []int32) []byte {
	var b []byte
	for _, v := range list {
		b = binary.NativeEndian.AppendUint32(b, uint32(v))
	}
	return b
}

// one places the matrices of one expert.
func (e *expertShape) one(s *setup, i int) (gate, up, down *weights) {
	return s.matrix(fmt.Sprintf("gate %d", i), e.inner, e.dim, e.gate), s.matrix(fmt.Sprintf("up %d", i), e.inner, e.dim, e.up),
		s.matrix(fmt.Sprintf("down %d", i), e.dim, e.inner, e.down)
}

// bias draws the bias of a product of n numbers, if the experts have any.
func (e *expertShape) bias(s *setup, name string, n int) (gpu.View, []float32) {
	if !e.biased {
		return gpu.View{}, make([]float32, n)
	}
	b := s.normal(n)
	return s.input(name, b).view(), b
}

// addBias adds a bias to a product, and its rounding to how far that may be off.
func addBias(y, off []float64, bias []float32) {
	for i, b := range bias {
		if b == 0 {
			continue
		}
		y[i] += float64(b)
		off[i] += unit * (math.Abs(y[i]) + off[i])
	}
}

// gated is what an expert makes of a gate and an up, and how far it may be off where they are.
func gated(c gpu.Clamp, g, gOff, u, uOff float64) (h, off float64) {
	factor := silu(g)
	if limit, alpha := float64(c.Limit), float64(c.Alpha); limit > 0 {
		u = min(max(u, -limit), limit)
		if alpha == 0 {
			factor = min(factor, limit)
		} else {
			g, u = min(g, limit), u+1
			factor = g * sigmoid(alpha*g)
			uOff += 2 * unit * (math.Abs(u) + 1)
		}
	}
	h = factor * u
	return h, siluSlope*gOff*math.Abs(u) + math.Abs(factor)*uOff + functionTolerance*math.Abs(h)
}

// experts: Y[row, pick, :] = Down·( silu(Gate·X[row]) ⊙ (Up·X[row]) ), with biases and bounds where
// the shape has any.
func experts(s *setup, e expertShape) {
	data := s.normal(e.rows * e.dim)
	for i := range data {
		data[i] /= float32(math.Sqrt(float64(e.dim))) // so that silu sees numbers around 1
	}
	n := e.rows * e.topK
	y, scratch := s.output("Y", n*e.dim), s.output("Scratch", n*2*e.inner)
	op := gpu.Experts{X: s.input("X", data).view(), Y: y.view(), Scratch: scratch.view(), Rows: e.rows, TopK: e.topK, Table: new(gpu.ExpertTable),
		Clamp: e.clamp}
	want, limit, used := make([]float64, n*e.dim), make([]float64, n*e.dim), make([]bool, n)
	picks := e.route(s)
	for i := range e.experts - e.missing {
		gate, up, down := e.one(s, i)
		one := gpu.Expert{Gate: gate.Matrix, Up: up.Matrix, Down: down.Matrix}
		var gateBias, upBias, downBias []float32
		one.GateBias, gateBias = e.bias(s, fmt.Sprintf("gate bias %d", i), e.inner)
		one.UpBias, upBias = e.bias(s, fmt.Sprintf("up bias %d", i), e.inner)
		one.DownBias, downBias = e.bias(s, fmt.Sprintf("down bias %d", i), e.dim)
		op.Table.Experts = append(op.Table.Experts, one)
		for p, x := range picks {
			if int(x) != i {
				continue
			}
			used[p] = true
			r := p / e.topK
			x := float64s(data[r*e.dim : (r+1)*e.dim])
			g, gOff := gate.times(s.held(gate, x, nil))
			u, uOff := up.times(s.held(up, x, nil))
			addBias(g, gOff, gateBias)
			addBias(u, uOff, upBias)
			h, off := make([]float64, e.inner), make([]float64, e.inner)
			for j := range h {
				h[j], off[j] = gated(e.clamp, g[j], gOff[j], u[j], uOff[j])
			}
			v, l := down.times(s.held(down, h, off))
			addBias(v, l, downBias)
			copy(want[p*e.dim:], v)
			copy(limit[p*e.dim:], l)
		}
	}
	e.where(s, &op, picks)
	y.where(func(i int) bool { return used[i/e.dim] }).expect(want, limit)
	gpu.Encode(&s.cmds, op)
	s.run()
}

type combineShape struct{ shared, gated, inPlace, resident bool }

func combine(s *setup, rows, topK, dim int, c combineShape) {
	s.combined(rows, topK, dim, c)
	s.run()
}

// combined: Y = Residual + (Σ_k w_k·Routed_k + t·Shared), k ascending. It returns Y.
func (s *setup) combined(rows, topK, dim int, c combineShape) *operand {
	routed, shared, gate := s.normal(rows*topK*dim), s.normal(rows*dim), s.extreme(rows)
	residual, weights := s.normal(rows*dim), s.normal(rows*topK)
	want, limit := make([]float64, rows*dim), make([]float64, rows*dim)
	for i := range want {
		r, d := i/dim, i%dim
		magnitude := math.Abs(float64(residual[i]))
		want[i] = float64(residual[i])
		for k := range topK {
			p := float64(weights[r*topK+k]) * float64(routed[(r*topK+k)*dim+d])
			want[i] += p
			magnitude += math.Abs(p)
		}
		if c.shared {
			p := float64(shared[i])
			if c.gated {
				p *= sigmoid(float64(gate[r]))
			}
			want[i] += p
			magnitude += math.Abs(p) * (1 + functionTolerance/unit)
		}
		limit[i] = sumTolerance(topK+2)*magnitude + tiny
	}
	op := gpu.Combine{Routed: s.input("Routed", routed).view(), Rows: rows, TopK: topK, Dim: dim}
	op.Weights.Host = weights
	if c.resident {
		op.Weights = gpu.List[float32]{At: s.input("Weights", weights).view()}
	}
	if c.shared {
		op.Shared = s.input("Shared", shared).view()
	}
	if c.gated {
		op.SharedGate = s.input("SharedGate", gate).view()
	}
	var y *operand
	if c.inPlace {
		y = s.inout("Residual and Y", residual)
		op.Residual = y.view()
	} else {
		y = s.output("Y", rows*dim)
		op.Residual = s.input("Residual", residual).view()
	}
	op.Y = y.view()
	y.expect(want, limit)
	gpu.Encode(&s.cmds, op)
	return y
}
