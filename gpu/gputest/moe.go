package gputest

import (
	"encoding/binary"
	"fmt"
	"math"

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
	s.cmds.EncodeTabulate(gpu.Tabulate{Table: op.Table})
}

// chosen has the device choose the picks: their scores are the highest, in their order.
func (e *expertShape) chosen(s *setup, picks []int32) gpu.View {
	scores := make([]float32, e.rows*e.experts)
	for i, x := range picks {
		scores[i/e.topK*e.experts+int(x)] = float32(e.topK - i%e.topK)
	}
	at, weights := s.output("Picks", len(picks)), s.output("Weights", len(picks))
	at.expectBytes(intBytes(picks))
	s.cmds.EncodeRoute(gpu.Route{Scores: s.input("Scores", scores).view(), Picks: at.view(), Weights: weights.view(), Rows: e.rows, Experts: e.experts, TopK: e.topK})
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

// experts: Y[row, pick, :] = Down·( silu(Gate·X[row]) ⊙ (Up·X[row]) ).
func experts(s *setup, e expertShape) {
	data := s.normal(e.rows * e.dim)
	for i := range data {
		data[i] /= float32(math.Sqrt(float64(e.dim))) // so that silu sees numbers around 1
	}
	n := e.rows * e.topK
	y, scratch := s.output("Y", n*e.dim), s.output("Scratch", n*2*e.inner)
	op := gpu.Experts{X: s.input("X", data).view(), Y: y.view(), Scratch: scratch.view(), Rows: e.rows, TopK: e.topK, Table: new(gpu.ExpertTable)}
	want, limit, used := make([]float64, n*e.dim), make([]float64, n*e.dim), make([]bool, n)
	picks := e.route(s)
	for i := range e.experts - e.missing {
		gate, up, down := e.one(s, i)
		op.Table.Experts = append(op.Table.Experts, gpu.Expert{Gate: gate.Matrix, Up: up.Matrix, Down: down.Matrix})
		for p, x := range picks {
			if int(x) != i {
				continue
			}
			used[p] = true
			r := p / e.topK
			x := float64s(data[r*e.dim : (r+1)*e.dim])
			g, gOff := gate.times(s.held(gate, x, nil))
			u, uOff := up.times(s.held(up, x, nil))
			h, off := make([]float64, e.inner), make([]float64, e.inner)
			for j := range h {
				h[j] = silu(g[j]) * u[j]
				off[j] = siluSlope*gOff[j]*math.Abs(u[j]) + math.Abs(silu(g[j]))*uOff[j] + functionTolerance*math.Abs(h[j])
			}
			v, l := down.times(s.held(down, h, off))
			copy(want[p*e.dim:], v)
			copy(limit[p*e.dim:], l)
		}
	}
	e.where(s, &op, picks)
	y.where(func(i int) bool { return used[i/e.dim] }).expect(want, limit)
	s.cmds.EncodeExperts(op)
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
	s.cmds.EncodeCombine(op)
	return y
}
