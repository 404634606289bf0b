package analyse

import (
	"slices"

	"github.com/moeflux/moeflux-actor/tracing/record"
)

// waited returns the wait that ended when a message was handled, of what was then sent; nil if
// there was none. Of several it is the one that began first.
func (s *step) waited(h *record.Handled, v via) (found *record.Wait) {
	for i := range s.waits {
		w := &s.waits[i]
		if w.EndedNS < h.BeganNS || w.EndedNS > h.EndedNS || w.BeganNS >= h.BeganNS || w.Layer >= 0 && v.layer >= 0 && w.Layer != v.layer {
			continue
		}
		if found == nil || w.BeganNS < found.BeganNS {
			found = w
		}
	}
	return found
}

// blame notes a wait that the step itself was in the way of: an earlier layer or wave of it had to
// retire. The walk goes on to that. What stood still until then, and what came late because of it,
// is the wait's.
func (w *walk) blame(wt *record.Wait) {
	claims, rest := w.waiting(wt)
	if rest.cause != Credit && rest.cause != Room {
		return
	}
	rest.span = span{wt.BeganNS, wt.EndedNS}
	w.blamed = append(w.blamed, rest)
	w.makeLate(wt, claims, rest)
}

// wait goes from the end of a wait for others to its begin. What the device did for the step in
// that time stays the device's.
func (w *walk) wait(wt *record.Wait, before int) node {
	claims, rest := w.waiting(wt)
	if rest.cause == Credit || rest.cause == Room {
		w.makeLate(wt, claims, rest)
	}
	w.put(wt.BeganNS, claims, rest, wt.Layer)
	return w.sent(wt.BeganNS, before, "", via{-1, -1})
}

// stoodStill reports whether a cause is that nothing worked.
func stoodStill(c Cause) bool {
	return c == Stage || c == Mailbox || c == DeviceStart || c == Unexplained
}

// settled returns the pieces in order of time, with those that stood still in a wait given to it.
func (w *walk) settled() (all []Piece) {
	for _, p := range slices.Backward(w.pieces) {
		if !stoodStill(p.Cause) {
			all = appendPiece(all, p)
			continue
		}
		for _, cut := range divide(p.FromNS, p.ToNS, w.blamed, claim{cause: p.Cause, where: p.Where}, p.Layer) {
			all = appendPiece(all, cut)
		}
	}
	return all
}

func spansOf(claims []claim, c Cause) (all []span) {
	for _, k := range claims {
		if k.cause == c {
			all = append(all, k.span)
		}
	}
	return all
}

// waiting says what the time of a wait is for.
func (w *walk) waiting(wt *record.Wait) (claims []claim, rest claim) {
	other := wt.For != 0 && !w.mine(wt.For)
	w.x.running(wt.BeganNS, wt.EndedNS, func(s *record.Submission) {
		if c := w.computing(s); c.cause == Device {
			c.span = span{s.BeganNS, s.EndedNS}
			claims = append(claims, c)
		}
	})
	switch wt.Reason {
	case record.LayerCredit, record.WaveCredit:
		if other && w.x.isPrompt(wt.For) != w.x.isPrompt(w.step.Step.Step) {
			return claims, claim{cause: OtherRequest, where: w.x.whose(wt.For)}
		}
		return append(claims, w.busy(wt.BeganNS, wt.EndedNS, w.x.deviceOf(wt.Layer))...), w.x.plain(wt)
	case record.Room:
		w.x.reading(wt.BeganNS, wt.EndedNS, func(r *record.Read) {
			if r.Step == w.step.Step.Step && r.Hint == 0 {
				c := w.x.readingOf(r, w.step)
				c.span = span{r.BeganNS, r.EndedNS}
				claims = append(claims, c)
			}
		})
		return claims, w.x.plain(wt)
	case record.ReadCredit:
		return append(claims, w.inLine(wt.BeganNS, wt.EndedNS)...), w.x.plain(wt)
	}
	return claims, w.x.plain(wt)
}

// plain says what a wait is for where nothing else is going on.
func (x *index) plain(wt *record.Wait) claim {
	switch wt.Reason {
	case record.LayerCredit:
		return claim{cause: Credit, where: "layers"}
	case record.WaveCredit:
		return claim{cause: Credit, where: "waves"}
	case record.Room:
		return claim{cause: Room, where: "no slot was free"}
	case record.ReadCredit:
		return claim{cause: ReadQueue}
	case record.Company:
		return claim{cause: Company}
	case record.Memory:
		return claim{cause: Memory, where: "others had it"}
	case record.StateReady:
		return claim{cause: Memory, where: "its state was on its way"}
	}
	return claim{cause: OtherRequest, where: x.whose(wt.For)}
}

func (x *index) isPrompt(id uint64) bool {
	s := x.steps[id]
	return s != nil && s.Decode < s.Rows
}

// makeLate blames a wait for what follows it, which would have been done already without it: until
// the device works for the step, and for no longer than the wait took. For want of room that is
// reads, too, unless the disk was busy for the step meanwhile.
func (w *walk) makeLate(wt *record.Wait, during []claim, to claim) {
	ns := wt.EndedNS - wt.BeganNS
	if to.cause == Room {
		ns -= length(union(append(spansOf(during, Disk), spansOf(during, Room)...)))
	}
	for i := len(w.pieces) - 1; i >= 0 && ns > 0; i-- {
		p := &w.pieces[i]
		switch {
		case p.Cause == Stage || p.Cause == Mailbox || p.Cause == DeviceStart:
		case to.cause == Room && (p.Cause == Disk || p.Cause == ReadQueue || p.Cause == Upload):
		default:
			return
		}
		if d := p.NS(); d > ns { // only its first part
			rest := *p
			rest.FromNS += ns
			p.ToNS = rest.FromNS
			w.pieces = slices.Insert(w.pieces, i, rest)
			p = &w.pieces[i+1]
		}
		p.Cause, p.Where = to.cause, to.where
		ns -= p.NS()
	}
}

// waits claims the waits of the step between t and where the walk stands.
func (w *walk) waits(t int64) (claims []claim) {
	for i := range w.step.waits {
		wt := &w.step.waits[i]
		if wt.EndedNS <= t || wt.BeganNS >= w.cur {
			continue
		}
		of, rest := w.waiting(wt)
		rest.span = span{wt.BeganNS, wt.EndedNS}
		claims = append(append(claims, of...), rest)
	}
	return claims
}
