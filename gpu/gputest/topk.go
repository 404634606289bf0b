package gputest

import (
	"fmt"
	"math"
	"slices"

	"github.com/moeflux/moeflux-actor/gpu"
)

func topKCases() []testCase {
	var all []testCase
	for _, c := range []topKShape{
		{rows: 1, vocab: 1, k: 1},
		{rows: 3, vocab: 7, k: 7},
		{rows: 2, vocab: 64, k: 64},
		{rows: 2, vocab: 2049, k: 40},
		{rows: 3, vocab: 5000, k: 1},
		{rows: 2, vocab: 5000, k: 64, equal: 3},
		{rows: 1, vocab: 20000, k: 8, equal: 1},
		{rows: 1, vocab: 4100, k: 20, ruledOut: 4090},
		{rows: 2, vocab: 3000, k: 5, special: true},
		{rows: 2, vocab: 151936, k: 50},
	} {
		name := fmt.Sprintf("topk/rows=%d/vocab=%d/k=%d/equal=%d/ruledout=%d/special=%t", c.rows, c.vocab, c.k, c.equal, c.ruledOut, c.special)
		all = append(all, testCase{name, func(s *setup) { topK(s, c) }})
	}
	return all
}

type topKShape struct {
	rows, vocab, k int
	equal          int  // how many different logits there are; 0 means any number
	ruledOut       int  // how many are -Inf
	special        bool // a NaN and zeros of both signs
}

// logits are those of a row.
func (c *topKShape) logits(s *setup) []float32 {
	x := s.normal(c.vocab)
	for i := range x {
		if x[i] *= 12; c.equal > 0 {
			x[i] = float32(s.rng.IntN(c.equal)) - 1
		}
	}
	for i := range c.ruledOut {
		x[i] = float32(math.Inf(-1))
	}
	return x
}

// topK: the K largest, and max and log Σ exp(l - max).
func topK(s *setup, c topKShape) {
	var data, values []float32
	var indices []byte
	var stats, limit []float64
	for r := range c.rows {
		x := c.logits(s)
		if c.special {
			for i := range x { // nothing but the special ones is above
				x[i] = -float32(math.Abs(float64(x[i]))) - 1
			}
			zero := float32(math.Copysign(0, -1))
			x[2500], x[17], x[2999] = 0, zero, zero
			if r == 1 {
				x[700], x[20] = math.Float32frombits(0xffc00000), math.Float32frombits(0x7fc00001)
			}
		}
		order := make([]int, c.vocab)
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int {
			switch x, y := x[a], x[b]; {
			case x != x || y != y:
				return boolInt(y != y) - boolInt(x != x)
			case x > y:
				return -1
			case x < y:
				return 1
			}
			return 0
		})
		for _, i := range order[:c.k] {
			values = append(values, x[i])
			indices = append(indices, byte(i), byte(i>>8), byte(i>>16), byte(i>>24))
		}
		sum, top := 0.0, float64(x[order[0]])
		for _, l := range x {
			sum += math.Exp(float64(l) - top)
		}
		stats = append(stats, top, math.Log(sum))
		// An error of the sum's size is the logarithm's own; the logarithm of a sum near 1 is as
		// small as that error.
		limit = append(limit, 0, sumTolerance(c.vocab)+functionTolerance*(1+math.Log(sum)))
		data = append(data, x...)
	}
	v, i, st := s.output("Values", len(values)), s.place("Indices", make([]byte, len(indices)), 4), s.output("Stats", 2*c.rows)
	v.expectBytes(gpu.FloatBytes(values))
	i.expectBytes(indices)
	if !c.special { // of a row with a NaN they are undefined
		st.expect(stats, limit)
	}
	gpu.Encode(&s.cmds, gpu.TopK{Logits: s.input("Logits", data).view(), Values: v.view(), Indices: i.view(), Stats: st.view(),
		Rows: c.rows, Vocab: c.vocab, K: c.k})
	s.run()
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// aloneTopK gives the statistics of rows, whose sums have an order.
func aloneTopK(s *setup, rows []int) *operand {
	const vocab, k = 9000, 5
	x := s.input("Logits", choose(s.normal(company*vocab), rows))
	v, i, st := s.output("Values", len(rows)*k), s.output("Indices", len(rows)*k), s.output("Stats", len(rows)*2)
	gpu.Encode(&s.cmds, gpu.TopK{Logits: x.view(), Values: v.view(), Indices: i.view(), Stats: st.view(), Rows: len(rows), Vocab: vocab, K: k})
	return st
}
