package gputest

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model/route"
)

type routeShape struct {
	rows, experts, topK int
	rule                route.Rule
	bias                bool
	broken              int // rows with a score that is not finite
}

func routeCases() []testCase {
	var all []testCase
	softmax, whole := route.Rule{NormTopK: true}, route.Rule{Scale: 1.5}
	sigmoid := route.Rule{Sigmoid: true, NormTopK: true, Scale: 2.5}
	grouped := route.Rule{Sigmoid: true, NormTopK: true, Scale: 2.5, NGroup: 8, TopKGroup: 4}
	for _, c := range []routeShape{
		{rows: 1, experts: 128, topK: 8, rule: softmax},
		{rows: 5, experts: 128, topK: 8, rule: softmax, broken: 3},
		{rows: 3, experts: 512, topK: 10, rule: softmax},
		{rows: 3, experts: 60, topK: 4, rule: whole},
		{rows: 2, experts: 40, topK: 40, rule: whole},
		{rows: 7, experts: 5, topK: 1, rule: softmax},
		{rows: 1, experts: 1, topK: 1, rule: softmax},
		{rows: 70, experts: 33, topK: 6, rule: softmax, broken: 9},
		{rows: 32, experts: 128, topK: 8, rule: softmax, broken: 3},
		{rows: 9, experts: 70, topK: 5, rule: whole},
		{rows: 4, experts: 64, topK: 6, rule: sigmoid},
		{rows: 4, experts: 256, topK: 8, rule: grouped, bias: true},
		{rows: 3, experts: 64, topK: 33, rule: sigmoid, bias: true},
		{rows: 3, experts: 16, topK: 3, rule: route.Rule{Sigmoid: true, NGroup: 16, TopKGroup: 5}, bias: true},
		{rows: 3, experts: 48, topK: 5, rule: route.Rule{NGroup: 4, TopKGroup: 2}},
		{rows: 3, experts: 48, topK: 5, rule: route.Rule{NormTopK: true}, bias: true},
	} {
		for _, ties := range []bool{false, true} {
			name := fmt.Sprintf("route/rows=%d/experts=%d/topk=%d/%+v/bias=%t/ties=%t", c.rows, c.experts, c.topK, c.rule, c.bias, ties)
			all = append(all, testCase{name, func(s *setup) { routes(s, c, ties, false) }})
			if c.rows > 1 && !ties {
				all = append(all, testCase{name + "/experts", func(s *setup) { routes(s, c, ties, true) }})
			}
		}
	}
	return all
}

// routes compares picks with the definition, and weights within what exponentials and sums are off
// by. Scores are multiples of a quarter, so that no key but an equal one is near another; with ties
// they are few. With experts, those that were chosen are computed in the same Submit.
func routes(s *setup, c routeShape, ties, experts bool) {
	scores, bias := make([]float32, c.rows*c.experts), make([]float32, c.experts)
	for i := range scores {
		scores[i] = float32(s.rng.IntN(160)-80) / 4
		if c.rule.Sigmoid {
			scores[i] /= 4
		}
		if ties {
			scores[i] = float32(s.rng.IntN(3)) - 1
		}
	}
	for i := range bias {
		bias[i] = float32(s.rng.IntN(64)) / 8192 * 37
	}
	broken := map[int]int{}
	for i, v := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))} {
		for r := i; r < c.broken; r += 3 {
			e := s.rng.IntN(c.experts)
			scores[r*c.experts+e], broken[r] = v, e
		}
	}
	op := gpu.Route{Scores: s.input("Scores", scores).view(), Rows: c.rows, Experts: c.experts, TopK: c.topK, Rule: c.rule}
	if c.bias {
		op.Bias = s.input("Bias", bias).view()
	} else {
		clear(bias)
	}
	picks, weights := s.output("Picks", c.rows*c.topK), s.output("Weights", c.rows*c.topK)
	op.Picks, op.Weights = picks.view(), weights.view()
	var wantPicks []int32
	var want, limit []float64
	for r := range c.rows {
		if e, ok := broken[r]; ok {
			wantPicks = append(wantPicks, slices.Repeat([]int32{int32(-1 - e)}, c.topK)...)
			want, limit = append(want, make([]float64, c.topK)...), append(limit, make([]float64, c.topK)...)
			continue
		}
		p, w := c.define(scores[r*c.experts:(r+1)*c.experts], bias)
		wantPicks, want = append(wantPicks, p...), append(want, w...)
		for _, v := range w {
			limit = append(limit, v*(2*functionTolerance+sumTolerance(c.experts))+tiny)
		}
	}
	picks.expectBytes(intBytes(wantPicks))
	weights.expect(want, limit)
	gpu.Encode(&s.cmds, op)
	if experts {
		s.routedExperts(&op, func(row int) bool { _, ok := broken[row]; return !ok })
	}
	s.run()
}

// routedExperts has the experts computed that a Route chooses, all of which have the same matrices:
// so a row's results are alike, whichever it chose. Rows that are not whole choose none.
func (s *setup) routedExperts(r *gpu.Route, whole func(row int) bool) {
	const dim, inner = 8, 4
	shape := expertShape{dim: dim, inner: inner}
	gate, up, down := shape.one(s, 0)
	data, n := s.normal(r.Rows*dim), r.Rows*r.TopK
	y, scratch := s.output("Y", n*dim), s.output("Scratch", n*2*inner)
	table := &gpu.ExpertTable{Experts: slices.Repeat([]gpu.Expert{{Gate: gate.Matrix, Up: up.Matrix, Down: down.Matrix}}, r.Experts)}
	want, limit := make([]float64, n*dim), make([]float64, n*dim)
	for row := range r.Rows {
		v, off := shape.product(s, [3]*weights{gate, up, down}, float64s(data[row*dim:(row+1)*dim]))
		for p := row * r.TopK; p < (row+1)*r.TopK; p++ {
			copy(want[p*dim:], v)
			copy(limit[p*dim:], off)
		}
	}
	y.where(func(i int) bool { return whole(i / dim / r.TopK) }).expect(want, limit)
	gpu.Encode(&s.cmds, gpu.Experts{X: s.input("X", data).view(), Y: y.view(), Scratch: scratch.view(), Rows: r.Rows, TopK: r.TopK, Table: table,
		Picks: gpu.List[int32]{At: r.Picks}})
}

// product is what an expert without biases makes of a row, and how far it may be off.
func (e *expertShape) product(s *setup, m [3]*weights, x []float64) (y, off []float64) {
	g, gOff := m[0].times(s.held(m[0], x, nil))
	u, uOff := m[1].times(s.held(m[1], x, nil))
	h, hOff := make([]float64, e.inner), make([]float64, e.inner)
	for j := range h {
		h[j], hOff[j] = gated(e.clamp, g[j], gOff[j], u[j], uOff[j])
	}
	return m[2].times(s.held(m[2], h, hOff))
}

// define is the definition of routing, in float64.
func (c *routeShape) define(scores, bias []float32) (picks []int32, weights []float64) {
	value, key := make([]float64, c.experts), make([]float64, c.experts)
	top := slices.Max(scores)
	for e, v := range scores {
		value[e], key[e] = math.Exp(float64(v)-float64(top)), float64(v)
		if c.rule.Sigmoid {
			value[e] = sigmoid(float64(v))
			key[e] = value[e]
		}
		key[e] += float64(bias[e])
	}
	best := func(of []float64, k int) []int32 {
		all := make([]int32, len(of))
		for i := range all {
			all[i] = int32(i)
		}
		slices.SortStableFunc(all, func(a, b int32) int { return cmp.Compare(of[b], of[a]) })
		return all[:k]
	}
	if n := c.rule.NGroup; n > 1 {
		size, sums := c.experts/n, make([]float64, n)
		for g := range sums {
			in := slices.Sorted(slices.Values(key[g*size : (g+1)*size]))
			sums[g] = in[size-1]
			if size > 1 {
				sums[g] += in[size-2]
			}
		}
		kept := best(sums, c.rule.TopKGroup)
		for e := range key {
			if !slices.Contains(kept, int32(e/size)) {
				key[e] = math.Inf(-1)
			}
		}
	}
	picks = best(key, c.topK)
	if c.rule.Sigmoid {
		slices.SortStableFunc(picks, func(a, b int32) int { return cmp.Or(cmp.Compare(scores[b], scores[a]), cmp.Compare(a, b)) })
	}
	sum, scale := 0.0, cmp.Or(float64(c.rule.Scale), 1)
	switch {
	case c.rule.NormTopK:
		for _, e := range picks {
			sum += value[e]
		}
	case c.rule.Sigmoid:
		sum = 1
	default:
		for _, v := range value {
			sum += v
		}
	}
	for _, e := range picks {
		weights = append(weights, value[e]/sum*scale)
	}
	return picks, weights
}
