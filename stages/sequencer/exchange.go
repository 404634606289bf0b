package sequencer

import "github.com/moeflux/moeflux-actor/stages"

// freezeSequence makes a frozen state that its caller reads.
func (c *Core) freezeSequence(m *stages.FreezeSequence, out *stages.Outbox) {
	s, err := c.healthy(m.Seq)
	if err != nil {
		c.answer(m.Caller, &stages.StateReady{Err: err}, out)
		return
	}
	f := c.freeze(s, live)
	c.expose(f, s.id.State(), m.Caller, out)
}

// draftState makes a state that its caller fills.
func (c *Core) draftState(m *stages.DraftState, out *stages.Outbox) {
	err := c.roomForDraft(m.Positions, out)
	if err != nil {
		c.answer(m.Caller, &stages.StateReady{Err: err}, out)
		return
	}
	f := new(frozen)
	for range c.pages.count(m.Positions) {
		f.pages = append(f.pages, c.pages.take())
	}
	c.expose(f, 0, m.Caller, out)
}

func (c *Core) roomForDraft(positions int, out *stages.Outbox) error {
	switch {
	case c.draining:
		return stages.ErrClosed
	case positions < 0 || positions > c.cfg.MaxPositions:
		return &stages.ContextError{Tokens: positions, Max: c.cfg.MaxPositions}
	}
	return c.room(c.pages.count(positions), out)
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
		delete(c.exchanged, f.id)
		c.drop(f, live, out)
		c.answer(o.caller, &stages.StateReady{Err: m.Err}, out)
		return
	}
	c.answer(o.caller, &stages.StateReady{State: f.id, Tokens: f.tokens, Memory: m.Memory}, out)
}

func (c *Core) releaseState(m *stages.ReleaseState, out *stages.Outbox) {
	if f := c.exchanged[m.State]; f != nil && f.ready {
		delete(c.exchanged, m.State)
		c.drop(f, live, out)
	}
}

// adoptState makes a draft a sequence's state. Nothing of the device is asked that could fail.
func (c *Core) adoptState(m *stages.AdoptState, out *stages.Outbox) {
	s, err := c.idle(m.Seq)
	f := c.exchanged[m.State]
	switch {
	case err != nil:
	case c.draining:
		err = stages.ErrClosed
	case f == nil || !f.ready || f.tokens != nil || len(f.pages) != c.pages.count(len(m.Tokens)):
		err = stages.ErrUnknownState
	}
	if err != nil {
		c.refuse(m.Caller, m.Seq, stages.Adopted, err, out)
		return
	}
	delete(c.exchanged, m.State)
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
