package host

import (
	"math"

	"github.com/moeflux/moeflux-actor/gpu"
)

// Positions are taken in blocks of attnBlock, and blocks in spans of attnSpan positions. Both are
// counted from position 0, so what is summed together depends on a row's position alone.
const (
	attnBlock   = 64
	attnSpan    = 256
	lowestScore = -math.MaxFloat32
)

// Sizes of a tile. What it keeps besides a block of keys and values should stay in the second-level
// cache.
const (
	tileFloats = 1 << 16
	// with this many queries or more, values are copied together, which makes them quicker to read
	packedValues = 32
)

// queries are vectors that attend to the positions of some key-value heads: heads vectors for each
// head and each row, the first row being at position pos. Scores are summed over the channels in
// ascending order. Weighted values are summed over a block's positions, then over the blocks of a
// span, then over spans, each in ascending order and scaled to the largest score so far. Each query
// gives the bits it would give alone.
type queries struct {
	*vectors
	kvHeads, rows, heads, pos int
	dim, valueDim             int
	kt                        []float32   // a head's keys of the block [dim, attnBlock], or their codes
	packed                    []float32   // its values of the block [attnBlock, width]
	width                     int         // of a row of packed: valueDim, or dim where whole rows of the cache are gathered
	pad                       []float32   // [lanes, dim]
	next                      *ahead      // what is fetched meanwhile; nil with many queries
	values                    *gpu.KV     // its values, of the thread's memory; nil likewise
	group                     int         // channels that share a scale of keys multiplied as codes; 0: they are float32
	scales                    []float32   // of those keys [groups, attnBlock]
	idle                      *aheadLines // none; of the thread's memory, where group is not 0
	sinks                     []float32   // of query heads, from the first of the first key-value head on; nil: none
	headsPerKV                int         // query heads of a key-value head
	window                    int         // positions that a row attends to at most; 0: all

	all         headQueries // of all key-value heads, one after the other
	headQueries             // of the current one
}

// headQueries are the queries of a key-value head and what becomes of them.
type headQueries struct {
	q                []float32 // [rows·heads, dim], times the scale; or codes, see roundQuery
	scores           []float32 // [rows·heads, attnBlock]
	stats, spanStats []float32 // [rows·heads, 2] see portableSoftmax
	acc, spanAcc     []float32 // [rows·heads, valueDim]
	sink             []float32 // [heads], or nil
}

// floats is the memory that lay needs.
func (a *queries) floats() int {
	n := a.kvHeads * a.rows * a.heads
	return lineFloats + lineUp(n*a.dim) + n*attnBlock + a.dim*attnBlock + lineUp(attnBlock*a.width) + lineUp(a.lanes*a.dim) +
		lineUp(a.groups()*attnBlock) + 2*lineUp(2*n) + 2*lineUp(n*a.valueDim)
}

// lay divides mem among the fields and selects the first head.
func (a *queries) lay(mem []float32) {
	n := a.kvHeads * a.rows * a.heads
	mem = aligned(mem)
	take := func(n int) []float32 { return floats(&mem, lineUp(n))[:n] }
	a.kt, a.packed, a.pad = take(a.dim*attnBlock), take(attnBlock*a.width), take(a.lanes*a.dim)
	a.scales = take(a.groups() * attnBlock)
	a.all = headQueries{q: take(n * a.dim), scores: take(n * attnBlock), stats: take(2 * n), spanStats: take(2 * n),
		acc: take(n * a.valueDim), spanAcc: take(n * a.valueDim)}
	a.head(0)
}

// head selects key-value head g.
func (a *queries) head(g int) {
	n, all := a.rows*a.heads, &a.all
	part := func(x []float32, width int) []float32 {
		if x == nil {
			return nil
		}
		return x[g*n*width : (g+1)*n*width]
	}
	a.headQueries = headQueries{q: part(all.q, a.dim), scores: part(all.scores, attnBlock), stats: part(all.stats, 2), spanStats: part(all.spanStats, 2),
		acc: part(all.acc, a.valueDim), spanAcc: part(all.spanAcc, a.valueDim)}
	if a.sinks != nil {
		a.sink = a.sinks[g*a.headsPerKV:][:a.heads]
	}
}

// last is the last position that a row attends to.
func (a *queries) last() int { return a.pos + a.rows - 1 }

// from is the first position that a row attends to.
func (a *queries) from(row int) int { return gpu.FirstOf(a.pos+row, a.window) }

// begin prepares totals for a window that begins after the first span.
func (a *queries) begin() {
	clear(a.acc)
	a.clearStats(a.stats, true)
}

func (a *queries) clearStats(stats []float32, first bool) {
	for i := 0; i < len(stats); i += 2 {
		stats[i], stats[i+1] = lowestScore, 0
		if first && a.sink != nil {
			stats[i], stats[i+1] = a.sink[i/2%a.heads], 1
		}
	}
}

// span prepares the span that begins at position p, and returns the first row that takes part in
// it. A sink is a score before the first, with the weight 1 and a value of zeros.
func (a *queries) span(p int) (first int) {
	stats, acc := a.sums(p)
	a.clearStats(stats, p < attnSpan)
	clear(acc)
	return max(0, p-a.pos)
}

// sums returns what the span of position p is summed in. The first span sums into the totals.
func (a *queries) sums(p int) (stats, acc []float32) {
	if p < attnSpan {
		return a.stats, a.acc
	}
	return a.spanStats, a.spanAcc
}

// endSpan adds the sums of a span to the totals of the rows from first on.
func (a *queries) endSpan(p, first int) {
	if p >= attnSpan {
		a.addSpan(first)
	}
}

// addSpan adds the sums of a span, in which the rows from first on take part, to their totals.
func (a *queries) addSpan(first int) { a.addSpanTo(first*a.heads, a.rows*a.heads) }

// addSpanTo is addSpan for the queries from first to before end.
func (a *queries) addSpanTo(first, end int) {
	for i := first; i < end; i++ {
		before, added := a.stats[2*i], a.spanStats[2*i]
		top, f, h := before, float32(1), float32(1)
		if added > before {
			top, f = added, float32(math.Exp(float64(before)-float64(added)))
		} else {
			h = float32(math.Exp(float64(added) - float64(before)))
		}
		a.stats[2*i], a.stats[2*i+1] = top, float32(f*a.stats[2*i+1])+float32(h*a.spanStats[2*i+1])
		a.merge(a.acc[i*a.valueDim:(i+1)*a.valueDim], a.spanAcc[i*a.valueDim:(i+1)*a.valueDim], f, h)
	}
}

// weigh takes the block of n positions from p on. Its keys are in kt; value returns its values.
func (a *queries) weigh(p, n int, value *valueRows) {
	a.score(p, n)
	a.soften(p, n)
	a.addValues(p, n, value)
}

// score multiplies the queries by the keys of n positions from p on.
func (a *queries) score(p, n int) {
	h, first := a.heads, max(0, p-a.pos)
	if a.group > 0 {
		a.scoreCodes(first*h, (a.end(p, n)-first)*h)
		return
	}
	a.product(a.scores[first*h*attnBlock:], a.q[first*h*a.dim:], a.kt, attnBlock, a.dim, attnBlock, (a.end(p, n)-first)*h, a.dim, n, false)
}

// end is the end of the rows that attend to any of the block's n positions.
func (a *queries) end(p, n int) int {
	if a.window == 0 {
		return a.rows
	}
	return min(a.rows, p+n-1+a.window-a.pos)
}

// band returns the end of the rows from r on that attend to the same of the block's n positions as
// r does, and which they are.
func (a *queries) band(r, p, n int) (end, from, to int) {
	from = max(0, a.from(r)-p)
	if to = a.pos + r + 1 - p; to < n || from > 0 {
		return r + 1, from, min(to, n)
	}
	end = a.rows
	if a.window > 0 { // of the last of them the window begins where the block does
		end = min(end, p+a.window-a.pos)
	}
	return end, 0, n
}

// soften turns scores into weights.
func (a *queries) soften(p, n int) {
	stats, acc := a.sums(p)
	h, vd := a.heads, a.valueDim
	none := float32(math.Inf(-1))
	for r := max(0, p-a.pos); r < a.end(p, n); {
		end, first, m := a.band(r, p, n)
		from, to := r*h, end*h
		for i := from; i < to && m-first < attnBlock; i++ {
			s := a.scores[i*attnBlock : (i+1)*attnBlock]
			fill(s[:first], none)
			fill(s[m:], none)
		}
		a.softmax(a.scores[from*attnBlock:to*attnBlock], stats[2*from:2*to], acc[from*vd:to*vd], vd)
		r = end
	}
}

// addValues adds the block's values times their weights.
func (a *queries) addValues(p, n int, value *valueRows) {
	_, acc := a.sums(p)
	h, vd := a.heads, a.valueDim
	for r := max(0, p-a.pos); r < a.end(p, n); {
		end, first, m := a.band(r, p, n)
		from, to := r*h, end*h
		for j := first; j < m; {
			v, stride, run := value.at(p+j, m-j)
			a.product(acc[from*vd:], a.scores[from*attnBlock+j:], v, vd, attnBlock, stride, to-from, run, vd, true)
			j += run
		}
		r = end
	}
}

func fill(s []float32, x float32) {
	for i := range s {
		s[i] = x
	}
}
