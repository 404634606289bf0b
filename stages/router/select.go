package router

import (
	"slices"

	"github.com/moeflux/moeflux-actor/stages"
)

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
