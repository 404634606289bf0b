package sequencer

import (
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/pages"
	"github.com/moeflux/moeflux-actor/stages/prefix"
)

// resumeSequence makes a sequence hold as much of the beginning of a text as the engine has.
func (c *Core) resumeSequence(m *stages.ResumeSequence, out *stages.Outbox) {
	s, err := c.idle(m.Seq)
	if err == nil {
		err = c.checkText(m.Tokens)
	}
	if err != nil {
		c.refuse(m.Caller, m.Seq, stages.Resumed, err, out)
		return
	}
	if c.ownPart(s, m) < s.Len && c.worthIt(s) { // its text is left
		c.keep(s, 0, nil, out)
	}
	r := c.plan(s, m)
	if err := r.enough(m); err != nil {
		c.refuse(m.Caller, m.Seq, stages.Resumed, err, out)
		return
	}
	c.count.resumed++
	if r.best.pos <= r.own || r.need.States+r.need.Pages == 0 {
		c.resume(s, m, r, out)
		return
	}
	c.obtain(&ask{
		seq: s, caller: m.Caller, enters: !s.grant.holds, pages: max(c.book.Count(r.until), len(r.best.text.Pages)), states: 1,
		room: func() error { // while it waited, states have come and gone
			r = c.plan(s, m)
			if err := r.enough(m); err != nil {
				return err
			}
			return c.book.Room(r.need)
		},
		take:   func(out *stages.Outbox) { c.resume(s, m, r, out) },
		refuse: func(err error, out *stages.Outbox) { c.refuse(m.Caller, s.id, stages.Resumed, err, out) },
	}, out)
}

// resumption is how a sequence gets to hold the beginning of a text.
type resumption struct {
	own   int    // positions that it has
	best  source // that has more, perhaps
	until int    // that the text is declared to reach; 0: nobody has said so
	need  pages.Need
}

// enough reports, as an error, that there is less of a text than is of use.
func (r *resumption) enough(m *stages.ResumeSequence) error {
	if max(r.own, r.best.pos) < m.AtLeast {
		return stages.ErrLessKnown
	}
	return nil
}

// plan returns what there is of a text, and what memory it takes to have a sequence hold that.
func (c *Core) plan(s *sequence, m *stages.ResumeSequence) (r resumption) {
	r.own = c.ownPart(s, m)
	r.best = c.search.deepest(s, s.scope, m.Tokens, len(m.Tokens)-1) // the last one's logits are wanted
	if r.best.pos <= r.own {
		return r
	}
	r.need.From = r.best.kept
	if !s.grant.holds {
		r.need.States = 1
	}
	if of := r.best.seq; of != nil && of.req == nil {
		r.need.Pages = c.toShare(of)
	}
	if m.Until > 0 {
		r.until = max(len(m.Tokens), min(m.Until, c.cfg.MaxPositions))
		r.need.Pages += c.book.Count(r.until) - r.best.pos/c.cfg.PageRows // it writes to a page of its own
		r.need.Instead, r.need.Own = s.Pages, s.grant.promised
	}
	return r
}

// resume makes a sequence hold what there is of a text. There is room.
func (c *Core) resume(s *sequence, m *stages.ResumeSequence, r resumption, out *stages.Outbox) {
	switch {
	case r.best.pos > r.own:
		c.carryOn(s, m, r, out)
	case r.own == s.Len && s.poison == nil:
		c.answer(m.Caller, &stages.SequenceDone{Seq: s.id, Kind: stages.Resumed, Pos: s.Len}, out)
	case r.own == 0:
		c.clear(s, stages.Resumed, m.Caller, out)
	default:
		c.cut(s, r.own)
		c.moved(s, out)
		c.answer(m.Caller, &stages.SequenceDone{Seq: s.id, Kind: stages.Resumed, Pos: s.Len}, out)
	}
	c.accounts.reuse(s, s.Len)
}

// carryOn makes a sequence hold what another state has of a text.
func (c *Core) carryOn(s *sequence, m *stages.ResumeSequence, r resumption, out *stages.Outbox) {
	if r.best.kept != nil {
		c.book.Use(r.best.kept)
	}
	if !s.grant.holds {
		c.enter(s)
	}
	c.follow(s, r.best.text, r.best.pos, r.best.from, &operation{kind: stages.Resumed, caller: m.Caller}, out)
	if r.best.seq != nil {
		c.cover(r.best.seq)
	}
	if r.until > 0 {
		s.grant.declared = true
		c.open(s, r.until)
		c.cover(s)
	}
}

// checkText checks a text that is to be read.
func (c *Core) checkText(tokens []int32) error {
	switch {
	case c.draining:
		return stages.ErrClosed
	case len(tokens) == 0:
		return stages.ErrEmptyChunk
	case len(tokens) > c.cfg.MaxPositions:
		return &stages.ContextError{Tokens: len(tokens), Max: c.cfg.MaxPositions}
	}
	return c.checkTokens(tokens)
}

// ownPart returns how many positions of a sequence are the beginning of a text; 0 if it cannot be
// cut to that.
func (c *Core) ownPart(s *sequence, m *stages.ResumeSequence) int {
	if s.poison != nil {
		return 0
	}
	n := min(prefix.Common(s.Tokens, m.Tokens), len(m.Tokens)-1)
	if !c.reaches(s, n) {
		return 0
	}
	return n
}

// mostOnTheWay is the most states that are remembered of one text before its end.
const mostOnTheWay = 8

// remember keeps where a sequence stands for texts that begin alike, if its caller wants that: at
// the end of what it gave us, and, where a recurrent state cannot be taken back, on the way there,
// at borders between steps, as far apart as makes half of the budget suffice.
func (c *Core) remember(r *request, out *stages.Outbox) {
	s := r.seq
	if !r.msg.Remember || r.Left() > 0 && (s.Len < r.border || c.cfg.RecurrentBytes == 0) {
		return
	}
	r.border = c.nextBorder(r)
	// the next step writes to a page that is kept now: to a copy
	onTheWay := r.Left() > 0 && s.Len%c.cfg.PageRows != 0
	if !c.worthIt(s) || onTheWay && c.book.Room(pages.Need{Pages: 1}) != nil {
		return
	}
	c.keep(s, 0, nil, out)
	if onTheWay {
		r.copy = c.book.Grow(&s.Text, s.Len)
	}
}

// worthIt reports whether to remember where a sequence stands: its caller gives texts for that, it
// is not remembered already, and there is, or worthIt has made, room in the budget.
func (c *Core) worthIt(s *sequence) bool {
	if !s.remembers || s.poison != nil || s.Len == 0 {
		return false
	}
	if f := c.search.serving(s.scope, s.Tokens); f != nil {
		c.book.Use(f)
		return false
	}
	return c.book.RoomToRemember(s.Len)
}

// nextBorder returns the position from which on a text that is being read is remembered next: a
// multiple of a distance that depends on the length of the text alone, so that texts that begin
// alike are remembered in the same places.
func (c *Core) nextBorder(r *request) int {
	if c.cfg.RecurrentBytes == 0 {
		return 0
	}
	states := min(c.cfg.CheckpointBytes/(2*c.cfg.RecurrentBytes), mostOnTheWay)
	if states == 0 {
		return c.cfg.MaxPositions + 1
	}
	end := r.pos + len(r.msg.Tokens)
	distance := c.cfg.ChunkRows
	for int64(end) > int64(distance)*states {
		distance *= 2
	}
	return (r.seq.Len/distance + 1) * distance
}
