package host

import "github.com/moeflux/moeflux-actor/gpu"

// attendChosen is attend for a row that attends to the listed positions: the list's entries take
// the place of positions, from entry first to end. So what is summed together depends on the list
// alone, and a list of all positions gives the bits of attention to all.
func (t *attnTask) attendChosen(a *queries, kv *gpu.KV, list []int32, first, end int) {
	rows := 0
	for p := first; p < end; p += attnBlock {
		if p%attnSpan == 0 {
			rows = a.span(p)
		}
		n := min(attnBlock, end-p)
		a.gather(kv, list[p:p+n])
		// Rows after the last are what was there before: their scores are not looked at.
		a.transposeAll(a.kt, a.packed, attnBlock, a.dim, (n+a.lanes-1)/a.lanes*a.lanes, a.dim)
		a.weigh(p, n, &valueRows{block: a.packed, first: p, width: a.dim})
		if t.spanEnds(p, end) {
			a.endSpan(p, rows)
		}
	}
}

// gather copies the keys of the listed positions to packed. Neighbours are copied together.
func (a *queries) gather(kv *gpu.KV, list []int32) {
	for i := 0; i < len(list); {
		n := 1
		for i+n < len(list) && list[i+n] == list[i]+int32(n) {
			n++
		}
		a.fetch(a.packed[i*a.dim:], kv, kv.KOffset, 0, a.dim, int(list[i]), n)
		i += n
	}
}
