package sequencer

import (
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/pages"
)

// exchange is the states that callers read and fill.
type exchange struct {
	open        map[stages.StateID]*exchanged
	lastUnknown int32
}

// exchanged is one of them.
type exchanged struct {
	*pages.State
	draft *sequence // that it is a draft for, or nil
}

// freezeSequence makes a frozen state that its caller reads.
func (c *Core) freezeSequence(m *stages.FreezeSequence, out *stages.Outbox) {
	s, err := c.healthy(m.Seq)
	if err != nil {
		c.answer(m.Caller, &stages.StateReady{Err: err}, out)
		return
	}
	if c.cfg.RecurrentBytes == 0 && c.toShare(s) == 0 { // that takes nothing
		c.read(s, m.Caller, out)
		return
	}
	c.obtain(&ask{
		seq: s, copied: s, caller: m.Caller, pages: len(s.Pages), states: 2,
		room:   func() error { return c.roomToCopy(s) },
		take:   func(out *stages.Outbox) { c.read(s, m.Caller, out) },
		refuse: func(err error, out *stages.Outbox) { c.answer(m.Caller, &stages.StateReady{Err: err}, out) },
	}, out)
}

// read makes a frozen state of what a sequence holds. There is room.
func (c *Core) read(s *sequence, caller stages.Caller, out *stages.Outbox) {
	from := s.id.State()
	if s.Len == 0 {
		from = 0
	}
	f := &exchanged{State: c.book.Read(s.Text)}
	c.cover(s)
	c.expose(f, from, caller, out)
}

// freezeText makes a frozen state of what there is of a text, which its caller reads. It waits for
// nothing: it is asked for by who writes states to a disk, and no text must wait for that.
func (c *Core) freezeText(m *stages.FreezeText, out *stages.Outbox) {
	best := c.search.deepest(nil, m.Scope, m.Tokens, len(m.Tokens))
	if err := c.roomToFreeze(best); err != nil {
		c.answer(m.Caller, &stages.StateReady{Err: err}, out)
		return
	}
	text := best.text
	text.Len = best.pos
	f := &exchanged{State: c.book.Read(text)}
	if best.seq != nil {
		c.cover(best.seq)
	}
	c.expose(f, best.from, m.Caller, out)
}

// roomToFreeze makes room for a frozen state of what a source has. Where others wait for memory it
// is theirs.
func (c *Core) roomToFreeze(from source) error {
	if from.pos == 0 {
		return stages.ErrUnknownState
	}
	need := pages.Need{From: from.kept}
	if c.cfg.RecurrentBytes > 0 {
		need.States = 1
	}
	if from.seq != nil && from.seq.req == nil {
		need.Pages = c.toShare(from.seq)
	}
	if need.States+need.Pages > 0 && c.asks.queue.Len() > 0 {
		return c.book.Lack(need.Pages, need.States)
	}
	return c.book.Room(need)
}

// draftState makes a state that its caller fills. Its sequence takes nothing else until then.
func (c *Core) draftState(m *stages.DraftState, out *stages.Outbox) {
	s, err := c.idle(m.Seq)
	switch {
	case err != nil:
	case c.draining:
		err = stages.ErrClosed
	case m.Positions < 0 || m.Positions > c.cfg.MaxPositions:
		err = &stages.ContextError{Tokens: m.Positions, Max: c.cfg.MaxPositions}
	}
	if err != nil {
		c.answer(m.Caller, &stages.StateReady{Err: err}, out)
		return
	}
	c.obtain(c.askForDraft(s, m), out)
}

// askForDraft returns what a draft asks for. If its sequence may give up its own state for it, it
// does so only where there is no room for both.
func (c *Core) askForDraft(s *sequence, m *stages.DraftState) *ask {
	n, inPlace := c.book.Count(m.Positions), false
	a := &ask{seq: s, caller: m.Caller, enters: !s.grant.holds, atOnce: m.AtOnce, pages: n, states: 1}
	if s.grant.holds && !m.InPlace {
		a.states = 2
	}
	a.room = func() error {
		inPlace = false
		err := c.book.Room(pages.Need{Pages: n, States: 1})
		if err == nil || !m.InPlace || !s.grant.holds {
			return err
		}
		inPlace = true
		return c.book.Room(pages.Need{Pages: n, Instead: s.Pages, Own: s.grant.promised})
	}
	a.take = func(out *stages.Outbox) {
		if inPlace {
			c.schedule.Unexpect(uint64(s.id))
			c.vacate(s, out)
			c.book.Settle()
			s.poison = &stages.PoisonedError{Seq: s.id, Err: stages.ErrGivenUp}
		}
		s.draft = &exchanged{State: c.book.Draft(m.Positions), draft: s}
		c.expose(s.draft, 0, m.Caller, out)
	}
	a.refuse = func(err error, out *stages.Outbox) { c.answer(m.Caller, &stages.StateReady{Err: err}, out) }
	return a
}

// endDraft lets a draft's sequence go on, as it is.
func (c *Core) endDraft(f *exchanged) {
	if f.draft != nil {
		f.draft.draft = nil
		f.draft = nil
	}
}

// expose has dispatch make a state and tell where it lies. Its caller gives it back.
func (c *Core) expose(f *exchanged, from stages.StateID, caller stages.Caller, out *stages.Outbox) {
	c.exchange.open[f.ID] = f
	c.copyState(&operation{expose: f, caller: caller}, stages.CopyState{From: from, To: f.ID, Expose: true, Pages: f.Pages}, out)
}

// exposed tells the caller where the state lies.
func (c *Core) exposed(o *operation, m *stages.StateCopied, out *stages.Outbox) {
	f := o.expose
	f.Ready = true
	if m.Err != nil {
		c.giveBack(f)
		c.answer(o.caller, &stages.StateReady{Err: m.Err}, out)
		return
	}
	c.answer(o.caller, &stages.StateReady{State: f.ID, Tokens: f.Tokens, Memory: m.Memory}, out)
}

// giveBack gives up a state that a caller reads or fills.
func (c *Core) giveBack(f *exchanged) {
	delete(c.exchange.open, f.ID)
	c.endDraft(f)
	c.book.Release(f.State)
}

func (c *Core) releaseState(m *stages.ReleaseState, out *stages.Outbox) {
	f := c.exchange.open[m.State]
	if f == nil || !f.Ready {
		c.refuse(m.Caller, 0, stages.Released, stages.ErrUnknownState, out)
		return
	}
	done := &stages.SequenceDone{Kind: stages.Released}
	if s := f.draft; s != nil {
		done.Seq, done.Pos, done.Poison = s.id, s.Len, s.poison
	}
	c.giveBack(f)
	c.answer(m.Caller, done, out)
}

// adoptState makes a draft its sequence's state. Nothing is asked of the device that could fail.
func (c *Core) adoptState(m *stages.AdoptState, out *stages.Outbox) {
	s, f := c.seqs[m.Seq], c.exchange.open[m.State]
	var err error
	switch {
	case s == nil:
		err = stages.ErrUnknownSequence
	case s.closing != nil:
		err = stages.ErrClosed
	case f == nil || !f.Ready || f.draft != s || len(f.Pages) != c.book.Count(len(m.Tokens)):
		err = stages.ErrUnknownState
	}
	if err != nil {
		c.refuse(m.Caller, m.Seq, stages.Adopted, err, out)
		return
	}
	delete(c.exchange.open, m.State)
	c.endDraft(f)
	c.exchange.nameUnknown(m.Tokens, c.cfg.Vocab)
	c.endGrant(s)
	if !s.grant.holds {
		c.enter(s)
	}
	c.standIn(s, out)
	c.book.Adopt(&s.Text, f.State, m.Tokens)
	c.search.placed(s)
	c.keepWindow(s)
	c.copyState(&operation{kind: stages.Adopted, seq: s, caller: m.Caller}, stages.CopyState{From: f.ID, To: s.id.State(), Take: true}, out)
	c.moved(s, out)
}

// nameUnknown gives tokens that are not known a number below 0 that no other text has: so two such
// texts are never taken for one.
func (x *exchange) nameUnknown(tokens []int32, vocab int) {
	named := false
	for i, t := range tokens {
		if t >= 0 && int(t) < vocab {
			continue
		}
		if !named {
			x.lastUnknown--
			named = true
		}
		tokens[i] = x.lastUnknown
	}
}
