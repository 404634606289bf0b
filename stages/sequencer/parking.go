package sequencer

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/pages"
)

// parking is the states of sequences that lie with the parking store, or are on their way there or
// back.
type parking struct {
	away      map[stages.ParkID]*away
	last      stages.ParkID
	out, back int64 // so far
}

// away is such a state. Its sequence still has the tokens, and no pages.
type away struct {
	id     stages.ParkID
	seq    *sequence
	at     whereabouts
	state  *pages.State  // that is written, or filled
	lost   error         // why it is not a state any more, or nil
	caller stages.Caller // of ParkSequence
	// who needs the state waits until it is parked: it has to make room for others
	forced bool
	until  int // that the text was declared to reach, or 0
}

// whereabouts says where a state is.
type whereabouts uint8

const (
	leaving  whereabouts = iota // dispatch takes it from its sequence
	written                     // the store reads it
	parked                      // the store has it
	coming                      // dispatch makes a draft for it
	filled                      // the store fills the draft
	arriving                    // dispatch makes it its sequence's
)

// moving reports whether a sequence's state is on its way to the parking store, or back.
func (s *sequence) moving() bool { return s.away != nil && s.away.at != parked }

// awaited reports whether something that its caller has asked for waits for a sequence's state.
// Forks are asked for by others.
func (s *sequence) awaited() bool {
	return slices.ContainsFunc(s.waits, func(m stages.Message) bool { _, fork := m.(*stages.OpenSequence); return !fork })
}

func (c *Core) parkSequence(m *stages.ParkSequence, out *stages.Outbox) {
	s, err := c.healthy(m.Seq)
	switch {
	case err != nil:
	case c.draining:
		err = stages.ErrClosed
	case s.moving() || s.copies > 0:
		err = stages.ErrBusy
	}
	if err != nil {
		c.refuse(m.Caller, m.Seq, stages.Parked, err, out)
		return
	}
	if s.away != nil || !s.grant.holds {
		c.answer(m.Caller, &stages.SequenceDone{Seq: s.id, Kind: stages.Parked, Pos: s.Len}, out)
		return
	}
	c.park(s, m.Caller, out)
}

// park moves the state of a sequence to which nothing is being done to the parking store. The
// device's memory of it is free when the store has all of it.
func (c *Core) park(s *sequence, caller stages.Caller, out *stages.Outbox) {
	c.schedule.Unexpect(uint64(s.id))
	until := 0
	if s.grant.declared {
		until = s.grant.until
	}
	c.endGrant(s)
	s.grant.holds, s.grant.declared = false, false // the state is counted itself from now on
	c.parking.last++
	a := &away{until: until, id: c.parking.last, seq: s, state: c.book.Detach(&s.Text), caller: caller}
	s.away, c.parking.away[a.id] = a, a
	c.copyState(&operation{away: a}, stages.CopyState{From: s.id.State(), To: a.state.ID, Take: true, Expose: true, Pages: a.state.Pages}, out)
}

// awayCopied goes on when dispatch has done its part.
func (c *Core) awayCopied(a *away, m *stages.StateCopied, out *stages.Outbox) error {
	wanted := len(a.seq.waits) > 0 && !a.forced || a.seq.closing != nil
	switch {
	case a.at == arriving:
		return c.arrived(a, m.Err, out)
	case a.at == leaving && (m.Err != nil || wanted):
		c.left(a, cmp.Or(m.Err, stages.ErrBusy), out)
	case a.at == leaving:
		a.at = written
		out.Parks = append(out.Parks, stages.Park{Do: stages.ParkWrite, ID: a.id, Memory: m.Memory, Tokens: a.state.Tokens})
	case m.Err != nil:
		c.book.Release(a.state)
		a.at, a.state = parked, nil
		c.giveUpWaiting(a.seq, m.Err, out)
		c.closeAway(a, out)
	default:
		a.at = filled
		out.Parks = append(out.Parks, stages.Park{Do: stages.ParkRead, ID: a.id, Memory: m.Memory, Tokens: a.seq.Tokens})
	}
	return nil
}

// stateParked ends the writing of a state.
func (c *Core) stateParked(m *stages.StateParked, out *stages.Outbox) error {
	a := c.parking.away[m.ID]
	if a == nil || a.at != written {
		return fmt.Errorf("sequencer: parked state %d was not being written", m.ID)
	}
	if m.Err == nil && len(a.seq.waits) > 0 && !a.forced {
		c.forgetParked(a, out)
		m.Err = stages.ErrBusy
	}
	if m.Err != nil {
		if !errors.Is(m.Err, stages.ErrBusy) {
			a.seq.stays = a.seq.Len
		}
		c.left(a, m.Err, out)
		return nil
	}
	c.parking.out++
	c.book.Release(a.state)
	a.at, a.state = parked, nil
	c.answer(a.caller, &stages.SequenceDone{Seq: a.seq.id, Kind: stages.Parked, Pos: a.seq.Len}, out)
	a.caller = nil
	c.closeAway(a, out)
	if len(a.seq.waits) > 0 {
		c.bringBack(a, a.seq.waits[0], out)
	}
	return nil
}

// left gives a sequence the state again that was not parked, and is still in memory.
func (c *Core) left(a *away, err error, out *stages.Outbox) {
	c.answer(a.caller, &stages.SequenceDone{Seq: a.seq.id, Kind: stages.Parked, Pos: a.seq.Len, Err: err}, out)
	c.arrive(a, out)
}

// arrive makes the state that is here its sequence's.
func (c *Core) arrive(a *away, out *stages.Outbox) {
	c.book.Adopt(&a.seq.Text, a.state, a.seq.Tokens)
	c.enter(a.seq)
	a.at = arriving
	c.copyState(&operation{away: a}, stages.CopyState{From: a.state.ID, To: a.seq.id.State(), Take: true}, out)
}

// arrived ends a state's absence, and does what its sequence has waited for.
func (c *Core) arrived(a *away, err error, out *stages.Outbox) error {
	s := a.seq
	c.present(s)
	if err = cmp.Or(a.lost, err); err != nil {
		c.endGrant(s)
		s.poison = &stages.PoisonedError{Seq: s.id, Err: err}
	}
	if s.closing != nil {
		c.close(s, out)
		return nil
	}
	waits := s.waits
	s.waits = nil
	for _, m := range waits {
		if err := c.handle(m, out); err != nil {
			return err
		}
	}
	return nil
}

// present notes that a sequence has a state in memory.
func (c *Core) present(s *sequence) {
	delete(c.parking.away, s.away.id)
	s.away = nil
}

// deferred reports whether a message has to wait for the state of a sequence that is parked, which
// is then brought back.
func (c *Core) deferred(in stages.Message, out *stages.Outbox) bool {
	if len(c.parking.away) == 0 {
		return false
	}
	id, replaces := needsState(in)
	s := c.seqs[id]
	if s == nil || s.away == nil || s.closing != nil || s.busy() || replaces && !s.moving() {
		return false
	}
	s.waits = append(s.waits, in)
	switch {
	case c.draining:
		c.giveUpWaiting(s, stages.ErrClosed, out)
	case !s.moving():
		c.bringBack(s.away, in, out)
	}
	return true
}

// needsState returns the sequence whose state a message needs, 0 for none; replaces says that the
// message only wants another state in its place.
func needsState(in stages.Message) (id stages.SeqID, replaces bool) {
	switch m := in.(type) {
	case *stages.EvalChunk:
		return m.Seq, false
	case *stages.OpenSequence:
		return m.From, false
	case *stages.TruncateSequence:
		return m.Seq, false
	case *stages.KeepCheckpoint:
		return m.Seq, false
	case *stages.ResumeSequence:
		return m.Seq, false
	case *stages.FreezeSequence:
		return m.Seq, false
	case *stages.ResetSequence:
		return m.Seq, true
	case *stages.RestoreCheckpoint:
		return m.Seq, true
	case *stages.DraftState:
		return m.Seq, true
	}
	return 0, false
}

// bringBack asks for the memory of a parked state for which m waits, and for all that m's text is
// declared to reach, and has the state brought back when it has got it.
func (c *Core) bringBack(a *away, m stages.Message, out *stages.Outbox) {
	s := a.seq
	n, until := c.book.Count(s.Len), 0
	chunk, _ := m.(*stages.EvalChunk)
	if chunk != nil {
		until = min(max(chunk.Until, a.until, s.Len+len(chunk.Tokens)), c.cfg.MaxPositions)
	}
	need := pages.Need{Pages: max(n, c.book.Count(until)), States: 1}
	c.obtain(&ask{
		seq: s, caller: callerOf(m), enters: true, pages: need.Pages, states: 1,
		room: func() error { return c.book.Room(need) },
		take: func(out *stages.Outbox) {
			a.at, a.state = coming, c.book.Draft(s.Len)
			if until > s.Len {
				s.grant.share.Begin(until - s.Len)
				s.grant.until, s.grant.declared = until, a.until > 0
				c.promise(s, need.Pages-n)
			}
			c.copyState(&operation{away: a}, stages.CopyState{To: a.state.ID, Expose: true, Pages: a.state.Pages}, out)
		},
		refuse: func(err error, out *stages.Outbox) { c.giveUpWaiting(s, err, out) },
	}, out)
}

// nobodyWaits ends the wait for memory, and the right to more, of a sequence if nothing waits for
// its state any more.
func (c *Core) nobodyWaits(s *sequence, out *stages.Outbox) {
	if len(s.waits) > 0 || s.away == nil {
		return
	}
	if s.ask != nil {
		c.unqueue(s.ask, out)
	}
	c.endGrant(s)
}

// stateReturned ends the reading of a state. One that cannot be read is lost: its sequence is
// poisoned.
func (c *Core) stateReturned(m *stages.StateReturned, out *stages.Outbox) error {
	a := c.parking.away[m.ID]
	if a == nil || a.at != filled {
		return fmt.Errorf("sequencer: parked state %d was not being read", m.ID)
	}
	c.forgetParked(a, out)
	if m.Err != nil {
		a.lost = &stages.ParkedError{Err: m.Err}
	} else {
		c.parking.back++
	}
	c.arrive(a, out)
	return nil
}

// giveUpWaiting answers what waits for a sequence's state.
func (c *Core) giveUpWaiting(s *sequence, err error, out *stages.Outbox) {
	waits := s.waits
	s.waits = nil
	for _, m := range waits {
		c.deny(m, err, out)
	}
	c.nobodyWaits(s, out)
}

// callerOf returns who has sent a message that needs a sequence's state.
func callerOf(in stages.Message) stages.Caller {
	switch m := in.(type) {
	case *stages.EvalChunk:
		return m.Caller
	case *stages.OpenSequence:
		return m.Caller
	case *stages.TruncateSequence:
		return m.Caller
	case *stages.KeepCheckpoint:
		return m.Caller
	case *stages.ResumeSequence:
		return m.Caller
	case *stages.FreezeSequence:
		return m.Caller
	}
	return nil
}

// deny answers a message that needs a sequence's state. Nothing was changed.
func (c *Core) deny(in stages.Message, err error, out *stages.Outbox) {
	switch m := in.(type) {
	case *stages.EvalChunk:
		out.Answer(m.Caller, &stages.ChunkEvaluated{Seq: m.Seq, Pos: c.seqs[m.Seq].Len, Err: err})
	case *stages.OpenSequence:
		c.answer(m.Caller, &stages.SequenceDone{Seq: m.Seq, Kind: stages.Opened, Err: err}, out)
	case *stages.TruncateSequence:
		c.refuse(m.Caller, m.Seq, stages.Truncated, err, out)
	case *stages.KeepCheckpoint:
		c.refuse(m.Caller, m.Seq, stages.Checkpointed, err, out)
	case *stages.ResumeSequence:
		c.refuse(m.Caller, m.Seq, stages.Resumed, err, out)
	case *stages.ResetSequence:
		c.refuse(m.Caller, m.Seq, stages.WasReset, err, out)
	case *stages.RestoreCheckpoint:
		c.refuse(m.Caller, m.Seq, stages.Restored, err, out)
	case *stages.FreezeSequence:
		c.answer(m.Caller, &stages.StateReady{Err: err}, out)
	case *stages.DraftState:
		c.answer(m.Caller, &stages.StateReady{Err: err}, out)
	}
}

// standIn gives up a parked state because its sequence gets another one, or none.
func (c *Core) standIn(s *sequence, out *stages.Outbox) {
	if s.away != nil && !s.moving() {
		c.forgetParked(s.away, out)
		c.present(s)
	}
}

// forgetParked gives up what the parking store has of a state.
func (c *Core) forgetParked(a *away, out *stages.Outbox) {
	out.Parks = append(out.Parks, stages.Park{Do: stages.ParkForget, ID: a.id})
}

// closeAway closes a sequence that has waited for its state to be parked.
func (c *Core) closeAway(a *away, out *stages.Outbox) {
	if a.seq.closing != nil {
		c.close(a.seq, out)
	}
}
