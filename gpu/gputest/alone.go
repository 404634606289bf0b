package gputest

import (
	"fmt"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/internal/numcmp"
	"github.com/moeflux/moeflux-actor/internal/testenv"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// company is how many rows are computed together at most.
const company = 64

// aloneCase builds an operation on some rows of inputs that depend on the case alone, and returns
// its output, dense, one row of the same width for each.
type aloneCase struct {
	name  string
	build func(s *setup, rows []int) *operand
}

// choose returns the given rows of data [company, len/company].
func choose(data []float32, rows []int) []float32 {
	width := len(data) / company
	var some []float32
	for _, r := range rows {
		some = append(some, data[r*width:(r+1)*width]...)
	}
	return some
}

// testAlone tests a part of the cases.
func testAlone(t *testing.T, d gpu.Device, cases []aloneCase, oneIn int, begin beginner) {
	for _, c := range cases {
		if testenv.Share(t, c.name, testenv.Rounds(max(4, oneIn), max(3, oneIn), 1)) {
			t.Run(c.name, func(t *testing.T) { c.test(t, d, begin) })
		}
	}
}

// test computes rows alone, by threes and all together: the bits must not change.
func (c *aloneCase) test(t *testing.T, d gpu.Device, begin beginner) {
	all := make([]int, company)
	for i := range all {
		all[i] = i
	}
	compute := func(rows []int) []float32 {
		s := begin(t, d, c.name)
		y := c.build(s, rows)
		s.run()
		return y.floats()
	}
	together := compute(all)
	for _, rows := range [][]int{{0}, {17}, {63}, {5, 6, 7}, {63, 2, 31}, all[:62], {9, 8}} {
		if err := numcmp.Equal(compute(rows), choose(together, rows)); err != nil {
			t.Errorf("rows %v differ from the same rows among %d: %v", rows, company, err)
		}
	}
}

func aloneProducts() (list []aloneCase) {
	for _, f := range append(formats(), panelFormats()...) {
		out := 37
		if f.Layout == quant.Panels {
			out = 48
		}
		list = append(list,
			aloneCase{fmt.Sprintf("matmul/format=%v", f), func(s *setup, rows []int) *operand { return aloneMatMul(s, rows, f, out, 384) }},
			aloneCase{fmt.Sprintf("experts/format=%v", f), func(s *setup, rows []int) *operand { return aloneExperts(s, rows, f) }})
	}
	slices := quant.Affine(4, 64).In(quant.Panels, quant.PanelRows) // of inputs, the last of fewer
	list = append(list, aloneCase{fmt.Sprintf("matmul/format=%v/slices", slices),
		func(s *setup, rows []int) *operand { return aloneMatMul(s, rows, slices, 80, 1216) }})
	for _, f := range formats()[:2] {
		list = append(list, aloneCase{fmt.Sprintf("matmul/format=%v/odd", f),
			func(s *setup, rows []int) *operand { return aloneMatMul(s, rows, f, 5, 199) }})
	}
	return append(list, aloneBlocks()...)
}

func aloneMatMul(s *setup, rows []int, f quant.Format, out, in int) *operand {
	w := s.matrix("W", out, in, f)
	x := s.input("X", choose(s.normal(company*in), rows))
	y := s.output("Y", len(rows)*out)
	gpu.Encode(&s.cmds, gpu.MatMul{W: w.Matrix, X: x.view(), Y: y.view(), Rows: len(rows)})
	return y
}

func aloneEmbed(s *setup, rows []int, f quant.Format) *operand {
	table := s.matrix("Table", company, 128, f)
	y := s.output("Y", len(rows)*128)
	tokens := make([]int32, len(rows))
	for i, r := range rows {
		tokens[i] = int32(r)
	}
	gpu.Encode(&s.cmds, gpu.Embed{Table: table.Matrix, Tokens: tokens, Y: y.view()})
	return y
}

func aloneNorm(s *setup, rows []int) *operand {
	const dim = 331
	w, x, y := s.input("W", s.normal(dim)), s.input("X", choose(s.normal(company*dim), rows)), s.output("Y", len(rows)*dim)
	gpu.Encode(&s.cmds, gpu.RMSNorm{X: x.view(), W: w.view(), Y: y.view(), Vectors: len(rows), Dim: dim, Eps: eps})
	return y
}

func aloneGatedNorm(s *setup, rows []int) *operand {
	const dim = 331
	w, x := s.input("W", s.normal(dim)), s.input("X", choose(s.normal(company*dim), rows))
	z, y := s.input("Z", choose(s.normal(company*dim), rows)), s.output("Y", len(rows)*dim)
	gpu.Encode(&s.cmds, gpu.GatedNorm{X: x.view(), W: w.view(), Z: z.view(), Y: y.view(), Vectors: len(rows), Dim: dim, Eps: eps})
	return y
}

func aloneSwiGLU(s *setup, rows []int) *operand {
	const dim = 331
	g, u := s.input("Gate", choose(s.extreme(company*dim), rows)), s.input("Up", choose(s.normal(company*dim), rows))
	y := s.output("Y", len(rows)*dim)
	gpu.Encode(&s.cmds, gpu.SwiGLU{Gate: g.view(), Up: u.view(), Y: y.view(), Rows: len(rows), Dim: dim})
	return y
}

func aloneGate(s *setup, rows []int) *operand {
	const heads, dim = 4, 48
	x := s.inout("X", choose(s.normal(company*heads*dim), rows))
	g := s.input("G", choose(s.extreme(company*heads*dim), rows))
	gpu.Encode(&s.cmds, gpu.SigmoidGate{X: x.view(), G: g.view(), Rows: len(rows), Heads: heads, Dim: dim,
		GRowStride: heads * dim, GHeadStride: dim})
	return x
}

func aloneRope(s *setup, rows []int) *operand {
	const heads, dim, rotary = 4, 48, 32
	x := s.inout("X", choose(s.normal(company*heads*dim), rows))
	table := s.input("Table", choose(s.normal(company*rotary), rows))
	gpu.Encode(&s.cmds, gpu.Rope{X: x.view(), Table: table.view(), Rows: len(rows), Heads: heads, Rotary: rotary,
		RowStride: heads * dim, HeadStride: dim})
	return x
}

// aloneAttention gives each row its own sequence, with its own length.
func aloneAttention(s *setup, rows []int, dim, group int) *operand {
	const heads, kvHeads = 4, 2
	data := s.normal(company * heads * dim)
	op := gpu.Attention{QRowStride: heads * dim, QHeadStride: dim, Heads: heads, KVHeads: kvHeads, HeadDim: dim, Scale: 0.2}
	sequences := make([]gpu.KVSegment, company)
	for r := range sequences {
		n := 1 + r*3
		kv := s.cache(fmt.Sprintf("sequence %d", r), cacheShape{16, kvHeads * dim, group, 0}, n, n).kv
		op.Cache, sequences[r] = kv.KVLayout, gpu.KVSegment{Rows: 1, Pos: n - 1, Pages: kv.Pages}
	}
	for i, r := range rows {
		sequences[r].Row = i
		op.Segments = append(op.Segments, sequences[r])
	}
	q, y := s.input("Q", choose(data, rows)), s.output("Y", len(rows)*heads*dim)
	op.Q, op.Y = q.view(), y.view()
	gpu.Encode(&s.cmds, op)
	return y
}

// states returns one state a row, each of n numbers.
func (s *setup) states(n int, rows []int) []gpu.StateSegment {
	all := make([]gpu.View, company)
	for r := range all {
		all[r] = s.inout(fmt.Sprintf("state %d", r), s.normal(n)).view()
	}
	var segments []gpu.StateSegment
	for i, r := range rows {
		segments = append(segments, gpu.StateSegment{Row: i, Rows: 1, State: all[r]})
	}
	return segments
}

func aloneConv(s *setup, rows []int) *operand {
	const channels, kernel = 150, 4
	w := s.input("W", s.normal(channels*kernel))
	x, y := s.input("X", choose(s.normal(company*channels), rows)), s.output("Y", len(rows)*channels)
	gpu.Encode(&s.cmds, gpu.CausalConv{X: x.view(), W: w.view(), Y: y.view(), Channels: channels, Kernel: kernel,
		Segments: s.states((kernel-1)*channels, rows)})
	return y
}

func aloneDelta(s *setup, rows []int) *operand {
	const keyHeads, valueHeads, keyDim, valueDim = 2, 4, 20, 12
	qkv := choose(s.normal(company*(2*keyHeads*keyDim+valueHeads*valueDim)), rows)
	alpha, beta := choose(s.normal(company*valueHeads), rows), choose(s.normal(company*valueHeads), rows)
	y := s.output("Y", len(rows)*valueHeads*valueDim)
	gpu.Encode(&s.cmds, gpu.DeltaRule{QKV: s.input("QKV", qkv).view(), Alpha: s.input("Alpha", alpha).view(),
		Beta: s.input("Beta", beta).view(), ALog: s.input("ALog", s.normal(valueHeads)).view(),
		DtBias: s.input("DtBias", s.normal(valueHeads)).view(), Y: y.view(), KeyHeads: keyHeads, ValueHeads: valueHeads,
		KeyDim: keyDim, ValueDim: valueDim, Segments: s.states(valueHeads*valueDim*keyDim, rows)})
	return y
}

func aloneCombine(s *setup, rows []int) *operand {
	const topK, dim = 3, 100
	routed, shared := choose(s.normal(company*topK*dim), rows), choose(s.normal(company*dim), rows)
	residual, gate := choose(s.normal(company*dim), rows), choose(s.normal(company), rows)
	y := s.output("Y", len(rows)*dim)
	gpu.Encode(&s.cmds, gpu.Combine{Routed: s.input("Routed", routed).view(), Shared: s.input("Shared", shared).view(),
		Residual: s.input("Residual", residual).view(), SharedGate: s.input("SharedGate", gate).view(), Y: y.view(),
		Weights: gpu.List[float32]{Host: choose(s.normal(company*topK), rows)}, Rows: len(rows), TopK: topK, Dim: dim})
	return y
}

// aloneExperts routes each row as it is among all of them.
func aloneExperts(s *setup, rows []int, f quant.Format) *operand {
	e := expertShape{dim: 128, inner: 128, rows: company, topK: 2, experts: 5, gate: f, up: f, down: f}
	chosen := make([][]int, company) // experts of each row, by pick
	for r := range chosen {
		chosen[r] = s.rng.Perm(e.experts)[:e.topK]
	}
	var picks []int32
	for _, r := range rows {
		for _, x := range chosen[r] {
			picks = append(picks, int32(x))
		}
	}
	n := len(rows) * e.topK
	x := s.input("X", choose(s.normal(company*e.dim), rows))
	y, scratch := s.output("Y", n*e.dim), s.output("Scratch", n*2*e.inner)
	op := gpu.Experts{X: x.view(), Y: y.view(), Scratch: scratch.view(), Rows: len(rows), TopK: e.topK, Table: new(gpu.ExpertTable)}
	for i := range e.experts {
		gate, up, down := e.one(s, i)
		op.Table.Experts = append(op.Table.Experts, gpu.Expert{Gate: gate.Matrix, Up: up.Matrix, Down: down.Matrix})
	}
	e.where(s, &op, picks)
	gpu.Encode(&s.cmds, op)
	return y
}
