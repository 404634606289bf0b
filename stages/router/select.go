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

// waves groups the picks by expert, ascending, and cuts the experts into waves.
func (c *Core) waves(plan *stages.RoutePlan) []stages.Wave {
	counts := make([]int32, c.cfg.Experts)
	for _, e := range plan.Picks {
		counts[e]++
	}
	pairs := make([]int32, len(plan.Picks))
	used, at := 0, int32(0)
	starts := make([]int32, c.cfg.Experts)
	for e, n := range counts {
		starts[e] = at
		at += n
		if n > 0 {
			used++
		}
	}
	next := slices.Clone(starts)
	for i, e := range plan.Picks {
		pairs[next[e]] = int32(i)
		next[e]++
	}
	uses := make([]stages.ExpertUse, 0, used)
	for e, n := range counts {
		if n > 0 {
			uses = append(uses, stages.ExpertUse{Expert: int32(e), Pairs: pairs[starts[e] : starts[e]+n : starts[e]+n]})
		}
	}
	waves := make([]stages.Wave, 0, (used+c.cfg.WaveSlots-1)/c.cfg.WaveSlots)
	for len(uses) > 0 {
		n := min(len(uses), c.cfg.WaveSlots)
		waves = append(waves, stages.Wave{Uses: uses[:n:n]})
		uses = uses[n:]
	}
	return waves
}

// common counts the experts that a and b share; each holds an expert once.
func (c *Core) common(a, b []int32) int64 {
	n := int64(0)
	for _, e := range a {
		c.mark[e] = true
	}
	for _, e := range b {
		if c.mark[e] {
			n++
		}
	}
	for _, e := range a {
		c.mark[e] = false
	}
	return n
}

// union collects experts without repeats. It borrows Core.mark until take.
type union struct {
	mark []bool
	list []int32
}

func (c *Core) union() *union { return &union{mark: c.mark} }

func (u *union) add(experts []int32) {
	for _, e := range experts {
		if !u.mark[e] {
			u.mark[e] = true
			u.list = append(u.list, e)
		}
	}
}

// take returns the experts, ascending, and gives the marks back.
func (u *union) take() []int32 {
	for _, e := range u.list {
		u.mark[e] = false
	}
	slices.Sort(u.list)
	return u.list
}
