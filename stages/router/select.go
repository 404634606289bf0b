package router

import (
	"slices"

	"github.com/moeflux/moeflux-actor/stages"
)

// topK fills picks with the len(picks) experts of the largest scores, largest first; of equal scores the lower expert
// comes first. NaN counts as the smallest.
func topK(scores []float32, picks []int32) {
	k, n := len(picks), 0
	for e, v := range scores {
		at := n
		for at > 0 && less(scores[picks[at-1]], v) {
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

// notFinite returns the index of the first NaN or infinity, or -1.
func notFinite(v []float32) int {
	for i, x := range v {
		if x-x != 0 {
			return i
		}
	}
	return -1
}

// cut groups the plan's picks by expert, ascending.
func (c *Core) cut(plan *stages.RoutePlan) {
	clear(c.counts)
	for _, e := range plan.Picks {
		c.counts[e]++
	}
	plan.Pairs = slices.Grow(plan.Pairs[:0], len(plan.Picks))[:len(plan.Picks)]
	at := int32(0)
	for e, n := range c.counts {
		if n > 0 {
			plan.Uses = append(plan.Uses, stages.ExpertUse{Expert: int32(e), Pairs: plan.Pairs[at : at+n : at+n]})
		}
		c.counts[e] = at // where the expert's next pair goes
		at += n
	}
	for i, e := range plan.Picks {
		plan.Pairs[c.counts[e]] = int32(i)
		c.counts[e]++
	}
}
