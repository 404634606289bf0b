package sequencer

import (
	"slices"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// awaited reports whether something that its caller has asked for waits for a sequence's state.
// Forks are asked for by others.
func (s *sequence) awaited() bool {
	return slices.ContainsFunc(s.waits, func(m stages.Message) bool { _, fork := m.(*stages.OpenSequence); return !fork })
}

// returning reports whether a parked state waits for the memory that it is to be brought back to.
func (s *sequence) returning() bool {
	return s.away != nil && !s.moving() && s.ask != nil && len(s.waits) > 0
}

// deferred reports whether a message has to wait for the state of a sequence that is parked, which
// is then brought back.
func (c *Core) deferred(in stages.Message, out *stages.Outbox) bool {
	if len(c.parking.away) == 0 {
		return false
	}
	id, replaces := needsState(in)
	s := c.seqs[id]
	if s == nil || s.away == nil || s.closing != nil || s.busy() || replaces && !s.moving() && !s.returning() {
		return false
	}
	returning := s.returning()
	s.waits = append(s.waits, in)
	switch {
	case c.draining:
		c.giveUpWaiting(s, stages.ErrClosed, out)
	case !s.moving() && !returning:
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

// giveUpWaiting answers what waits for a sequence's state.
func (c *Core) giveUpWaiting(s *sequence, err error, out *stages.Outbox) {
	waits := s.waits
	s.waits = nil
	for _, m := range waits {
		c.deny(m, err, record.Refused, out)
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
func (c *Core) deny(in stages.Message, err error, outcome record.Outcome, out *stages.Outbox) {
	switch m := in.(type) {
	case *stages.EvalChunk:
		c.noteRequest(m, 0, c.seqs[m.Seq].Len, outcome, new(stages.Cost))
		out.Answer(m.Caller, &stages.ChunkEvaluated{Seq: m.Seq, Request: m.Request, Pos: c.seqs[m.Seq].Len, Err: err})
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
