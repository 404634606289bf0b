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
	draft   *sequence // that it is a draft for, or nil
	inPlace bool      // the sequence has given its own state up for it
}

// freezeSequence makes a frozen state that its caller reads.
func (c *Core) freezeSequence(m *stages.FreezeSequence, out *stages.Outbox) {
	s, err := c.healthy(m.Seq)
	if err == nil {
		err = c.book.Room(pages.Need{States: 1})
	}
	if err != nil {
		c.answer(m.Caller, &stages.StateReady{Err: err}, out)
		return
	}
	from := s.id.State()
	if s.Len == 0 {
		from = 0
	}
	c.expose(&exchanged{State: c.book.Read(s.Text)}, from, m.Caller, out)
}

// draftState makes a state that its caller fills. Its sequence takes nothing else until then.
func (c *Core) draftState(m *stages.DraftState, out *stages.Outbox) {
	s, err := c.idle(m.Seq)
	inPlace := false
	switch {
	case err != nil:
	case c.draining:
		err = stages.ErrClosed
	case m.Positions < 0 || m.Positions > c.cfg.MaxPositions:
		err = &stages.ContextError{Tokens: m.Positions, Max: c.cfg.MaxPositions}
	default:
		inPlace, err = c.roomForDraft(s, m)
	}
	if err != nil {
		c.answer(m.Caller, &stages.StateReady{Err: err}, out)
		return
	}
	if inPlace {
		c.book.AddStates(-1)
		c.schedule.Unexpect(uint64(s.id))
		c.empty(s)
		c.book.Settle()
		s.poison = &stages.PoisonedError{Seq: s.id, Err: stages.ErrGivenUp}
		c.dropState(s.id.State(), out)
	}
	s.draft = &exchanged{State: c.book.Draft(m.Positions), draft: s, inPlace: inPlace}
	c.expose(s.draft, 0, m.Caller, out)
}

// roomForDraft makes room for a draft, and reports whether the sequence must give its own state up
// for that, which it may if it is asked to.
func (c *Core) roomForDraft(s *sequence, m *stages.DraftState) (inPlace bool, err error) {
	n := c.book.Count(m.Positions)
	err = c.book.Room(pages.Need{Pages: n, States: 1})
	if err == nil || !m.InPlace {
		return false, err
	}
	if err := c.book.Room(pages.Need{Pages: n, Instead: s.Pages}); err != nil {
		return false, err
	}
	return true, nil
}

// endDraft lets a draft's sequence go on, as it is.
func (c *Core) endDraft(f *exchanged) {
	if f.inPlace {
		c.book.AddStates(1)
		f.inPlace = false
	}
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
		c.withdraw(f)
		c.answer(o.caller, &stages.StateReady{Err: m.Err}, out)
		return
	}
	c.answer(o.caller, &stages.StateReady{State: f.ID, Tokens: f.Tokens, Memory: m.Memory}, out)
}

// withdraw gives up a state that a caller reads or fills.
func (c *Core) withdraw(f *exchanged) {
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
	c.withdraw(f)
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
	c.book.Adopt(&s.Text, f.State, m.Tokens)
	c.search.placed(s)
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
