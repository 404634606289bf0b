package sequencer

import (
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/pages"
)

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
	pos := min(max(m.Pos, 0), s.Len)
	whole := s.poison == nil && c.reaches(s, pos)
	switch nearest, at := c.search.nearest(s, pos); {
	case whole && pos == s.Len:
		c.endGrant(s)
		c.answer(m.Caller, &stages.SequenceDone{Seq: s.id, Kind: stages.Truncated, Pos: s.Len}, out)
	case whole:
		c.cut(s, pos)
		c.moved(s, out)
		c.answer(m.Caller, &stages.SequenceDone{Seq: s.id, Kind: stages.Truncated, Pos: s.Len}, out)
	case !m.Nearest && pos > 0:
		c.refuse(m.Caller, m.Seq, stages.Truncated, &stages.CannotTruncateLinear{Pos: pos, PosMax: s.Len, Nearest: at}, out)
	case nearest != nil:
		c.restore(s, nearest, at, &operation{kind: stages.Truncated, caller: m.Caller}, m, out)
	default:
		c.clear(s, stages.Truncated, m.Caller, out)
	}
}

func (c *Core) restoreCheckpoint(m *stages.RestoreCheckpoint, out *stages.Outbox) {
	s, err := c.idle(m.Seq)
	var f *pages.State
	if err == nil {
		if f = c.book.At(s.id, m.Pos); f == nil {
			err = &stages.NoCheckpointError{Seq: m.Seq, Pos: m.Pos}
		}
	}
	if err != nil {
		c.refuse(m.Caller, m.Seq, stages.Restored, err, out)
		return
	}
	c.restore(s, f, f.Pos(), &operation{kind: stages.Restored, caller: m.Caller}, m, out)
}

// restore makes a sequence hold the first positions of a frozen state; all of them if it has a
// recurrent state. That was asked for by m. A sequence that has no memory asks for some first, and
// when it has got it, m is handled again: what there was may be gone by then.
func (c *Core) restore(s *sequence, f *pages.State, pos int, o *operation, m stages.Message, out *stages.Outbox) {
	switch {
	case pos == 0:
		c.clear(s, o.kind, o.caller, out)
	case s.grant.holds:
		c.book.Use(f)
		c.follow(s, f.Text(), pos, f.ID, o, out)
	default:
		c.obtain(&ask{
			seq: s, caller: o.caller, enters: true, pages: c.book.Count(pos), states: 1,
			room: func() error { return c.book.Room(pages.Need{States: 1, From: f}) },
			take: func(out *stages.Outbox) {
				c.enter(s)
				_ = c.handle(m, out) // which fails only for what is no request
				switch {
				case s.op != nil:
				case s.away != nil:
					c.exit(s)
				default:
					c.vacate(s, out)
				}
			},
			refuse: func(err error, out *stages.Outbox) { c.refuse(o.caller, s.id, o.kind, err, out) },
		}, out)
	}
}

// follow makes a sequence hold the first positions of a text, given its recurrent state.
func (c *Core) follow(s *sequence, text pages.Text, pos int, from stages.StateID, o *operation, out *stages.Outbox) {
	o.seq = s
	c.standIn(s, out)
	c.place(s, text, pos)
	c.copyState(o, stages.CopyState{From: from, To: s.id.State()}, out)
	c.moved(s, out) // after the copy, which may be of what is forgotten
}

// clear empties a sequence, which gives all its memory back, and answers that it is done.
func (c *Core) clear(s *sequence, kind stages.SequenceOp, caller stages.Caller, out *stages.Outbox) {
	c.vacate(s, out)
	s.poison = nil
	c.moved(s, out)
	c.answer(caller, &stages.SequenceDone{Seq: s.id, Kind: kind}, out)
}

func (c *Core) resetSequence(m *stages.ResetSequence, out *stages.Outbox) {
	s, err := c.idle(m.Seq)
	if err != nil {
		c.refuse(m.Caller, m.Seq, stages.WasReset, err, out)
		return
	}
	c.book.ForgetOf(s.id)
	c.clear(s, stages.WasReset, m.Caller, out)
}

func (c *Core) describeSequence(m *stages.DescribeSequence, out *stages.Outbox) {
	s := c.seqs[m.Seq]
	if s == nil {
		c.refuse(m.Caller, m.Seq, stages.Described, stages.ErrUnknownSequence, out)
		return
	}
	done := &stages.SequenceDone{Seq: s.id, Kind: stages.Described, Pos: s.Len, Tokens: s.Tokens[:s.Len:s.Len], Busy: s.busy(), Account: s.account, Poison: s.poison}
	for _, f := range c.book.Kept() {
		if f.Owner == s.id && f.Ready && c.book.At(s.id, f.Pos()) == f {
			done.Checkpoints = append(done.Checkpoints, f.Pos())
		}
	}
	c.answer(m.Caller, done, out)
}
