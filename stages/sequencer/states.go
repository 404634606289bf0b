package sequencer

import (
	"fmt"
	"slices"

	"github.com/moeflux/moeflux-actor/stages"
)

// frozen is a state that no step changes: pages, which it shares, and the recurrent state, which
// dispatch keeps under its name.
type frozen struct {
	id    stages.StateID // 0: empty, or nothing recurrent
	pages []stages.PageID
	// [positions], below 0 where they are not known; shared with sequences, which only ever append
	// to them
	tokens []int32
	ready  bool // dispatch has made it
	gone   bool // it was given up

	draft   *sequence // that it is a draft for, or nil
	inPlace bool      // of a draft: the sequence has given its own state up for it

	// of what is kept: whose checkpoint it is; 0 if it is remembered for any text
	owner stages.SeqID
	used  uint64 // of what is kept: when it was last used, by Core.uses
}

func (f *frozen) pos() int { return len(f.tokens) }

// operation is a copy under way in dispatch.
type operation struct {
	kind   stages.SequenceOp
	seq    *sequence    // that waits for it, or nil
	of     stages.SeqID // whose checkpoint is being made
	frozen *frozen      // that is being made, or nil
	caller stages.Caller
	expose bool // the caller wants a StateReady
}

// copyState has dispatch make a state. A sequence that waits for it takes nothing else meanwhile.
func (c *Core) copyState(o *operation, m stages.CopyState, out *stages.Outbox) {
	c.lastOp++
	m.Op = c.lastOp
	c.ops[m.Op] = o
	if o.seq != nil {
		o.seq.op = o
	}
	out.Send(stages.Dispatch, &m)
}

// stateCopied ends an operation.
func (c *Core) stateCopied(m *stages.StateCopied, out *stages.Outbox) error {
	o := c.ops[m.Op]
	if o == nil {
		return fmt.Errorf("sequencer: operation %d has ended but never began", m.Op)
	}
	delete(c.ops, m.Op)
	switch {
	case o.expose:
		c.exposed(o, m, out)
	case o.frozen != nil:
		c.checkpointed(o, m.Err, out)
	default:
		c.replaced(o, m.Err, out)
	}
	return nil
}

// replaced ends the making of a sequence's state.
func (c *Core) replaced(o *operation, err error, out *stages.Outbox) {
	s := o.seq
	s.op, s.poison = nil, nil
	switch {
	case err != nil && o.kind == stages.Opened:
		c.empty(s)
		delete(c.seqs, s.id)
		out.Send(stages.Dispatch, &stages.DropState{State: s.id.State()})
	case err != nil: // its recurrent state is neither the old nor the new one
		s.poison = &stages.PoisonedError{Seq: s.id, Err: err}
	}
	c.answer(o.caller, &stages.SequenceDone{Seq: s.id, Kind: o.kind, Pos: s.len, Err: err, Poison: s.poison}, out)
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
		m.Pos, m.Poison = s.len, s.poison
	}
	c.answer(to, m, out)
}

// place makes a sequence hold the first pos positions of a text. Its recurrent state is another
// matter. pages and tokens are left alone.
func (c *Core) place(s *sequence, pages []stages.PageID, tokens []int32, pos int) {
	pages = pages[:c.pages.count(pos)]
	c.pages.hold(live, pages...)
	held := s.pages
	s.pages = slices.Clone(pages)
	c.pages.release(live, held...)
	s.tokens, s.len = tokens[:pos:pos], pos
}

// empty makes a sequence hold nothing.
func (c *Core) empty(s *sequence) { c.place(s, nil, nil, 0) }

// cut takes a sequence back to a position that needs no other recurrent state.
func (c *Core) cut(s *sequence, pos int) { c.place(s, s.pages, s.tokens, pos) }

// moved forgets what does not hold any more of a sequence that stands elsewhere than before: what
// was predicted, and checkpoints of other texts.
func (c *Core) moved(s *sequence, out *stages.Outbox) {
	c.schedule.Unexpect(uint64(s.id))
	out.Send(stages.Router, &stages.ForgetSequence{Seq: s.id})
	c.forgetOthers(s, out)
	c.settle(out)
}

// freeze returns a frozen state of what a sequence holds, by a holder of its pages, without a
// recurrent state yet.
func (c *Core) freeze(s *sequence, by holder) *frozen {
	f := &frozen{pages: slices.Clone(s.pages[:c.pages.count(s.len)]), tokens: s.tokens[:s.len:s.len]}
	c.pages.hold(by, f.pages...)
	if c.cfg.RecurrentBytes > 0 && s.len > 0 {
		c.lastFrozen--
		f.id = c.lastFrozen
	}
	return f
}

// drop gives up a frozen state.
func (c *Core) drop(f *frozen, by holder, out *stages.Outbox) {
	f.gone = true
	c.pages.release(by, f.pages...)
	f.pages = nil
	if f.id != 0 {
		out.Send(stages.Dispatch, &stages.DropState{State: f.id})
	}
}
