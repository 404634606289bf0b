package remote

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/stages"
)

// TestSums asks for sums of random plans, some of whose weights are 0 or negative, and combines
// what hosts answer as the engine combines outputs: the result is that of all outputs in float64.
func TestSums(t *testing.T) {
	const rows, k, experts, hidden = 5, 4, 9, 8
	r := rand.New(rand.NewPCG(1, 3))
	cfg := &Config{}
	cfg.Shape.Layers, cfg.Shape.Experts, cfg.Shape.Hidden, cfg.Groups = 1, experts, hidden, []int{0}
	for round := range 500 {
		plan := &stages.RoutePlan{TopK: k, Inputs: make([]float32, rows*hidden)}
		pairs := make([][]int32, experts)
		for row := range rows {
			for pick, e := range r.Perm(experts)[:k] {
				pairs[e] = append(pairs[e], int32(row*k+pick))
				w := 2*r.Float32() - 0.5
				if r.IntN(5) == 0 || round%7 == 0 {
					w = 0
				}
				plan.Picks, plan.Weights = append(plan.Picks, int32(e)), append(plan.Weights, w)
			}
		}
		a := &stages.Ask{Step: stages.Step{Batch: &stages.Batch{Rows: make([]stages.Row, rows)}}, Plan: plan}
		for e, p := range pairs {
			if len(p) == 0 {
				continue
			}
			if len(a.Uses) == 0 || r.IntN(3) > 0 {
				a.Uses = append(a.Uses, int32(len(plan.Uses)))
			}
			plan.Uses = append(plan.Uses, stages.ExpertUse{Expert: int32(e), Pairs: p})
		}
		q := question(a, cfg)
		s := sumsOf(a, q, hidden)
		outputs, want, size := make([][]float32, len(a.Uses)), make([]float64, rows*hidden), make([]float64, rows*hidden)
		for i, use := range a.Uses {
			for _, pair := range plan.Uses[use].Pairs {
				for c := range hidden {
					v := 2*r.Float32() - 1
					outputs[i] = append(outputs[i], v)
					product := float64(plan.Weights[pair]) * float64(v)
					want[int(pair)/k*hidden+c] += product
					size[int(pair)/k*hidden+c] += math.Abs(product)
				}
			}
		}
		sums := slices.Repeat([]float32{float32(math.NaN())}, len(q.Inputs))
		q.Sum(sums, hidden, outputs)
		all := s.outputs(sums, hidden)
		got := make([]float64, rows*hidden)
		for _, use := range a.Uses {
			for _, pair := range plan.Uses[use].Pairs {
				for c := range hidden {
					got[int(pair)/k*hidden+c] += float64(plan.Weights[pair]) * float64(all[c])
				}
				all = all[hidden:]
			}
		}
		// Each output is rounded when weights are divided, when it is multiplied, and in up to k
		// sums.
		for i := range want {
			if off := math.Abs(got[i] - want[i]); off > (k+2)*0x1p-24*size[i] {
				t.Fatalf("number %d of row %d is %v, want %v", i%hidden, i/hidden, got[i], want[i])
			}
		}
	}
}
