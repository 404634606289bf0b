package host

import "github.com/moeflux/moeflux-actor/gpu"

// chosenList is what a row attends to with the heads of a key-value head, see gpu.Attention.
type chosenList struct {
	list  []int32
	block int // positions of an entry
}

// at returns the i-th position of the list.
func (l *chosenList) at(i int) int { return int(l.list[i/l.block])*l.block + i%l.block }

// run returns the i-th position of the list and how many of the next ones, most at most, follow it
// without a gap.
func (l *chosenList) run(i, most int) (from, n int) {
	from, n = l.at(i), 1
	for n < most && l.at(i+n) == from+n {
		n++
	}
	return from, n
}

// attendChosen is attend for a row that attends to listed positions: those of the list take the
// place of positions, from the one at first to end. So what is summed together depends on the list
// alone, and a list of all positions gives the bits of attention to all. at is the first channel.
func (t *attnTask) attendChosen(a *queries, kv *gpu.KV, l *chosenList, at, first, end int) {
	rows, shared := 0, kv.VOffset == kv.KOffset
	for p := first; p < end; p += attnBlock {
		if p%attnSpan == 0 {
			rows = a.span(p)
		}
		n := min(attnBlock, end-p)
		if a.group > 0 {
			a.gatherCodes(kv, at, l, p, n)
		} else {
			a.gather(kv, kv.KOffset, at, l, p, n)
			// Rows after the last are what was there before: their scores are not looked at.
			a.transposeAll(a.kt, a.packed, attnBlock, a.dim, (n+a.lanes-1)/a.lanes*a.lanes, a.dim)
		}
		if !shared || a.group > 0 { // codes are no values
			a.gather(kv, kv.VOffset, at, l, p, n)
		}
		a.weigh(p, n, &valueRows{block: a.packed, first: p, width: a.dim})
		if t.spanEnds(p, end) {
			a.endSpan(p, rows)
		}
	}
}

// gather copies a head's keys or values at n listed positions to packed. Neighbours are copied
// together.
func (a *queries) gather(kv *gpu.KV, offset, at int, l *chosenList, p, n int) {
	for i := 0; i < n; {
		from, run := l.run(p+i, n-i)
		a.fetch(a.packed[i*a.dim:], kv, offset, at, a.dim, from, run)
		i += run
	}
}
