package sample

import "math"

// collect returns the tokens that may be drawn, in dst's memory: the TopK best, or without it all
// that are not ruled out and that no later cut is certain to drop. best is the largest logit.
func (v view) collect(dst []candidate, best float64, o *Options) []candidate {
	if o.TopK > 0 && o.TopK <= len(v.base) {
		return inOrder(v.topK(dst, o.TopK))
	}
	dst = dst[:0]
	floor := v.lowest(best, o)
	for i, l := range v.base {
		if x := float64(l); x >= floor {
			dst = append(dst, candidate{logit: x, token: int32(i)})
		}
	}
	for _, c := range v.adjusted {
		if c.logit >= floor {
			dst = append(dst, c)
		}
	}
	return dst
}

// lowest returns a logit below which tokens cannot matter: if nothing needs the sum over all
// tokens, those below MinP; in any case those so unlikely that all of them together lie below
// 2^-53, the finest step of the random stream. It errs a little on the low side: the
// weights decide.
func (v view) lowest(best float64, o *Options) float64 {
	exponent := -53*math.Ln2 - math.Log(float64(len(v.base)))
	if !o.cutsByMass() {
		exponent = max(exponent, math.Log(o.MinP))
	}
	return max(best+(exponent-1e-9)*o.Temperature-1e-12*math.Abs(best), -math.MaxFloat64)
}

// topK returns the k best tokens that are not ruled out, in dst's memory and in no order. A heap of
// k with the worst at its root finds them in one pass that seldom does more than compare.
func (v view) topK(dst []candidate, k int) []candidate {
	h := dst[:0]
	for _, c := range v.adjusted {
		if !math.IsInf(c.logit, -1) {
			h = keepBest(h, c, k)
		}
	}
	floor := -math.MaxFloat64
	if len(h) == k {
		floor = h[0].logit
	}
	for i, l := range v.base {
		x := float64(l)
		if x < floor || math.IsInf(x, -1) {
			continue
		}
		if h = keepBest(h, candidate{logit: x, token: int32(i)}, k); len(h) == k {
			floor = h[0].logit
		}
	}
	return h
}

// keepBest adds c to the heap h of at most k candidates, whose root is the worst, or drops the
// worse of c and the root.
func keepBest(h []candidate, c candidate, k int) []candidate {
	if len(h) == k {
		if c.before(h[0]) {
			h[0] = c
			sinkWorst(h, 0)
		}
		return h
	}
	h = append(h, c)
	for i := len(h) - 1; i > 0; {
		parent := (i - 1) / 2
		if !h[parent].before(h[i]) {
			break
		}
		h[parent], h[i] = h[i], h[parent]
		i = parent
	}
	return h
}

// sinkWorst restores the heap below element i.
func sinkWorst(h []candidate, i int) {
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if right := child + 1; right < len(h) && h[child].before(h[right]) {
			child = right
		}
		if !h[i].before(h[child]) {
			return
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}

// moveBest moves the most likely candidates to the front of c, in order, and returns them: as many
// as more allows, which is asked before each one with how many were taken and the last of them. At
// least one is taken. A heap finds m of n in O(n + m log n); the rest stays unsorted.
func moveBest(c []candidate, more func(taken int, last candidate) bool) []candidate {
	// The heap lies reversed, its root at the end of c, so that what is taken can gather at the
	// front.
	n := len(c)
	for i := n/2 - 1; i >= 0; i-- {
		sink(c, i, n)
	}
	taken := 0
	var last candidate
	for taken < len(c) && (taken == 0 || more(taken, last)) {
		root := len(c) - 1
		last = c[root]
		// The element at position taken is the heap's last leaf: it moves to the root, the root
		// into its place.
		c[root], c[taken] = c[taken], last
		taken++
		sink(c, 0, len(c)-taken)
	}
	return c[:taken]
}

// sink restores the heap of n elements below its element i. Element i of the heap is c[len(c)-1-i].
func sink(c []candidate, i, n int) {
	top := len(c) - 1
	for {
		child := 2*i + 1
		if child >= n {
			return
		}
		if right := child + 1; right < n && c[top-right].before(c[top-child]) {
			child = right
		}
		if !c[top-child].before(c[top-i]) {
			return
		}
		c[top-i], c[top-child] = c[top-child], c[top-i]
		i = child
	}
}
