package live

import (
	"time"

	"github.com/moeflux/moeflux-actor/tracing/analyse"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// The bounds of what is explained of tokens.
const (
	mostTokens = 4
	// pause is how many times as long as an explanation took there is none after it, so that all of
	// them together cost one processor at most so much of its time.
	pause = 150
	// mostHandled is how many messages a token may have to be explained: a prompt of minutes is
	// longer than what the engine remembers.
	mostHandled = 20_000
	// mostFrames is how many frames back a token may begin, and leastMargin what is looked at
	// before it: the token before it says why experts are missing.
	mostFrames  = 128
	leastMargin = 5e6 // ns
)

// tokens are the answers since the last frame.
type tokens struct {
	fresh   []record.Request // the last ones
	skipped int
	back    []bookmark // of the last frames, the oldest first
	rest    time.Time  // nothing is explained before
}

// bookmark is how far a view had come at a moment.
type bookmark struct {
	atNS int64
	seen cursors
}

func (t *tokens) answered(r *record.Request) {
	if t.fresh = append(t.fresh, *r); len(t.fresh) > mostTokens {
		t.fresh = t.fresh[1:]
		t.skipped++
	}
}

// remember sets a bookmark.
func (t *tokens) remember(now int64, seen cursors) {
	if t.back = append(t.back, bookmark{now, seen}); len(t.back) > mostFrames {
		t.back = t.back[1:]
	}
}

// explain writes the answers since the last frame into a frame, with where their time went.
func (t *tokens) explain(v *View, f *Frame, now int64) {
	fresh := t.fresh
	f.Skipped = t.skipped
	t.fresh, t.skipped = nil, 0
	began := time.Now()
	if len(fresh) == 0 {
		return
	}
	if began.Before(t.rest) {
		f.Skipped += len(fresh)
		return
	}
	rec := t.around(v, fresh)
	if rec == nil {
		f.Skipped += len(fresh)
		return
	}
	wanted := make(map[uint64]bool)
	for i := range fresh {
		wanted[fresh[i].Request] = true
	}
	l := analyse.LatelyOf(rec, func(r *record.Request) bool { return wanted[r.Request] })
	v.flow.answers = v.flow.answers[:0]
	for i := range l.Tokens {
		f.Tokens = append(f.Tokens, tokenOf(&l.Tokens[i], l.Waterfalls[i]))
		v.flow.answers = append(v.flow.answers, l.Tokens[i].Causes...)
	}
	t.rest = time.Now().Add(pause * time.Since(began))
}

// around returns the records of what happened during some answers; nil if they are not all there,
// or too many.
func (t *tokens) around(v *View, of []record.Request) *record.Recording {
	from, to := of[0].ArrivedNS, int64(0)
	for i := range of {
		from, to = min(from, of[i].ArrivedNS), max(to, of[i].EndedNS)
	}
	from -= max(to-from, leastMargin)
	var mark *bookmark
	for i := range t.back {
		if t.back[i].atNS <= from {
			mark = &t.back[i]
		}
	}
	if mark == nil {
		if len(t.back) == 0 || t.back[0].atNS != v.began {
			return nil
		}
		mark = &t.back[0]
	}
	c, rec := mark.seen, &record.Recording{Meta: v.meta}
	l := v.log
	within := func(began, ended int64) bool { return ended >= from && began <= to }
	take(&l.Handled, &c.handled, &rec.Handled, func(h *record.Handled) bool { return within(h.SentNS, h.EndedNS) })
	if len(rec.Handled) > mostHandled {
		return nil
	}
	all := func(*record.Segment) bool { return true }
	take(&l.Segments, &c.segments, &rec.Segments, all)
	take(&l.Steps, &c.steps, &rec.Steps, func(s *record.Step) bool { return s.BeganNS <= to })
	take(&l.StepsEnded, &c.ended, &rec.StepsEnded, func(e *record.StepEnded) bool { return e.EndedNS >= from })
	take(&l.Requests, &c.requests, &rec.Requests, func(r *record.Request) bool { return within(r.ArrivedNS, r.EndedNS) })
	take(&l.Waits, &c.waits, &rec.Waits, func(w *record.Wait) bool { return within(w.BeganNS, w.EndedNS) })
	take(&l.Uses, &c.uses, &rec.Uses, func(u *record.Use) bool { return within(u.AtNS, u.AtNS) })
	take(&l.Reads, &c.reads, &rec.Reads, func(r *record.Read) bool { return within(r.AskedNS, max(r.EndedNS, r.PlacedNS)) })
	take(&l.Guesses, &c.guesses, &rec.Guesses, func(g *record.Guess) bool { return within(g.AtNS, g.AtNS) })
	take(&l.Evictions, &c.evictions, &rec.Evictions, func(e *record.Eviction) bool { return within(e.AtNS, e.AtNS) })
	take(&l.Answers, &c.answers, &rec.Answers, func(a *record.Answer) bool { return within(a.AskedNS, a.EndedNS) })
	take(&l.Submissions, &c.submissions, &rec.Submissions, func(s *record.Submission) bool { return within(s.SubmittedNS, s.EndedNS) })
	return rec
}

// take copies the records of a table that are wanted.
func take[T any](t *record.Table[T], c *record.Cursor, to *[]T, wanted func(*T) bool) {
	each(t, c, func(r *T) {
		if wanted(r) {
			*to = append(*to, *r)
		}
	})
}

// tokenOf returns a token as it is told.
func tokenOf(t *analyse.Token, w *analyse.Waterfall) Token {
	one := Token{Request: t.Request, Sequence: t.Seq, Position: t.Pos, Rows: t.Rows, FromUS: us(t.FromNS), WallUS: us(t.WallNS)}
	for _, s := range t.Causes {
		one.Causes = append(one.Causes, Share{int(s.Cause), s.Share})
	}
	one.Path = path(t)
	one.Bars = bars(w)
	return one
}

// path returns the pieces of a token that can be seen: neighbours of one cause and layer are one.
func path(t *analyse.Token) []int64 {
	flat := make([]int64, 0, 64)
	least := t.WallNS / 1000
	for i := range t.Pieces {
		p := &t.Pieces[i]
		if p.NS() < least || p.NS() <= 0 {
			continue
		}
		from, to := us(p.FromNS-t.FromNS), us(p.ToNS-t.FromNS)
		if n := len(flat); n > 0 && flat[n-2] == int64(p.Cause) && flat[n-1] == int64(p.Layer) && from-flat[n-3] <= us(least)+1 {
			flat[n-3] = to
			continue
		}
		flat = append(flat, from, to, int64(p.Cause), int64(p.Layer))
	}
	return flat
}

// bars returns what was done for a token, where it can be seen: bars of a kind that nearly touch
// are one.
func bars(w *analyse.Waterfall) []int64 {
	flat := make([]int64, 0, 256)
	near := (w.ToNS - w.FromNS) / 500
	for _, row := range w.Rows {
		for kind := range analyse.Works() {
			var of []span
			for _, b := range row.Bars {
				if int(b.Kind) == kind {
					of = append(of, span{b.FromNS, b.ToNS + near})
				}
			}
			for _, s := range merged(of) {
				flat = append(flat, int64(row.Layer), us(s.from-w.FromNS), us(s.to-near-w.FromNS), int64(kind))
			}
		}
	}
	return flat
}
