package sequencer

import (
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/admission"
	"github.com/moeflux/moeflux-actor/stages/pages"
)

// grant is what memory a sequence has, and has a right to. What it was promised nobody else gets:
// growth within a grant never waits and never fails.
type grant struct {
	share *admission.Share[*ask] // that pays for it
	// the sequence has a state in dispatch, or gets it now; without one it has no pages either
	holds    bool
	until    int // positions that the grant is for; 0: none is open
	promised int // pages for them that were not taken yet
	// the caller has said how far its text will go: it is expected to give the memory back then
	declared bool
}

// reach returns how far a chunk's text goes by what its caller declares, or has declared before.
func (c *Core) reach(s *sequence, m *stages.EvalChunk) int {
	g, end := &s.grant, s.Len+len(m.Tokens)
	switch {
	case m.Until > 0:
		g.declared = true
		return max(end, min(m.Until, c.cfg.MaxPositions))
	case end > g.until:
		g.declared = false
		return end
	}
	return g.until
}

// within reports whether a sequence may grow to a number of positions without asking.
func (c *Core) within(s *sequence, positions int) bool {
	need := c.book.ToGrow(&s.Text, positions)
	if c.book.TailHeld(&s.Text) {
		need++
	}
	return s.grant.holds && need <= s.grant.promised && c.book.RoomToGrow(&s.Text, positions, s.grant.promised) == nil
}

// start gives a chunk its pages, and its sequence the promise of all that is declared. There is
// room. A sequence that had nothing gets its state first.
func (c *Core) start(r *request, until int, out *stages.Outbox) {
	s := r.seq
	r.copy = c.book.Grow(&s.Text, s.Len+len(r.msg.Tokens))
	c.open(s, until)
	if s.grant.holds {
		c.makeReady(r)
		return
	}
	r.ready = c.notes.now
	c.enter(s)
	c.copyState(&operation{kind: stages.Opened, seq: s, req: r}, stages.CopyState{To: s.id.State()}, out)
}

// open opens a sequence's grant, or changes it. There is room.
func (c *Core) open(s *sequence, until int) {
	g := &s.grant
	if g.until == 0 {
		g.share.Begin(until - s.Len)
	} else {
		g.share.Change(until - g.until)
	}
	g.until = until
	c.promise(s, c.book.ToGrow(&s.Text, until))
}

// promise sets how many pages a sequence has a right to beyond those that it has.
func (c *Core) promise(s *sequence, n int) {
	c.book.Promise(n - s.grant.promised)
	s.grant.promised = n
}

// endGrant ends a sequence's right to more memory. It must be called before the sequence stands
// elsewhere.
func (c *Core) endGrant(s *sequence) {
	g := &s.grant
	if g.until == 0 {
		return
	}
	g.share.End(g.until - s.Len)
	g.until = 0
	c.promise(s, 0)
	c.asks.stirred = true
}

// cover adds to a grant the page that its sequence needs now because somebody else holds the one in
// which its next position lies. Where there is no room for it, the next chunk asks.
func (c *Core) cover(s *sequence) {
	if n := c.toCover(s); n > 0 && c.book.Room(pages.Need{Pages: n}) == nil {
		c.promise(s, s.grant.promised+n)
	}
}

// toCover returns how many pages that is.
func (c *Core) toCover(s *sequence) int {
	if s.grant.until == 0 || !c.book.TailHeld(&s.Text) {
		return 0
	}
	return max(c.book.ToGrow(&s.Text, s.grant.until)+1-s.grant.promised, 0)
}

// toShare returns how many pages a sequence's grant must be given when somebody else gets to hold
// all that the sequence has.
func (c *Core) toShare(s *sequence) int {
	if s.grant.until == 0 || s.Len%c.cfg.PageRows == 0 {
		return 0
	}
	return max(c.book.ToGrow(&s.Text, s.grant.until)+1-s.grant.promised, 0)
}

// enter counts a sequence among those that have a state.
func (c *Core) enter(s *sequence) {
	s.grant.holds = true
	s.since, s.used = c.accounts.now, c.accounts.now
	c.book.AddStates(1)
}

// exit is the contrary.
func (c *Core) exit(s *sequence) {
	s.grant.holds, s.grant.declared = false, false
	c.book.AddStates(-1)
	c.asks.stirred = true
}

// vacate gives up all that a sequence holds but its checkpoints.
func (c *Core) vacate(s *sequence, out *stages.Outbox) {
	c.standIn(s, out)
	c.empty(s)
	if s.grant.holds {
		c.exit(s)
		c.dropState(s.id.State(), out)
	}
}

// inside returns how many sequences have memory.
func (c *Core) inside() (n int) {
	for _, s := range c.seqs {
		if s.grant.holds || s.draft != nil || s.moving() {
			n++
		}
	}
	return n
}
