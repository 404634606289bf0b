package sequencer

import "github.com/moeflux/moeflux-actor/stages"

// freezeSequence makes a frozen state that its caller reads.
func (c *Core) freezeSequence(m *stages.FreezeSequence, out *stages.Outbox) {
	s, err := c.healthy(m.Seq)
	if err == nil {
		err = c.room(c.tally(), func(*tally) int { return 0 }, 1, out)
	}
	if err != nil {
		c.answer(m.Caller, &stages.StateReady{Err: err}, out)
		return
	}
	f := c.freeze(s, live)
	c.expose(f, s.id.State(), m.Caller, out)
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
		inPlace, err = c.roomForDraft(s, m, out)
	}
	if err != nil {
		c.answer(m.Caller, &stages.StateReady{Err: err}, out)
		return
	}
	if inPlace {
		c.lent++
		c.schedule.Unexpect(uint64(s.id))
		c.empty(s)
		c.settle(out)
		s.poison = &stages.PoisonedError{Seq: s.id, Err: stages.ErrGivenUp}
		out.Send(stages.Dispatch, &stages.DropState{State: s.id.State()})
	}
	f := &frozen{draft: s, inPlace: inPlace}
	for range c.pages.count(m.Positions) {
		f.pages = append(f.pages, c.pages.take())
	}
	s.draft = f
	c.expose(f, 0, m.Caller, out)
}

// roomForDraft makes room for a draft, and reports whether the sequence must give its own state up
// for that, which it may if it is asked to.
func (c *Core) roomForDraft(s *sequence, m *stages.DraftState, out *stages.Outbox) (inPlace bool, err error) {
	pages := func(*tally) int { return c.pages.count(m.Positions) }
	err = c.room(c.tally(), pages, 1, out)
	if err == nil || !m.InPlace {
		return false, err
	}
	t := c.tally()
	t.add(live, -1, s.pages)
	if err := c.room(t, pages, 0, out); err != nil {
		return false, err
	}
	return true, nil
}

// endDraft lets a draft's sequence go on, as it is.
func (c *Core) endDraft(f *frozen) {
	if f.inPlace {
		c.lent--
		f.inPlace = false
	}
	if f.draft != nil {
		f.draft.draft = nil
		f.draft = nil
	}
}

// expose has dispatch make a state and tell where it lies. Such a state always has a name, which
// the caller gives back.
func (c *Core) expose(f *frozen, from stages.StateID, caller stages.Caller, out *stages.Outbox) {
	if f.id == 0 {
		c.lastFrozen--
		f.id = c.lastFrozen
		if f.pos() == 0 {
			from = 0
		}
	}
	c.exchanged[f.id] = f
	c.copyState(&operation{frozen: f, caller: caller, expose: true},
		stages.CopyState{From: from, To: f.id, Expose: true, Pages: f.pages}, out)
}

// exposed tells the caller where the state lies.
func (c *Core) exposed(o *operation, m *stages.StateCopied, out *stages.Outbox) {
	f := o.frozen
	f.ready = true
	if m.Err != nil {
		c.withdraw(f, out)
		c.answer(o.caller, &stages.StateReady{Err: m.Err}, out)
		return
	}
	c.answer(o.caller, &stages.StateReady{State: f.id, Tokens: f.tokens, Memory: m.Memory}, out)
}

// withdraw gives up a state that a caller reads or fills.
func (c *Core) withdraw(f *frozen, out *stages.Outbox) {
	delete(c.exchanged, f.id)
	c.endDraft(f)
	c.drop(f, live, out)
}

func (c *Core) releaseState(m *stages.ReleaseState, out *stages.Outbox) {
	f := c.exchanged[m.State]
	if f == nil || !f.ready {
		c.refuse(m.Caller, 0, stages.Released, stages.ErrUnknownState, out)
		return
	}
	done := &stages.SequenceDone{Kind: stages.Released}
	if s := f.draft; s != nil {
		done.Seq, done.Pos, done.Poison = s.id, s.len, s.poison
	}
	c.withdraw(f, out)
	c.answer(m.Caller, done, out)
}

// adoptState makes a draft its sequence's state. Nothing is asked of the device that could fail.
func (c *Core) adoptState(m *stages.AdoptState, out *stages.Outbox) {
	s, f := c.seqs[m.Seq], c.exchanged[m.State]
	var err error
	switch {
	case s == nil:
		err = stages.ErrUnknownSequence
	case s.closing != nil:
		err = stages.ErrClosed
	case f == nil || !f.ready || f.draft != s || len(f.pages) != c.pages.count(len(m.Tokens)):
		err = stages.ErrUnknownState
	}
	if err != nil {
		c.refuse(m.Caller, m.Seq, stages.Adopted, err, out)
		return
	}
	delete(c.exchanged, m.State)
	c.endDraft(f)
	c.nameUnknown(m.Tokens)
	c.place(s, f.pages, m.Tokens, len(m.Tokens))
	c.pages.release(live, f.pages...)
	c.copyState(&operation{kind: stages.Adopted, seq: s, caller: m.Caller}, stages.CopyState{From: f.id, To: s.id.State(), Take: true}, out)
	c.moved(s, out)
}

// healthy returns a sequence that nothing is being done to and that a step has not left in pieces.
func (c *Core) healthy(id stages.SeqID) (*sequence, error) {
	s, err := c.idle(id)
	if err == nil {
		err = s.poison
	}
	return s, err
}

// nameUnknown gives tokens that are not known a number below 0 that no other text has: so two such
// texts are never taken for one.
func (c *Core) nameUnknown(tokens []int32) {
	named := false
	for i, t := range tokens {
		if t >= 0 && int(t) < c.cfg.Vocab {
			continue
		}
		if !named {
			c.lastUnknown--
			named = true
		}
		tokens[i] = c.lastUnknown
	}
}
