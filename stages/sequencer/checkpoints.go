package sequencer

import (
	"slices"

	"github.com/moeflux/moeflux-actor/stages"
)

// keepCheckpoint keeps where a sequence stands, in place of what was kept of that position. Nothing
// is given up for it before it stands: until then the copy is beyond CheckpointBytes.
func (c *Core) keepCheckpoint(m *stages.KeepCheckpoint, out *stages.Outbox) {
	s, err := c.healthy(m.Seq)
	switch {
	case err != nil:
	case m.Pos != s.len:
		err = &stages.CheckpointPosError{Seq: m.Seq, Pos: m.Pos, Len: s.len}
	default:
		err = c.roomForCheckpoint(s)
	}
	if err != nil {
		c.refuse(m.Caller, m.Seq, stages.Checkpointed, err, out)
		return
	}
	c.keep(s, s.id, m.Caller, out)
}

// roomForCheckpoint reports whether a checkpoint fits in once what it takes the place of, and all
// that is not protected, is gone.
func (c *Core) roomForCheckpoint(s *sequence) error {
	need := c.recurrentBytes(s.len)
	if c.keptBytes()+need <= c.cfg.CheckpointBytes {
		return nil
	}
	t := c.tally()
	used := c.keptBytes()
	for _, f := range c.kept {
		if f.owner == s.id && f.pos() == s.len {
			t.change(f, -1)
		}
	}
	for _, f := range c.victims() {
		if f.owner != s.id || f.pos() != s.len {
			t.change(f, -1)
		}
	}
	if c.fits(need)(t) {
		return nil
	}
	return &stages.CheckpointMemoryError{Need: need, Used: used, Max: c.cfg.CheckpointBytes}
}

// keep keeps where a sequence stands. owner is 0 for what is only remembered. The sequence need not
// wait until the device has copied its recurrent state: the device does in order what it is asked.
func (c *Core) keep(s *sequence, owner stages.SeqID, caller stages.Caller, out *stages.Outbox) {
	f := c.list(s, owner, out)
	if f.ready {
		c.stands(f, out)
		c.answer(caller, &stages.SequenceDone{Seq: s.id, Kind: stages.Checkpointed, Pos: s.len}, out)
		return
	}
	c.copyState(&operation{kind: stages.Checkpointed, of: s.id, frozen: f, caller: caller}, stages.CopyState{From: s.id.State(), To: f.id}, out)
}

// stands retires what a checkpoint that is ready takes the place of, what is beyond its sequence's
// cap, and what no longer fits.
func (c *Core) stands(f *frozen, out *stages.Outbox) {
	if f.owner == 0 {
		return
	}
	for _, g := range slices.Clone(c.kept) {
		if g == f {
			break
		}
		if g.owner == f.owner && g.pos() == f.pos() {
			c.forget(g, out)
		}
	}
	over := -c.seqs[f.owner].checkpoints
	for _, g := range c.kept {
		if g.owner == f.owner && g.ready {
			over++
		}
	}
	for _, g := range c.victims() {
		if over > 0 && g.owner == f.owner {
			c.forget(g, out)
			over--
		}
	}
	c.settle(out)
}

// capCheckpoints changes how many checkpoints a sequence keeps from its next one on.
func (c *Core) capCheckpoints(m *stages.CapCheckpoints, out *stages.Outbox) {
	s := c.seqs[m.Seq]
	if s == nil {
		c.refuse(m.Caller, m.Seq, stages.Capped, stages.ErrUnknownSequence, out)
		return
	}
	s.checkpoints = max(m.Max, 0)
	c.answer(m.Caller, &stages.SequenceDone{Seq: s.id, Kind: stages.Capped, Pos: s.len, Poison: s.poison}, out)
}

// list adds where a sequence stands to what is kept, and drops what is remembered and has become
// useless. The new state is ready if there is no recurrent state to copy.
func (c *Core) list(s *sequence, owner stages.SeqID, out *stages.Outbox) *frozen {
	f := c.freeze(s, kept)
	for i := len(c.kept) - 1; owner == 0 && i >= 0; i-- {
		if old := c.kept[i]; old.owner == 0 && c.serves(f.tokens, old.tokens) {
			c.forget(old, out)
		}
	}
	f.owner, f.ready = owner, f.id == 0
	c.use(f)
	c.kept = append(c.kept, f)
	if f.id != 0 {
		c.recurrent++
	}
	if owner == 0 {
		c.remembered++
	}
	return f
}

// leave gives up a sequence's recurrent state, or hands it to a state that is remembered.
func (c *Core) leave(s *sequence, out *stages.Outbox) {
	if c.worthIt(s, out) {
		if f := c.list(s, 0, out); !f.ready {
			c.copyState(&operation{kind: stages.Checkpointed, of: s.id, frozen: f}, stages.CopyState{From: s.id.State(), To: f.id, Take: true}, out)
			return
		}
	}
	out.Send(stages.Dispatch, &stages.DropState{State: s.id.State()})
}

// use notes that a frozen state was used.
func (c *Core) use(f *frozen) {
	c.uses++
	f.used = c.uses
}

// checkpointed ends the making of a frozen state that is kept.
func (c *Core) checkpointed(o *operation, err error, out *stages.Outbox) {
	f := o.frozen
	f.ready = true
	switch {
	case f.gone:
	case err != nil:
		c.forget(f, out)
	default:
		c.stands(f, out)
	}
	c.answer(o.caller, &stages.SequenceDone{Seq: o.of, Kind: o.kind, Pos: f.pos(), Err: err}, out)
}

// checkpoint returns a sequence's newest checkpoint at a position that is ready, or nil.
func (c *Core) checkpoint(id stages.SeqID, pos int) (newest *frozen) {
	for _, f := range c.kept {
		if f.owner == id && f.pos() == pos && f.ready {
			newest = f
		}
	}
	return newest
}

// beingReplaced reports whether another checkpoint is being made in the place of one.
func (c *Core) beingReplaced(f *frozen) bool {
	return slices.ContainsFunc(c.kept, func(g *frozen) bool { return g.owner == f.owner && g.pos() == f.pos() && !g.ready })
}

// forget gives up a frozen state that is kept.
func (c *Core) forget(f *frozen, out *stages.Outbox) {
	c.kept = slices.DeleteFunc(c.kept, func(g *frozen) bool { return g == f })
	if f.id != 0 {
		c.recurrent--
	}
	c.drop(f, kept, out)
}

// forgetAll gives up all checkpoints of a sequence, or with 0 all that is remembered.
func (c *Core) forgetAll(id stages.SeqID, out *stages.Outbox) {
	for i := len(c.kept) - 1; i >= 0; i-- {
		if c.kept[i].owner == id {
			c.forget(c.kept[i], out)
		}
	}
}

// forgetOthers gives up the checkpoints of a sequence that no longer match the beginning of its
// text.
func (c *Core) forgetOthers(s *sequence, out *stages.Outbox) {
	for i := len(c.kept) - 1; i >= 0; i-- {
		if f := c.kept[i]; f.owner == s.id && common(f.tokens, s.tokens) < f.pos() {
			c.forget(f, out)
		}
	}
}

func (c *Core) forgetCheckpoint(m *stages.ForgetCheckpoint, out *stages.Outbox) {
	s := c.seqs[m.Seq]
	if s == nil {
		c.refuse(m.Caller, m.Seq, stages.Forgotten, stages.ErrUnknownSequence, out)
		return
	}
	for _, f := range slices.Clone(c.kept) {
		if f.owner == s.id && f.pos() == m.Pos {
			c.forget(f, out)
		}
	}
	c.answer(m.Caller, &stages.SequenceDone{Seq: s.id, Kind: stages.Forgotten, Pos: s.len, Poison: s.poison}, out)
}

// common returns the length of the common prefix of two texts.
func common(a, b []int32) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
