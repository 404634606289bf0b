package host

import "math"

// Positions are taken in blocks of attnBlock, and blocks in spans of attnSpan positions, both counted from position 0: what is summed
// together depends on a row's position alone.
const (
	attnBlock   = 64
	attnSpan    = 1024
	lowestScore = -math.MaxFloat32
)

// Sizes of a tile: what it keeps besides a block of keys and values should stay in the second cache.
const (
	tileFloats   = 1 << 16
	packedValues = 32 // queries from which on values are copied together, which makes them quicker to read
)

// queries are some vectors that attend to the positions of one key-value head: heads vectors for each of some rows, the
// first of which is at position pos. Scores are sums over the channels, ascending; weighted values are summed over a
// block's positions, ascending, and over the blocks of a span, ascending, scaled to the largest score so far; so are spans.
// Each query is computed as if alone.
type queries struct {
	*vectors
	rows, heads, pos int
	dim, valueDim    int
	q                []float32 // [rows·heads, dim], times the scale
	scores           []float32 // [rows·heads, attnBlock]
	kt               []float32 // keys of the block [dim, attnBlock]
	packed           []float32 // values of the block [attnBlock, valueDim]
	pad              []float32 // [lanes, dim]
	stats, spanStats []float32 // [rows·heads, 2] see portableSoftmax
	acc, spanAcc     []float32 // [rows·heads, valueDim]
}

// floats is the memory that lay needs.
func (a *queries) floats() int {
	n := a.rows * a.heads
	return lineFloats + lineUp(n*a.dim) + n*attnBlock + a.dim*attnBlock + lineUp(attnBlock*a.valueDim) + lineUp(a.lanes*a.dim) +
		2*lineUp(2*n) + 2*lineUp(n*a.valueDim)
}

func (a *queries) lay(mem []float32) {
	n := a.rows * a.heads
	mem = aligned(mem)
	take := func(n int) []float32 { return floats(&mem, lineUp(n))[:n] }
	a.q, a.scores, a.kt = take(n*a.dim), take(n*attnBlock), take(a.dim*attnBlock)
	a.packed, a.pad = take(attnBlock*a.valueDim), take(a.lanes*a.dim)
	a.stats, a.spanStats = take(2*n), take(2*n)
	a.acc, a.spanAcc = take(n*a.valueDim), take(n*a.valueDim)
}

// last is the last position that a row attends to.
func (a *queries) last() int { return a.pos + a.rows - 1 }

// span prepares the span that begins at position p, and returns the first row that takes part in it.
func (a *queries) span(p int) (first int) {
	stats, acc := a.sums(p)
	for i := 0; i < len(stats); i += 2 {
		stats[i], stats[i+1] = lowestScore, 0
	}
	clear(acc)
	return max(0, p-a.pos)
}

// sums are what the span of position p is summed in: the first one's are the totals.
func (a *queries) sums(p int) (stats, acc []float32) {
	if p < attnSpan {
		return a.stats, a.acc
	}
	return a.spanStats, a.spanAcc
}

// endSpan adds the sums of a span to the totals of the rows from first on.
func (a *queries) endSpan(p, first int) {
	stats, acc := a.sums(p)
	if p < attnSpan {
		return
	}
	a.addSpan(stats, acc, first)
}

func (a *queries) addSpan(stats, acc []float32, first int) {
	for i := first * a.heads; i < a.rows*a.heads; i++ {
		before, added := a.stats[2*i], stats[2*i]
		top := max(before, added)
		f, h := float32(math.Exp(float64(before)-float64(top))), float32(math.Exp(float64(added)-float64(top)))
		a.stats[2*i], a.stats[2*i+1] = top, float32(f*a.stats[2*i+1])+float32(h*stats[2*i+1])
		a.merge(a.acc[i*a.valueDim:(i+1)*a.valueDim], acc[i*a.valueDim:(i+1)*a.valueDim], f, h)
	}
}

// weigh takes the block of n positions from p on, whose keys are in kt and whose values value returns.
func (a *queries) weigh(p, n int, value *valueRows) {
	stats, acc := a.sums(p)
	h, vd := a.heads, a.valueDim
	first := max(0, p-a.pos)
	a.multiply(a.scores[first*h*attnBlock:], a.q[first*h*a.dim:], a.kt, attnBlock, a.dim, attnBlock, (a.rows-first)*h, a.dim, n, false)
	for r := first; r < a.rows; {
		// Rows that attend to the whole block go together, the others one by one.
		rows, m := 1, a.pos+r+1-p
		if m >= n {
			rows, m = a.rows-r, n
		}
		from, to := r*h, (r+rows)*h
		for i := from; i < to && m < attnBlock; i++ {
			s := a.scores[i*attnBlock+m : (i+1)*attnBlock]
			for j := range s {
				s[j] = float32(math.Inf(-1))
			}
		}
		a.softmax(a.scores[from*attnBlock:to*attnBlock], stats[2*from:2*to], acc[from*vd:to*vd], vd)
		for j := 0; j < m; {
			v, stride, run := value.at(p+j, m-j)
			a.multiply(acc[from*vd:], a.scores[from*attnBlock+j:], v, vd, attnBlock, stride, to-from, run, vd, true)
			j += run
		}
		r += rows
	}
}
