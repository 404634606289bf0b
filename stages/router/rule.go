package router

import (
	"math"
	"slices"
)

// Rule says how a row's raw scores become picks and weights (architectures.md, 1.6 and 5.2).
type Rule struct {
	// Sigmoid squashes each score on its own; otherwise the softmax over all experts counts.
	Sigmoid bool
	// Bias, [layers][experts], is added for the choice and not for the weights. nil, or nil for a layer, means none.
	Bias [][]float32
	// Experts are chosen from the best TopKGroup of NGroup groups of neighbours, a group's score being the sum of its two
	// largest. NGroup of 0 or 1 means no groups.
	NGroup, TopKGroup int
	NormTopK          bool    // divide the picked weights by their sum
	Scale             float32 // what the weights are multiplied by in the end; 0 means 1
}

// chooser applies a rule.
type chooser struct {
	Rule
	keys   []float32 // what the choice goes by
	groups []float32
	kept   []int32
}

// choose fills picks, heaviest first, and weights, which may be nil. The scores are finite.
func (c *chooser) choose(layer int, scores []float32, picks []int32, weights []float32) {
	topK(c.rank(layer, scores), picks)
	if c.Sigmoid {
		slices.SortStableFunc(picks, func(a, b int32) int {
			switch {
			case scores[a] > scores[b]:
				return -1
			case scores[a] < scores[b]:
				return 1
			default:
				return int(a - b)
			}
		})
	}
	if weights != nil {
		c.weigh(scores, picks, weights)
	}
}

// rank returns what the choice goes by: the scores themselves, or their sigmoids with bias, those of groups that are out
// being -Inf.
func (c *chooser) rank(layer int, scores []float32) []float32 {
	if !c.Sigmoid && c.Bias == nil && c.NGroup <= 1 {
		return scores
	}
	c.keys = append(c.keys[:0], scores...)
	if c.Sigmoid {
		for i, s := range c.keys {
			c.keys[i] = float32(sigmoid(s))
		}
	}
	if c.Bias != nil && c.Bias[layer] != nil {
		for i, b := range c.Bias[layer] {
			c.keys[i] += b
		}
	}
	if c.NGroup > 1 {
		c.dropGroups()
	}
	return c.keys
}

// dropGroups rules out the experts of all but the best groups.
func (c *chooser) dropGroups() {
	size := len(c.keys) / c.NGroup
	c.groups = c.groups[:0]
	for g := range c.NGroup {
		first, second := float32(math.Inf(-1)), float32(math.Inf(-1))
		for _, v := range c.keys[g*size : (g+1)*size] {
			if v > first {
				first, second = v, first
			} else if v > second {
				second = v
			}
		}
		if size == 1 {
			second = 0
		}
		c.groups = append(c.groups, first+second)
	}
	c.kept = slices.Grow(c.kept[:0], c.TopKGroup)[:c.TopKGroup]
	topK(c.groups, c.kept)
	for g := range c.NGroup {
		if !slices.Contains(c.kept, int32(g)) {
			for i := g * size; i < (g+1)*size; i++ {
				c.keys[i] = float32(math.Inf(-1))
			}
		}
	}
}

// weigh fills the weights of the picks. Sums run over the picks in order, or over all experts ascending.
func (c *chooser) weigh(scores []float32, picks []int32, weights []float32) {
	value := func(e int32) float64 { return math.Exp(float64(scores[e] - scores[picks[0]])) }
	if c.Sigmoid {
		value = func(e int32) float64 { return sigmoid(scores[e]) }
	}
	sum := 0.0
	switch {
	case c.NormTopK:
		for _, p := range picks {
			sum += value(p)
		}
	case c.Sigmoid:
		sum = 1
	default:
		for e := range scores {
			sum += value(int32(e))
		}
	}
	scale := float64(c.Scale)
	if scale == 0 {
		scale = 1
	}
	for i, p := range picks {
		weights[i] = float32(value(p) / sum * scale)
	}
}

func sigmoid(x float32) float64 { return 1 / (1 + math.Exp(-float64(x))) }
