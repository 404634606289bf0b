package sequencer

import "github.com/moeflux/moeflux-actor/stages"

// truncateSequence takes a sequence back to a position, or, if it may, to the nearest one that can
// be reached.
func (c *Core) truncateSequence(m *stages.TruncateSequence, out *stages.Outbox) {
	s, err := c.idle(m.Seq)
	if err == nil && !m.Nearest {
		err = s.poison
	}
	if err != nil {
		c.refuse(m.Caller, m.Seq, stages.Truncated, err, out)
		return
	}
	pos := min(max(m.Pos, 0), s.len)
	whole := s.poison == nil && (pos == s.len || c.cfg.RecurrentBytes == 0)
	switch nearest, at := c.nearest(s, pos); {
	case whole && pos == s.len:
		c.answer(m.Caller, &stages.SequenceDone{Seq: s.id, Kind: stages.Truncated, Pos: s.len}, out)
	case whole:
		c.cut(s, pos)
		c.moved(s, out)
		c.answer(m.Caller, &stages.SequenceDone{Seq: s.id, Kind: stages.Truncated, Pos: s.len}, out)
	case !m.Nearest && pos > 0:
		c.refuse(m.Caller, m.Seq, stages.Truncated, &stages.CannotTruncateLinear{Pos: pos, PosMax: s.len, Nearest: at}, out)
	case nearest != nil:
		c.restore(s, nearest, at, &operation{kind: stages.Truncated, caller: m.Caller}, out)
	default:
		c.clear(s, &operation{kind: stages.Truncated, caller: m.Caller}, out)
	}
}

// nearest returns the state that has the most of a sequence's text up to a position, and how much:
// one of its own checkpoints, or a remembered one. It returns nil and 0 if there is none.
func (c *Core) nearest(s *sequence, pos int) (best *frozen, at int) {
	for _, f := range c.kept {
		if f.ready && (f.owner == s.id || f.owner == 0) {
			if n := c.usable(f.tokens, s.tokens[:s.len], pos); n > at {
				best, at = f, n
			}
		}
	}
	return best, at
}

func (c *Core) restoreCheckpoint(m *stages.RestoreCheckpoint, out *stages.Outbox) {
	s, err := c.idle(m.Seq)
	var f *frozen
	if err == nil {
		if f = c.checkpoint(s.id, m.Pos); f == nil || !f.ready {
			err = &stages.NoCheckpointError{Seq: m.Seq, Pos: m.Pos}
		}
	}
	if err != nil {
		c.refuse(m.Caller, m.Seq, stages.Restored, err, out)
		return
	}
	c.restore(s, f, f.pos(), &operation{kind: stages.Restored, caller: m.Caller}, out)
}

// restore makes a sequence hold the first positions of a frozen state; all of them if it has a
// recurrent state.
func (c *Core) restore(s *sequence, f *frozen, pos int, o *operation, out *stages.Outbox) {
	c.use(f)
	c.follow(s, f.pages, f.tokens[:pos], f.id, o, out)
}

// follow makes a sequence hold a text, given its pages and its recurrent state.
func (c *Core) follow(s *sequence, pages []stages.PageID, tokens []int32, from stages.StateID, o *operation, out *stages.Outbox) {
	o.seq = s
	c.place(s, pages, tokens, len(tokens))
	c.copyState(o, stages.CopyState{From: from, To: s.id.State()}, out)
	c.moved(s, out) // after the copy, which may be of what is forgotten
}

// clear empties a sequence.
func (c *Core) clear(s *sequence, o *operation, out *stages.Outbox) { c.follow(s, nil, nil, 0, o, out) }

func (c *Core) resetSequence(m *stages.ResetSequence, out *stages.Outbox) {
	s, err := c.idle(m.Seq)
	if err != nil {
		c.refuse(m.Caller, m.Seq, stages.WasReset, err, out)
		return
	}
	c.forgetAll(s.id, out)
	c.clear(s, &operation{kind: stages.WasReset, caller: m.Caller}, out)
}

func (c *Core) describeSequence(m *stages.DescribeSequence, out *stages.Outbox) {
	s := c.seqs[m.Seq]
	if s == nil {
		c.refuse(m.Caller, m.Seq, stages.Described, stages.ErrUnknownSequence, out)
		return
	}
	done := &stages.SequenceDone{Seq: s.id, Kind: stages.Described, Pos: s.len, Tokens: s.tokens[:s.len:s.len], Busy: s.busy(), Poison: s.poison}
	for _, f := range c.kept {
		if f.owner == s.id && f.ready && c.checkpoint(s.id, f.pos()) == f {
			done.Checkpoints = append(done.Checkpoints, f.pos())
		}
	}
	c.answer(m.Caller, done, out)
}
