package route

import (
	"math"
	"slices"
)

// Rule says how a row's raw scores become picks and weights. An expert's key is its score, or with
// Sigmoid the score's sigmoid, plus a bias where a layer has one; the experts of the largest keys
// are picked, of equal keys the lower expert.
type Rule struct {
	// Sigmoid squashes each score on its own; otherwise the softmax over all experts counts.
	Sigmoid bool
	// Experts are chosen from the best TopKGroup of NGroup groups of neighbours, a group's score
	// being the sum of its two largest. NGroup of 0 or 1 means no groups.
	NGroup, TopKGroup int
	NormTopK          bool    // divide the picked weights by their sum
	Scale             float32 // what the weights are multiplied by in the end; 0 means 1
}

// Chooser applies rules. It keeps the memory for that; the zero value is ready, for one goroutine.
type Chooser struct {
	keys   []float32 // what the choice goes by
	groups []float32
	kept   []int32
}

// Choose fills picks, heaviest first, and weights, which may be nil. The scores are finite. bias,
// [experts], is added for the choice and not for the weights; nil means none.
func (c *Chooser) Choose(r *Rule, bias, scores []float32, picks []int32, weights []float32) {
	TopK(c.Keys(r, bias, scores), picks)
	if r.Sigmoid {
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
		r.weigh(scores, picks, weights)
	}
}

// Keys returns what the choice goes by: the scores themselves, or their sigmoids with bias, those
// of groups that are out being -Inf. It is good until the next call.
func (c *Chooser) Keys(r *Rule, bias, scores []float32) []float32 {
	if !r.Sigmoid && bias == nil && r.NGroup <= 1 {
		return scores
	}
	c.keys = append(c.keys[:0], scores...)
	if r.Sigmoid {
		for i, s := range c.keys {
			c.keys[i] = float32(sigmoid(s))
		}
	}
	for i, b := range bias {
		c.keys[i] += b
	}
	if r.NGroup > 1 {
		c.dropGroups(r)
	}
	return c.keys
}

// dropGroups rules out the experts of all but the best groups.
func (c *Chooser) dropGroups(r *Rule) {
	size := len(c.keys) / r.NGroup
	c.groups = c.groups[:0]
	for g := range r.NGroup {
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
	c.kept = slices.Grow(c.kept[:0], r.TopKGroup)[:r.TopKGroup]
	TopK(c.groups, c.kept)
	for g := range r.NGroup {
		if !slices.Contains(c.kept, int32(g)) {
			for i := g * size; i < (g+1)*size; i++ {
				c.keys[i] = float32(math.Inf(-1))
			}
		}
	}
}

// weigh fills the weights of the picks. Sums run over the picks in order, or over all experts
// ascending.
func (r *Rule) weigh(scores []float32, picks []int32, weights []float32) {
	value := func(e int32) float64 { return math.Exp(float64(scores[e] - scores[picks[0]])) }
	if r.Sigmoid {
		value = func(e int32) float64 { return sigmoid(scores[e]) }
	}
	sum := 0.0
	switch {
	case r.NormTopK:
		for _, p := range picks {
			sum += value(p)
		}
	case r.Sigmoid:
		sum = 1
	default:
		for e := range scores {
			sum += value(int32(e))
		}
	}
	scale := float64(r.Scale)
	if scale == 0 {
		scale = 1
	}
	for i, p := range picks {
		weights[i] = float32(value(p) / sum * scale)
	}
}

func sigmoid(x float32) float64 { return 1 / (1 + math.Exp(-float64(x))) }

// TopK fills picks with the len(picks) experts of the largest keys, largest first; of equal keys
// the lower expert comes first. NaN counts as the smallest.
func TopK(keys []float32, picks []int32) {
	k, n := len(picks), 0
	for e, v := range keys {
		at := n
		for at > 0 && less(keys[picks[at-1]], v) {
			at--
		}
		if at == k {
			continue
		}
		if n < k {
			n++
		}
		copy(picks[at+1:n], picks[at:n-1])
		picks[at] = int32(e)
	}
}

// less is a < b with NaN below everything.
func less(a, b float32) bool { return a < b || a != a && b == b }

// NotFinite returns the index of the first NaN or infinity, or -1.
func NotFinite(v []float32) int {
	for i, x := range v {
		if x-x != 0 {
			return i
		}
	}
	return -1
}
