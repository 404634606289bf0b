package sample

// moveBest moves the most likely candidates to the front of c, in order, and returns them: as many as more allows,
// which is asked before each one with how many were taken and the last of them. At least one is taken. A heap
// finds m of n in O(n + m log n); the rest stays unsorted.
func moveBest(c []candidate, more func(taken int, last candidate) bool) []candidate {
	// The heap lies reversed, its root at the end of c, so that what is taken can gather at the front.
	n := len(c)
	for i := n/2 - 1; i >= 0; i-- {
		sink(c, i, n)
	}
	taken := 0
	var last candidate
	for taken < len(c) && (taken == 0 || more(taken, last)) {
		root := len(c) - 1
		last = c[root]
		// The element at position taken is the heap's last leaf: it moves to the root, the root into its place.
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
