package analyse

import (
	"cmp"
	"slices"

	"github.com/moeflux/moeflux-actor/tracing/record"
)

// read goes from the end of a read to the moment at which the step came to need it.
func (w *walk) read(n node) node {
	r := &w.x.reads[n.i]
	needed, reading := r.AskedNS, w.x.readingOf(r, w.step)
	u := w.x.uses[use{w.step.Step.Step, place{r.Layer, r.Expert}}]
	switch {
	case u != nil && u.AtNS <= r.PlacedNS:
		needed = max(needed, u.AtNS)
	case r.WantedNS != 0:
		needed = max(needed, r.WantedNS)
	}
	if !w.mine(r.Step) && (u == nil || u.AtNS > r.PlacedNS) { // its end made room, or let others be asked for
		reading = claim{cause: OtherRequest, where: w.x.whose(r.Step)}
	}
	w.put(r.PlacedNS, nil, claim{cause: Mailbox}, r.Layer)
	w.put(max(r.EndedNS, needed), nil, claim{cause: Upload}, r.Layer)
	if r.BeganNS != 0 {
		w.put(max(r.BeganNS, needed), nil, reading, r.Layer)
	}
	w.put(needed, w.inLine(needed, w.cur), claim{cause: ReadQueue}, r.Layer)
	return w.sent(needed, len(w.x.handled), "expert-io", via{r.Layer, -1})
}

// readingOf says what a read that a step waited for is time for. An expert that the step before
// used and that had to leave since is for want of room.
func (x *index) readingOf(r *record.Read, s *step) claim {
	if r.Tier == record.FromHost {
		return claim{cause: Upload}
	}
	p := place{r.Layer, r.Expert}
	last := uint64(0)
	lastAt := int64(0)
	for _, u := range slices.Backward(x.lastUse[p]) {
		if u.Step != s.Step.Step && u.AtNS < r.AskedNS {
			last, lastAt = u.Step, u.AtNS
			break
		}
	}
	i, _ := slices.BinarySearchFunc(x.gone[p], r.AskedNS, func(at, t int64) int { return cmp.Compare(at, t) })
	left := i > 0 && x.gone[p][i-1] >= lastAt
	switch {
	case left && last != 0 && last == s.before:
		return claim{cause: Room, where: "read again for the next token"}
	case left:
		return claim{cause: Disk, where: "read again"}
	}
	return claim{cause: Disk, where: "not in memory before"}
}

// inLine says what the workers read while a read of the step stood in line.
func (w *walk) inLine(from, to int64) (claims []claim) {
	w.x.reading(from, to, func(o *record.Read) {
		c := claim{span: span{o.BeganNS, o.EndedNS}, cause: ReadQueue}
		wanted := o.WantedNS
		if wanted == 0 && o.Hint == 0 {
			wanted = o.AskedNS
		}
		switch {
		case wanted == 0 || wanted >= o.EndedNS:
			c.cause = Guesses
		case wanted > o.BeganNS && o.Hint != 0:
			claims = append(claims, claim{span: span{o.BeganNS, wanted}, cause: Guesses})
			c.from = wanted
		case !w.mine(o.Step) && w.x.uses[use{w.step.Step.Step, place{o.Layer, o.Expert}}] == nil:
			c.cause, c.where = OtherRequest, w.x.whose(o.Step)
		}
		claims = append(claims, c)
	})
	slices.SortStableFunc(claims, func(a, b claim) int { return cmp.Compare(a.cause, b.cause) }) // its own reads first
	return claims
}
