package sequencer

import (
	"slices"

	"github.com/moeflux/moeflux-actor/stages"
)

// keepCheckpoint keeps where a sequence stands, in place of what was kept of that position.
func (c *Core) keepCheckpoint(m *stages.KeepCheckpoint, out *stages.Outbox) {
	s, err := c.healthy(m.Seq)
	switch {
	case err != nil:
	case m.Pos != s.len:
		err = &stages.CheckpointPosError{Seq: m.Seq, Pos: m.Pos, Len: s.len}
	case !c.fit(c.recurrentBytes(s.len), out):
		err = &stages.CheckpointMemoryError{Need: c.recurrentBytes(s.len), Used: c.keptBytes(), Max: c.cfg.CheckpointBytes}
	}
	if err != nil {
		c.refuse(m.Caller, m.Seq, stages.Checkpointed, err, out)
		return
	}
	if old := c.checkpoint(s.id, m.Pos); old != nil {
		c.forget(old, out)
	}
	c.keep(s, s.id, m.Caller, out)
	for c.countCheckpoints(s.id) > c.cfg.Checkpoints {
		old := slices.IndexFunc(c.kept, func(f *frozen) bool { return f.owner == s.id && !c.protected(f) })
		if old < 0 {
			break
		}
		c.forget(c.kept[old], out)
	}
}

// keep keeps where a sequence stands. owner is 0 for what is only remembered. The sequence need not
// wait until the device has copied its recurrent state: whatever it does next comes behind.
func (c *Core) keep(s *sequence, owner stages.SeqID, caller stages.Caller, out *stages.Outbox) {
	f := c.list(s, owner, out)
	if f.ready {
		c.answer(caller, &stages.SequenceDone{Seq: s.id, Kind: stages.Checkpointed, Pos: s.len}, out)
		return
	}
	c.copyState(&operation{kind: stages.Checkpointed, of: s.id, frozen: f, caller: caller}, stages.CopyState{From: s.id.State(), To: f.id}, out)
}

// list adds where a sequence stands to what is kept; what is remembered and serves nobody any more
// goes. It is ready if there is no recurrent state to be copied.
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

// leave gives up a sequence's recurrent state, or makes it that of a state that is remembered.
func (c *Core) leave(s *sequence, out *stages.Outbox) {
	if c.worthIt(s, out) {
		if f := c.list(s, 0, out); !f.ready {
			c.copyState(&operation{kind: stages.Checkpointed, of: s.id, frozen: f}, stages.CopyState{From: s.id.State(), To: f.id, Take: true}, out)
			return
		}
	}
	out.Send(stages.Dispatch, &stages.DropState{State: s.id.State()})
}

// use notes that a frozen state was of use.
func (c *Core) use(f *frozen) {
	c.uses++
	f.used = c.uses
}

// checkpointed ends the making of a frozen state that is kept.
func (c *Core) checkpointed(o *operation, err error, out *stages.Outbox) {
	o.frozen.ready = true
	if err != nil && !o.frozen.gone {
		c.forget(o.frozen, out)
	}
	c.answer(o.caller, &stages.SequenceDone{Seq: o.of, Kind: o.kind, Pos: o.frozen.pos(), Err: err}, out)
}

// checkpoint returns a sequence's checkpoint at a position, or nil.
func (c *Core) checkpoint(id stages.SeqID, pos int) *frozen {
	for _, f := range c.kept {
		if f.owner == id && f.pos() == pos {
			return f
		}
	}
	return nil
}

func (c *Core) countCheckpoints(id stages.SeqID) (n int) {
	for _, f := range c.kept {
		if f.owner == id {
			n++
		}
	}
	return n
}

// protected reports whether a checkpoint is at position 0, or its sequence's newest.
func (c *Core) protected(f *frozen) bool {
	newest := f
	for _, g := range c.kept {
		if g.owner == f.owner {
			newest = g
		}
	}
	return f.pos() == 0 || newest == f
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

// forgetOthers gives up the checkpoints of a sequence that are no beginning of what it holds now.
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
	if f := c.checkpoint(s.id, m.Pos); f != nil {
		c.forget(f, out)
	}
	c.answer(m.Caller, &stages.SequenceDone{Seq: s.id, Kind: stages.Forgotten, Pos: s.len, Poison: s.poison}, out)
}

// recurrentBytes returns what a frozen state of so many positions takes beside pages.
func (c *Core) recurrentBytes(positions int) int64 {
	if positions == 0 {
		return 0
	}
	return c.cfg.RecurrentBytes
}

// keptBytes returns what all that is kept takes: recurrent states, and pages that nobody else
// holds.
func (c *Core) keptBytes() int64 {
	return int64(c.recurrent)*c.cfg.RecurrentBytes + int64(c.pages.only)*c.cfg.PageBytes
}

// fit makes what is kept, and so many bytes more, fit into its budget: first what is remembered
// goes, what was used longest ago before the rest, then checkpoints that are not protected, the
// oldest first. It reports false if that does not suffice.
func (c *Core) fit(need int64, out *stages.Outbox) bool {
	for c.keptBytes()+need > c.cfg.CheckpointBytes {
		f := c.oldestRemembered()
		if f == nil {
			if i := slices.IndexFunc(c.kept, func(f *frozen) bool { return !c.protected(f) }); i >= 0 {
				f = c.kept[i]
			}
		}
		if f == nil {
			return false
		}
		c.evict(f, out)
	}
	return true
}

// room makes so many pages free, at the expense of what is remembered if need be.
func (c *Core) room(pages int, out *stages.Outbox) error {
	for pages > c.pages.max-c.pages.used() {
		f := c.oldestRemembered()
		if f == nil {
			return &stages.StateMemoryError{Pages: pages, Used: c.pages.used(), Max: c.pages.max}
		}
		c.evict(f, out)
	}
	return nil
}

func (c *Core) evict(f *frozen, out *stages.Outbox) {
	c.evicted++
	c.forget(f, out)
}

func (c *Core) oldestRemembered() (oldest *frozen) {
	for _, f := range c.kept {
		if f.owner == 0 && (oldest == nil || f.used < oldest.used) {
			oldest = f
		}
	}
	return oldest
}

// common returns how many tokens two texts have in common at their beginnings.
func common(a, b []int32) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
