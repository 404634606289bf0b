package sequencer

import (
	"cmp"
	"errors"
	"fmt"

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
	until  int   // that the text was declared to reach, or 0
	began  int64 // when it began to leave, or to come, on the engine's clock
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
	a := &away{until: until, began: c.accounts.now, id: c.parking.last, seq: s, state: c.book.Detach(&s.Text), caller: caller}
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
			a.seq.stays, a.seq.tried = a.seq.Len, c.asks.count
		}
		c.left(a, m.Err, out)
		return nil
	}
	c.parking.out++
	c.changed(&c.stints.out, a.seq, a.began)
	c.book.Release(a.state)
	a.at, a.state = parked, nil
	c.answer(a.caller, &stages.SequenceDone{Seq: a.seq.id, Kind: stages.Parked, Pos: a.seq.Len}, out)
	a.caller = nil
	c.closeAway(a, out)
	c.noteMoved(a, a.seq.waits)
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
	c.noteMoved(a, waits)
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
	request := uint64(0)
	if chunk != nil {
		request = chunk.Request
	}
	c.obtain(&ask{
		seq: s, caller: callerOf(m), request: request, enters: true, pages: need.Pages, states: 1,
		room: func() error { return c.book.Room(need) },
		take: func(out *stages.Outbox) {
			a.at, a.state, a.began = coming, c.book.Draft(s.Len), c.accounts.now
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
		c.keepWindow(a.seq)
		c.changed(&c.stints.back, a.seq, a.began)
	}
	c.arrive(a, out)
	return nil
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
