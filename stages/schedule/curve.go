package schedule

import "math/bits"

// curve is the time that something takes as a function of its rows, as measured. Between two
// measured numbers of rows it is a straight line. Above the largest a row is taken to cost half of
// what it cost on average there: so more rows are tried, and then it is known.
type curve struct {
	cells [20]cell // of rows from 1<<i on
}

// cell is the mean of what was measured lately for numbers of rows of one order.
type cell struct {
	rows, ns, off float64 // off: how far from the mean a measurement is, on average
}

const (
	weight = 1.0 / 8 // of a new measurement in a mean
	// A measurement counts as at most this many times the mean, and as at least the mean divided by
	// it, so that a moment in which the machine did something else is soon forgotten.
	farthest = 2
	beyond   = 0.5 // of the mean cost of a row: what another one is taken to cost
)

// add notes that rows took ns.
func (c *curve) add(rows int, ns int64) {
	x := &c.cells[min(bits.Len(uint(rows))-1, len(c.cells)-1)]
	v := float64(max(ns, 0))
	if x.rows == 0 {
		*x = cell{rows: float64(rows), ns: v}
		return
	}
	mean := x.at(rows)
	v = min(max(v, mean/farthest), mean*farthest)
	d := v - mean
	x.rows += weight * (float64(rows) - x.rows)
	x.ns += weight * (v - x.ns)
	x.off += weight * (max(d, -d) - x.off)
}

// at returns the mean, moved along a line through the origin by the little that rows may differ.
func (x *cell) at(rows int) float64 { return x.ns * float64(rows) / x.rows }

// at returns what rows are expected to take, and how far off that is on average; 0 if nothing is
// known. one is what a single row takes if nothing says better, 0 if that is not known either.
func (c *curve) at(rows int, one float64) (ns, off float64) {
	var lo, hi *cell
	if one > 0 {
		lo = &cell{rows: 1, ns: one}
	}
	for i := range c.cells {
		x := &c.cells[i]
		switch {
		case x.rows == 0:
		case x.rows <= float64(rows):
			lo = x
		case hi == nil:
			hi = x
		}
	}
	switch {
	case lo == nil && hi == nil:
		return 0, 0
	case lo == nil:
		return hi.ns, hi.off
	case hi == nil:
		return lo.ns * (1 + beyond*(float64(rows)/lo.rows-1)), lo.off
	}
	t := (float64(rows) - lo.rows) / (hi.rows - lo.rows)
	return lo.ns + t*(hi.ns-lo.ns), lo.off + t*(hi.off-lo.off)
}
