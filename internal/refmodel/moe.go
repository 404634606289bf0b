package refmodel

import (
	"math"

	"github.com/moeflux/moeflux-actor/model"
)

// mlp is down · (silu(gate · x) ⊙ up · x).
type mlp struct{ gate, up, down *matrix }

func (m *mlp) apply(s *State, x []float64) []float64 {
	g, u := s.mul(m.gate, x), s.mul(m.up, x)
	for i := range g {
		g[i] = silu(g[i]) * u[i]
	}
	return s.mul(m.down, g)
}

// moe is the mixture of experts of one layer.
type moe struct {
	cfg        *model.Config
	router     *matrix
	bias       []float64 // of the choice; nil where the model has none
	experts    []*mlp
	shared     *mlp    // nil where the model has none
	sharedGate *matrix // [1, hidden]; nil where the shared expert is added without a gate
}

func (m *moe) apply(s *State, x []float64) ([]float64, Route) {
	route := chooseExperts(m.cfg, s.mul(m.router, x), m.bias)
	out := make([]float64, len(x))
	for i, e := range route.Picks {
		for d, v := range m.experts[e].apply(s, x) {
			out[d] += route.Weights[i] * v
		}
	}
	if m.shared != nil {
		share := 1.0
		if m.sharedGate != nil {
			share = sigmoid(s.mul(m.sharedGate, x)[0])
		}
		for d, v := range m.shared.apply(s, x) {
			out[d] += share * v
		}
	}
	return out, route
}

// Route is one routing decision.
type Route struct {
	Picks   []int     // [K], best choice first
	Weights []float64 // [K]: what multiplies each pick's output
	// Gap is how far the decision is from a different one: the distance between the last choice and
	// the best expert left out, or between groups if that is smaller. It is in router logits where
	// scores are a softmax, and in biased scores where they are sigmoids. +Inf means that there was
	// no choice.
	Gap float64
}

// chooseExperts makes the decision from the router's raw outputs.
func chooseExperts(c *model.Config, logits, bias []float64) Route {
	var scores, choice []float64
	if c.Scoring == model.SigmoidScores {
		for _, x := range logits {
			scores = append(scores, sigmoid(x))
		}
		choice = append(choice, scores...)
		for i := range bias {
			choice[i] += bias[i]
		}
	} else {
		// A softmax keeps the order of its inputs.
		scores, choice = softmax(logits), append(choice, logits...)
	}
	groupGap := math.Inf(1)
	if c.NGroup > 1 {
		groupGap = keepGroups(c, choice)
	}
	picks, gap := best(choice, c.NumExpertsPerTok)
	r := Route{Picks: picks, Gap: min(gap, groupGap)}
	sum := 0.0
	for _, e := range picks {
		r.Weights = append(r.Weights, scores[e])
		sum += scores[e]
	}
	if c.Scoring == model.SigmoidScores {
		sum += 1e-20
	}
	for i := range r.Weights {
		if c.NormTopKProb {
			r.Weights[i] /= sum
		}
		r.Weights[i] *= float64(c.RoutedScalingFactor)
	}
	return r
}

// keepGroups sets the experts of all groups but the best to -Inf. A group's score is the sum of its
// two best experts.
func keepGroups(c *model.Config, choice []float64) (gap float64) {
	size := len(choice) / c.NGroup
	group := make([]float64, c.NGroup)
	for g := range group {
		top, _ := best(choice[g*size:(g+1)*size], min(2, size))
		for _, e := range top {
			group[g] += choice[g*size+e]
		}
	}
	kept, gap := best(group, c.TopKGroup)
	keep := map[int]bool{}
	for _, g := range kept {
		keep[g] = true
	}
	for e := range choice {
		if !keep[e/size] {
			choice[e] = math.Inf(-1)
		}
	}
	return gap
}

// best returns the indexes of the k greatest numbers, greatest first and equal ones by index, and
// how far the last of them is above the greatest number left out.
func best(x []float64, k int) (picks []int, gap float64) {
	taken := make([]bool, len(x))
	for len(picks) <= k && len(picks) < len(x) {
		top := -1
		for i, v := range x {
			if !taken[i] && (top < 0 || v > x[top]) {
				top = i
			}
		}
		taken[top] = true
		picks = append(picks, top)
	}
	if len(picks) <= k {
		return picks, math.Inf(1)
	}
	return picks[:k], x[picks[k-1]] - x[picks[k]]
}
