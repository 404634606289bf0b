package schedule

import (
	"math/bits"
	"slices"
)

// middles say what a step usually takes, as a function of its rows: the middle one of the last
// measurements for numbers of rows of one order. So the first few, which find nothing in any cache,
// and the few that take several times as long later on, are not taken for what is usual.
type middles struct {
	curve
	last [20]window // of the same cells
}

// window is the last measurements.
type window struct {
	n  int // so far
	ns [31]float64
}

// add notes that rows took ns.
func (m *middles) add(rows int, ns int64) {
	i := min(bits.Len(uint(rows))-1, len(m.cells)-1)
	w := &m.last[i]
	w.ns[w.n%len(w.ns)] = float64(max(ns, 0)) / float64(rows)
	w.n++
	sorted := w.ns
	known := sorted[:min(w.n, len(sorted))]
	slices.Sort(known)
	m.cells[i] = cell{rows: float64(rows), ns: known[len(known)/2] * float64(rows)}
}
