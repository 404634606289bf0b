package sequencer

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/pages"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// operation is a copy under way in dispatch.
type operation struct {
	kind   stages.SequenceOp
	seq    *sequence    // that waits for it, or nil
	of     stages.SeqID // whose state is being kept
	kept   *pages.State // that is being made, or nil
	expose *exchanged   // likewise: its caller wants a StateReady
	away   *away        // whose way to the parking store or back it is part of, or nil
	req    *request     // a chunk that goes on when its sequence has got its first state
	caller stages.Caller
}

// operations are those under way.
type operations struct {
	under map[uint64]*operation
	last  uint64
}

func (l *operations) add(o *operation) uint64 {
	l.last++
	l.under[l.last] = o
	return l.last
}

// copyState has dispatch make a state. A sequence that waits for it takes nothing else meanwhile.
func (c *Core) copyState(o *operation, m stages.CopyState, out *stages.Outbox) {
	m.Op = c.ops.add(o)
	if o.seq != nil {
		o.seq.op = o
	}
	c.dropGone(out) // in the order in which the books have it
	out.Send(stages.Dispatch, &m)
}

// stateCopied ends an operation.
func (c *Core) stateCopied(m *stages.StateCopied, out *stages.Outbox) error {
	o := c.ops.under[m.Op]
	if o == nil {
		return fmt.Errorf("sequencer: operation %d has ended but never began", m.Op)
	}
	delete(c.ops.under, m.Op)
	switch {
	case o.expose != nil:
		c.exposed(o, m, out)
	case o.away != nil:
		return c.awayCopied(o.away, m, out)
	case o.kept != nil:
		c.checkpointed(o, m.Err, out)
	case o.req != nil:
		c.entered(o, m.Err, out)
	default:
		c.replaced(o, m.Err, out)
	}
	return nil
}

// entered ends the making of the first state of a sequence, for which a chunk waits.
func (c *Core) entered(o *operation, err error, out *stages.Outbox) {
	s, r := o.seq, o.req
	s.op = nil
	c.notes.wait(record.Wait{Request: r.msg.Request, BeganNS: r.ready, Layer: -1, Wave: -1, Reason: record.StateReady})
	switch {
	case err != nil:
		c.finish(r, err, out)
		if c.seqs[s.id] == s {
			c.vacate(s, out)
		}
	case r.cancel != nil:
		c.finish(r, r.cancel, out)
	default:
		c.makeReady(r)
	}
}

// replaced ends the making of a sequence's state.
func (c *Core) replaced(o *operation, err error, out *stages.Outbox) {
	s := o.seq
	s.op, s.poison = nil, nil
	switch {
	case err != nil && o.kind == stages.Opened:
		c.remove(s)
		c.dropState(s.id.State(), out)
	case err != nil: // its recurrent state is neither the old nor the new one
		c.endGrant(s)
		s.poison = &stages.PoisonedError{Seq: s.id, Err: err}
	}
	c.answer(o.caller, &stages.SequenceDone{Seq: s.id, Kind: o.kind, Pos: s.Len, Err: err, Poison: s.poison}, out)
	if s.closing == nil {
		return
	}
	if c.seqs[s.id] != nil {
		c.close(s, out)
	} else {
		c.closed(s, out)
	}
}

// answer tells a caller, if there is one.
func (c *Core) answer(to stages.Caller, m stages.Message, out *stages.Outbox) {
	if to != nil {
		out.Answer(to, m)
	}
}

// refuse answers what cannot be done. Nothing was changed.
func (c *Core) refuse(to stages.Caller, seq stages.SeqID, kind stages.SequenceOp, err error, out *stages.Outbox) {
	m := &stages.SequenceDone{Seq: seq, Kind: kind, Err: err}
	if s := c.seqs[seq]; s != nil {
		m.Pos, m.Poison = s.Len, s.poison
	}
	c.answer(to, m, out)
}

// moved forgets what does not hold any more of a sequence that stands elsewhere than before: what
// was predicted, and checkpoints of other texts.
func (c *Core) moved(s *sequence, out *stages.Outbox) {
	c.schedule.Unexpect(uint64(s.id))
	out.Send(stages.Router, &stages.ForgetSequence{Seq: s.id})
	c.search.forgetOthers(s)
	c.book.Settle()
}

// empty makes a sequence hold nothing.
func (c *Core) empty(s *sequence) { c.place(s, pages.Text{}, 0) }

// cut takes a sequence back to a position that needs no other recurrent state.
func (c *Core) cut(s *sequence, pos int) {
	first := s.first
	c.place(s, s.Text, pos)
	s.first = first // what was there before is still there
}

// place makes a sequence hold the first positions of a text.
func (c *Core) place(s *sequence, text pages.Text, pos int) {
	c.endGrant(s)
	c.book.Place(&s.Text, text, pos)
	c.search.placed(s)
	c.keepWindow(s)
}

// dropState has dispatch give up a state.
func (c *Core) dropState(id stages.StateID, out *stages.Outbox) {
	c.dropGone(out)
	out.Send(stages.Dispatch, &stages.DropState{State: id})
}

// dropGone has dispatch give up the states that the books have given up.
func (c *Core) dropGone(out *stages.Outbox) {
	for _, id := range c.book.Gone() {
		out.Send(stages.Dispatch, &stages.DropState{State: id})
	}
}
