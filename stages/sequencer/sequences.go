package sequencer

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/pages"
	"github.com/moeflux/moeflux-actor/stages/prefix"
)

// sequence is what the stage knows of one sequence.
type sequence struct {
	id    stages.SeqID
	scope string // whose texts it may begin like
	pages.Text
	known       *prefix.Holder[known] // its tokens, where search finds them
	poison      error                 // why it is unusable, or nil
	first       int                   // position, of those before Len, that layers with a window keep
	checkpoints int                   // most that it keeps, those that are protected included
	req         *request
	account     stages.Account // of all its requests that are over
	remembers   bool           // its caller has given texts to be remembered
	op          *operation     // that dispatch is at, or nil
	draft       *exchanged     // that is to be filled and to take its state's place, or nil
	claim
	closing *stages.CloseSequence // wants to be closed once req or op has ended
	absence
}

// claim is a sequence's part in the memory for states.
type claim struct {
	grant  grant // its memory
	ask    *ask  // that waits for memory, or nil
	copies int   // asks that wait for memory for a copy of it
	since  int64 // when it got its memory, on the engine's clock
	used   int64 // when its last chunk ended since then, or since
}

// absence is what there is to know of a sequence whose state may be parked.
type absence struct {
	away  *away            // its state is not in memory, or nil
	waits []stages.Message // for that state, in order of arrival
	stays int              // the length at which its state was not parked for lack of room, or 0
	tried int64            // how many asks there had been then
}

// openSequence makes a sequence. An empty one has no memory before its first chunk; one that is
// like another waits for its state, and both are busy until then.
func (c *Core) openSequence(m *stages.OpenSequence, out *stages.Outbox) {
	var err error
	from := new(sequence)
	switch {
	case c.draining:
		err = stages.ErrClosed
	case c.seqs[m.Seq] != nil:
		err = fmt.Errorf("sequence %d %w", m.Seq, stages.ErrOpen)
	case m.From != 0:
		from, err = c.healthy(m.From)
	}
	if err != nil {
		c.answer(m.Caller, &stages.SequenceDone{Seq: m.Seq, Kind: stages.Opened, Err: err}, out)
		return
	}
	s := &sequence{id: m.Seq, scope: m.Scope, checkpoints: c.cfg.Checkpoints}
	if m.From != 0 {
		s.scope = from.scope
	}
	s.grant.share = c.asks.queue.Join(m.Class.Rank(), m.Key, m.Weight)
	c.seqs[m.Seq] = s
	c.search.add(s)
	if from.Len == 0 {
		c.fork(s, from, m.Caller, out)
		return
	}
	c.obtain(c.askToFork(s, from, m.Caller), out)
}

// fork makes a new sequence stand where another does. There is room.
func (c *Core) fork(s, from *sequence, caller stages.Caller, out *stages.Outbox) {
	if from.Len == 0 {
		c.answer(caller, &stages.SequenceDone{Seq: s.id, Kind: stages.Opened}, out)
		return
	}
	c.enter(s)
	c.place(s, from.Text, from.Len)
	c.cover(from)
	o := &operation{kind: stages.Opened, seq: s, caller: caller}
	c.copyState(o, stages.CopyState{From: from.id.State(), To: s.id.State()}, out)
}

// askToFork returns what a sequence asks for that is to stand where another does.
func (c *Core) askToFork(s, from *sequence, caller stages.Caller) *ask {
	return &ask{
		seq: s, copied: from, caller: caller, enters: true, pages: len(from.Pages), states: 2,
		room: func() error { return c.roomToCopy(from) },
		take: func(out *stages.Outbox) { c.fork(s, from, caller, out) },
		refuse: func(err error, out *stages.Outbox) {
			c.remove(s)
			c.answer(caller, &stages.SequenceDone{Seq: s.id, Kind: stages.Opened, Err: err}, out)
		},
	}
}

// roomToCopy makes room for one more state of what a sequence holds, which must be at rest then.
func (c *Core) roomToCopy(s *sequence) error {
	if err := c.book.Room(pages.Need{States: 1, Pages: c.toShare(s)}); err != nil {
		return err
	}
	_, err := c.healthy(s.id)
	return err
}

// busy reports whether something is being done to the sequence.
func (s *sequence) busy() bool {
	return s.req != nil || s.op != nil || s.draft != nil || s.ask != nil && !s.returning() || s.awaited()
}

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
		c.stopWaiting(s, out)
		c.giveUpWaiting(s, stages.ErrClosed, out)
		switch {
		case s.req != nil:
			c.cancel(s.req, stages.ErrClosed, out)
		case c.seqs[s.id] != s: // it was not made yet
			c.closed(s, out)
		case s.op == nil && !s.moving():
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
	if s.grant.holds {
		c.leave(s, out)
	}
	c.standIn(s, out)
	c.book.ForgetOf(s.id)
	c.remove(s)
	c.book.Settle()
	c.closed(s, out)
}

// remove takes a sequence out of the books.
func (c *Core) remove(s *sequence) {
	c.empty(s)
	if s.grant.holds {
		c.exit(s)
	}
	c.search.remove(s)
	c.asks.queue.Leave(s.grant.share)
	delete(c.seqs, s.id)
}

// inOrder returns the sequences by their names, so that nothing depends on the order of a map.
func (c *Core) inOrder() []*sequence {
	return slices.SortedFunc(maps.Values(c.seqs), func(a, b *sequence) int { return cmp.Compare(a.id, b.id) })
}
