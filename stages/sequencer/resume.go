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
	most := len(m.Tokens) - 1 // the last one's logits are wanted
	own := c.ownPart(s, m.Tokens, most)
	if own < s.Len && c.worthIt(s) { // its text is left
		c.keep(s, 0, nil, out)
	}
	best := c.search.deepest(s, m.Tokens, most)
	c.count.resumed++
	o := &operation{kind: stages.Resumed, caller: m.Caller}
	switch {
	case own >= best.pos && own == s.Len && s.poison == nil:
		c.answer(m.Caller, &stages.SequenceDone{Seq: s.id, Kind: stages.Resumed, Pos: s.Len}, out)
	case own >= best.pos && own > 0:
		c.cut(s, own)
		c.moved(s, out)
		c.answer(m.Caller, &stages.SequenceDone{Seq: s.id, Kind: stages.Resumed, Pos: s.Len}, out)
	case best.pos == 0:
		c.clear(s, o, out)
	default:
		if best.kept != nil {
			c.book.Use(best.kept)
		}
		c.follow(s, best.text, best.pos, best.from, o, out)
	}
	c.count.reused += int64(s.Len)
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

// ownPart returns how many positions of a sequence are the beginning of a text, at most most; 0 if
// its recurrent state is that of another position.
func (c *Core) ownPart(s *sequence, text []int32, most int) int {
	if s.poison != nil {
		return 0
	}
	n := min(prefix.Common(s.Tokens, text), most)
	if n < s.Len && c.cfg.RecurrentBytes > 0 {
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
	if f := c.search.serving(s.Tokens); f != nil {
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
