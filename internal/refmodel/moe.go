package refmodel

import (
	"cmp"
	"math"
	"slices"

	"github.com/moeflux/moeflux-actor/model"
)

// mlp is down · (silu(gate · x) ⊙ up · x), each product with a bias where there is one.
type mlp struct {
	gate, up, down             *matrix
	gateBias, upBias, downBias []float64 // nil where the model has none
	clamp                      model.Clamp
}

func (m *mlp) apply(s *State, x []float64) []float64 {
	g, u := s.mul(m.gate, x), s.mul(m.up, x)
	if m.gateBias != nil {
		g, u = add(g, m.gateBias), add(u, m.upBias)
	}
	for i := range g {
		if m.clamp.Limit > 0 {
			g[i] = clamped(m.clamp, g[i], u[i])
		} else {
			g[i] = silu(g[i]) * u[i]
		}
	}
	y := s.mul(m.down, g)
	if m.downBias != nil {
		y = add(y, m.downBias)
	}
	return y
}

// clamped is the bounded unit: gates are cut above, ups on both sides and one is added to them.
// Without alpha silu(gate) is cut and nothing is added.
func clamped(c model.Clamp, gate, up float64) float64 {
	if up > c.Limit {
		up = c.Limit
	} else if up < -c.Limit {
		up = -c.Limit
	}
	if c.Alpha == 0 {
		return min(silu(gate), c.Limit) * up
	}
	if gate > c.Limit {
		gate = c.Limit
	}
	return (up + 1) * gate * sigmoid(c.Alpha*gate)
}

// moe is the mixture of experts of one layer.
type moe struct {
	cfg        *model.Config
	router     *matrix
	scoreBias  []float64 // of the scores; nil where the model has none
	bias       []float64 // of the choice; likewise
	experts    []*mlp
	shared     *mlp    // nil where the model has none
	sharedGate *matrix // [1, hidden]; nil where the shared expert is added without a gate
}

func (m *moe) apply(s *State, x []float64) ([]float64, Route) {
	scores := s.mul(m.router, x)
	if m.scoreBias != nil {
		scores = add(scores, m.scoreBias)
	}
	route := chooseExperts(m.cfg, scores, m.bias)
	s.see("router_scores", scores)
	return m.combine(s, x, route), route
}

// heaviestFirst orders a route by weight, of equal ones the lower expert first.
func (r Route) heaviestFirst() (picks, weights []float64) {
	order := make([]int, len(r.Picks))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(r.Weights[b], r.Weights[a]), cmp.Compare(r.Picks[a], r.Picks[b]))
	})
	for _, i := range order {
		picks, weights = append(picks, float64(r.Picks[i])), append(weights, r.Weights[i])
	}
	return picks, weights
}

// combine sums the experts of a route and the shared one.
func (m *moe) combine(s *State, x []float64, route Route) []float64 {
	out := make([]float64, len(x))
	each := map[int][]float64{}
	for i, e := range route.Picks {
		each[e] = m.experts[e].apply(s, x)
		for d, v := range each[e] {
			out[d] += route.Weights[i] * v
		}
	}
	m.seeExperts(s, route, each)
	s.see("routed", out)
	if m.shared != nil {
		share := 1.0
		if m.sharedGate != nil {
			score := s.mul(m.sharedGate, x)
			share = sigmoid(score[0])
			s.see("shared_gate", score)
		}
		y := m.shared.apply(s, x)
		s.see("shared", y)
		for d, v := range y {
			out[d] += share * v
		}
	}
	return out
}

// seeExperts notes what the experts of a route make, the heaviest first.
func (m *moe) seeExperts(s *State, route Route, each map[int][]float64) {
	picks, weights := route.heaviestFirst()
	s.see("picks", picks)
	s.see("weights", weights)
	var all []float64
	for _, e := range picks {
		all = append(all, each[int(e)]...)
	}
	s.see("experts", all)
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
