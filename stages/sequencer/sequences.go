package sequencer

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/pages"
	"github.com/moeflux/moeflux-actor/stages/prefix"
)

// sequence is what the stage knows of one sequence.
type sequence struct {
	id stages.SeqID
	pages.Text
	known       *prefix.Holder[known] // its tokens, where search finds them
	poison      error                 // why it is unusable, or nil
	checkpoints int                   // most that it keeps, those that are protected included
	req         *request
	remembers   bool                  // its caller has given texts to be remembered
	op          *operation            // that dispatch is at, or nil
	draft       *exchanged            // that is to be filled and to take its state's place, or nil
	closing     *stages.CloseSequence // wants to be closed once req or op has ended
}

// openSequence makes a sequence, which is busy until dispatch has its state.
func (c *Core) openSequence(m *stages.OpenSequence, out *stages.Outbox) {
	var err error
	from := new(sequence)
	switch {
	case c.draining:
		err = stages.ErrClosed
	case c.seqs[m.Seq] != nil:
		err = fmt.Errorf("sequence %d is already open", m.Seq)
	case m.From != 0:
		from, err = c.healthy(m.From)
	}
	if err == nil {
		err = c.book.Room(pages.Need{States: 1})
	}
	if err != nil {
		c.answer(m.Caller, &stages.SequenceDone{Seq: m.Seq, Kind: stages.Opened, Err: err}, out)
		return
	}
	s := &sequence{id: m.Seq, checkpoints: c.cfg.Checkpoints}
	c.seqs[m.Seq] = s
	c.search.add(s)
	c.book.AddStates(1)
	c.place(s, from.Text, from.Len)
	o := &operation{kind: stages.Opened, seq: s, caller: m.Caller}
	c.copyState(o, stages.CopyState{From: from.id.State(), To: s.id.State()}, out)
}

// busy reports whether something is being done to the sequence.
func (s *sequence) busy() bool { return s.req != nil || s.op != nil || s.draft != nil }

// idle returns the sequence if nothing is being done to it.
func (c *Core) idle(id stages.SeqID) (*sequence, error) {
	s := c.seqs[id]
	switch {
	case s == nil:
		return nil, stages.ErrUnknownSequence
	case s.closing != nil:
		return nil, stages.ErrClosed
	case s.busy():
		return nil, stages.ErrBusy
	}
	return s, nil
}

// healthy returns a sequence that nothing is being done to and that a step has not left in pieces.
func (c *Core) healthy(id stages.SeqID) (*sequence, error) {
	s, err := c.idle(id)
	if err == nil {
		err = s.poison
	}
	return s, err
}

func (c *Core) closeSequence(m *stages.CloseSequence, out *stages.Outbox) {
	s := c.seqs[m.Seq]
	if s == nil || s.closing != nil && !m.Now {
		c.answer(m.Caller, &stages.SequenceDone{Seq: m.Seq, Kind: stages.Closed, Err: stages.ErrUnknownSequence}, out)
		return
	}
	if s.closing == nil {
		s.closing = m
		if s.req != nil {
			c.cancel(s.req, stages.ErrClosed, out)
		} else if s.op == nil {
			c.close(s, out)
		}
	} else { // the one before is answered now, and this one with it
		c.closed(s, out)
		s.closing = m
	}
	if m.Now && c.seqs[m.Seq] == s {
		if r := s.req; r != nil && !r.told {
			c.abandon(r, out)
		}
		c.closed(s, out)
	}
}

// closed answers who closes a sequence, once.
func (c *Core) closed(s *sequence, out *stages.Outbox) {
	c.answer(s.closing.Caller, &stages.SequenceDone{Seq: s.id, Kind: stages.Closed}, out)
	s.closing = &stages.CloseSequence{Seq: s.id}
}

// close gives up a sequence to which nothing is being done. What it leaves to dispatch needs no
// answer: dispatch handles it before whatever comes next.
func (c *Core) close(s *sequence, out *stages.Outbox) {
	c.schedule.Unexpect(uint64(s.id))
	if s.draft != nil { // its caller will find the sequence gone
		c.endDraft(s.draft)
	}
	out.Send(stages.Router, &stages.ForgetSequence{Seq: s.id})
	c.leave(s, out)
	c.book.ForgetOf(s.id)
	c.remove(s)
	c.book.Settle()
	c.closed(s, out)
}

// remove takes a sequence out of the books.
func (c *Core) remove(s *sequence) {
	c.empty(s)
	c.book.AddStates(-1)
	c.search.remove(s)
	delete(c.seqs, s.id)
}
