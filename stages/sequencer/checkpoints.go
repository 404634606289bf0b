package sequencer

import (
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/pages"
)

// keepCheckpoint keeps where a sequence stands, in place of what was kept of that position. Nothing
// is given up for it before it stands: until then the copy is beyond CheckpointBytes.
func (c *Core) keepCheckpoint(m *stages.KeepCheckpoint, out *stages.Outbox) {
	s, err := c.healthy(m.Seq)
	switch {
	case err != nil:
	case m.Pos != s.Len:
		err = &stages.CheckpointPosError{Seq: m.Seq, Pos: m.Pos, Len: s.Len}
	default:
		err = c.book.RoomToKeep(s.id, s.Len)
	}
	if err != nil {
		c.refuse(m.Caller, m.Seq, stages.Checkpointed, err, out)
		return
	}
	c.keep(s, s.id, m.Caller, out)
	c.cover(s)
}

// keep keeps where a sequence stands. owner is 0 for what is only remembered. The sequence need not
// wait until the device has copied its recurrent state: the device does in order what it is asked.
func (c *Core) keep(s *sequence, owner stages.SeqID, caller stages.Caller, out *stages.Outbox) {
	f := c.list(s, owner)
	if f.Ready {
		c.stands(f)
		c.answer(caller, &stages.SequenceDone{Seq: s.id, Kind: stages.Checkpointed, Pos: s.Len}, out)
		return
	}
	c.copyState(&operation{kind: stages.Checkpointed, of: s.id, kept: f, caller: caller}, stages.CopyState{From: s.id.State(), To: f.ID}, out)
}

// list adds where a sequence stands to what is kept, and drops what is remembered and has become
// useless.
func (c *Core) list(s *sequence, owner stages.SeqID) *pages.State {
	f := c.book.Keep(s.Text, owner)
	c.search.keep(f, s.scope)
	if owner == 0 {
		c.search.forgetServed(f)
	}
	return f
}

// stands retires what a checkpoint that is ready leaves without use or room.
func (c *Core) stands(f *pages.State) {
	if f.Owner != 0 {
		c.book.Stands(f, c.seqs[f.Owner].checkpoints)
	}
}

// capCheckpoints changes how many checkpoints a sequence keeps from its next one on.
func (c *Core) capCheckpoints(m *stages.CapCheckpoints, out *stages.Outbox) {
	s := c.seqs[m.Seq]
	if s == nil {
		c.refuse(m.Caller, m.Seq, stages.Capped, stages.ErrUnknownSequence, out)
		return
	}
	s.checkpoints = max(m.Max, 0)
	c.answer(m.Caller, &stages.SequenceDone{Seq: s.id, Kind: stages.Capped, Pos: s.Len, Poison: s.poison}, out)
}

// leave gives up a sequence's recurrent state, or hands it to a state that is remembered.
func (c *Core) leave(s *sequence, out *stages.Outbox) {
	if c.worthIt(s) {
		if f := c.list(s, 0); !f.Ready {
			c.copyState(&operation{kind: stages.Checkpointed, of: s.id, kept: f}, stages.CopyState{From: s.id.State(), To: f.ID, Take: true}, out)
			return
		}
	}
	c.dropState(s.id.State(), out)
}

// checkpointed ends the making of a frozen state that is kept.
func (c *Core) checkpointed(o *operation, err error, out *stages.Outbox) {
	f := o.kept
	f.Ready = true
	switch {
	case f.Gone():
	case err != nil:
		c.book.Forget(f)
	default:
		c.stands(f)
	}
	c.answer(o.caller, &stages.SequenceDone{Seq: o.of, Kind: o.kind, Pos: f.Pos(), Err: err}, out)
}

func (c *Core) forgetCheckpoint(m *stages.ForgetCheckpoint, out *stages.Outbox) {
	s := c.seqs[m.Seq]
	if s == nil {
		c.refuse(m.Caller, m.Seq, stages.Forgotten, stages.ErrUnknownSequence, out)
		return
	}
	c.book.ForgetIf(func(f *pages.State) bool { return f.Owner == s.id && f.Pos() == m.Pos })
	c.answer(m.Caller, &stages.SequenceDone{Seq: s.id, Kind: stages.Forgotten, Pos: s.Len, Poison: s.poison}, out)
}
