package sequencer

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/stages"
)

// sequence is what the stage knows of one sequence.
type sequence struct {
	id    stages.SeqID
	len   int             // positions evaluated
	pages []stages.PageID // of len positions; while req is there, of all that it will reach
	// [len], below 0 where they are not known; never overwritten, for frozen states share it
	tokens      []int32
	poison      error // why it is unusable, or nil
	checkpoints int   // most that it keeps, those that are protected included
	req         *request
	remembers   bool                  // its caller has given texts to be remembered
	op          *operation            // that dispatch is at, or nil
	draft       *frozen               // that is to be filled and to take its state's place, or nil
	closing     *stages.CloseSequence // wants to be closed once req or op has ended
}

// request is one EvalChunk on its way.
type request struct {
	msg  *stages.EvalChunk
	seq  *sequence
	pos  int // of the first token
	done int // tokens evaluated and kept
	// of a page that others share, until a step has made it; From equals To if there is none
	copy    stages.PageCopy
	border  int   // position from which on the text is remembered next
	step    *step // that evaluates some of the tokens now, or nil
	cancel  error // why it should end, or nil
	lost    error // why its step goes on without it, or nil
	told    bool  // it was answered before its step ended; the step's results are not kept
	alone   bool  // a step with others has failed, so it gets one of its own
	logits  []float32
	hidden  []float32 // [layers+1, tokens, hidden]
	picks   []int32   // [layers, tokens, TopK]
	weights []float32
}

// Left returns how many tokens are not evaluated yet.
func (r *request) Left() int { return len(r.msg.Tokens) - r.done }

// Alone reports whether the request must have a step to itself.
func (r *request) Alone() bool { return r.alone }

// before returns how much of the text in front of the chunk counts with it.
func (r *request) before() int { return min(max(r.msg.Before, 0), r.pos) }

func (c *Core) evalChunk(m *stages.EvalChunk, out *stages.Outbox) {
	if a := m.Spare; a != nil {
		c.floatsDone(a.Logits, out)
		out.Spent().AnswerDone(a)
	}
	s, err := c.admit(m, out)
	if err != nil {
		a := &stages.ChunkEvaluated{Seq: m.Seq, Err: err}
		if s := c.seqs[m.Seq]; s != nil {
			a.Poison = s.poison
		}
		out.Answer(m.Caller, a)
		return
	}
	c.schedule.Unexpect(uint64(s.id))
	var r *request
	if n := len(c.spareRequests) - 1; n >= 0 {
		r, c.spareRequests = c.spareRequests[n], c.spareRequests[:n]
	} else {
		r = new(request)
	}
	*r = request{msg: m, seq: s, pos: s.len}
	s.remembers = s.remembers || m.Remember
	r.copy = c.grow(s, s.len+len(m.Tokens))
	r.border = c.nextBorder(r)
	s.req = r
	c.schedule.Add(r)
}

// grow gives a sequence pages for a number of positions, for which there is room. If others share
// the page that it will write to next, it gets one of its own, and grow returns the copy to be
// made; the original is held until then.
func (c *Core) grow(s *sequence, positions int) (cp stages.PageCopy) {
	if c.sharesTail(s) {
		tail := &s.pages[s.len/c.pages.rows]
		cp = stages.PageCopy{From: *tail, To: c.pages.take()}
		*tail = cp.To
	}
	for len(s.pages) < c.pages.count(positions) {
		s.pages = append(s.pages, c.pages.take())
	}
	return cp
}

// sharesTail reports whether a sequence's next position lies in a page that others hold, too.
func (c *Core) sharesTail(s *sequence) bool {
	return s.len%c.pages.rows != 0 && c.pages.shared(s.pages[s.len/c.pages.rows])
}

// shrink takes back pages that a request has not reached, and a copy that was not made.
func (c *Core) shrink(r *request) {
	s := r.seq
	if cp := r.copy; cp.From != cp.To { // the first step has not gone well
		drop := cp.From
		if s.poison == nil {
			s.pages[s.len/c.pages.rows], drop = cp.From, cp.To
		}
		c.pages.release(live, drop)
	}
	if s.poison == nil {
		n := c.pages.count(s.len)
		c.pages.release(live, s.pages[n:]...)
		s.pages = s.pages[:n]
	}
}

// admit checks a chunk before anything is changed.
func (c *Core) admit(m *stages.EvalChunk, out *stages.Outbox) (*sequence, error) {
	if c.draining {
		return nil, stages.ErrClosed
	}
	s := c.seqs[m.Seq]
	switch {
	case s == nil:
		return nil, stages.ErrUnknownSequence
	case s.closing != nil:
		return nil, stages.ErrClosed
	case s.op != nil || s.draft != nil:
		return nil, stages.ErrBusy
	case s.poison != nil:
		return nil, s.poison
	case s.req != nil:
		return nil, stages.ErrBusy
	case len(m.Tokens) == 0:
		return nil, stages.ErrEmptyChunk
	case !m.Pos.Holds(s.len):
		return nil, &stages.PosError{Seq: s.id, Pos: m.Pos, Len: s.len}
	case len(m.Tokens) > c.cfg.MaxPositions-s.len:
		return nil, &stages.ContextError{Len: s.len, Tokens: len(m.Tokens), Max: c.cfg.MaxPositions}
	}
	if err := c.checkTokens(m.Tokens); err != nil {
		return nil, err
	}
	return s, c.roomToGrow(s, s.len+len(m.Tokens), out)
}

func (c *Core) checkTokens(tokens []int32) error {
	for i, t := range tokens {
		if t < 0 || int(t) >= c.cfg.Vocab {
			return &stages.TokenError{Index: i, Token: t, Vocab: c.cfg.Vocab}
		}
	}
	return nil
}

func (c *Core) cancelEval(m *stages.CancelEval, out *stages.Outbox) {
	if s := c.seqs[m.Seq]; s != nil && s.req != nil && s.req.msg.Request == m.Request {
		r := s.req
		c.cancel(r, m.Cause, out)
		if m.Now && s.req == r && !r.told { // its step goes on
			c.abandon(r, out)
		}
	}
}

// abandon answers a cancelled request whose step goes on, be it for others, or because it still
// waits for something. What the step makes of it is not kept, which only a sequence without
// recurrent state survives.
func (c *Core) abandon(r *request, out *stages.Outbox) {
	if c.cfg.RecurrentBytes > 0 {
		r.seq.poison = &stages.PoisonedError{Seq: r.seq.id, Err: r.cancel}
	}
	c.tell(r, r.cancel, out)
	r.told = true
}

// cancel ends a request that is in no step at once. One that is in a step ends when the step does;
// if nobody wants the step any more, it is undone when no layer of it has begun, and given up
// between layers when some are left to begin.
func (c *Core) cancel(r *request, cause error, out *stages.Outbox) {
	if r.cancel == nil {
		r.cancel = cause
	}
	if r.step == nil {
		c.schedule.Remove(r)
		c.finish(r, r.cancel, out)
		return
	}
	switch s := r.step; {
	case !s.forsaken():
	case s.begun == 0: // no other stage knows of it
		c.undo(s, out)
	case s.begun < c.cfg.Layers:
		c.fail(s, cause, out)
	}
}

// forsaken reports whether nobody wants the step any more.
func (s *step) forsaken() bool {
	for _, r := range s.reqs {
		if r.cancel == nil && r.lost == nil {
			return false
		}
	}
	return true
}

// undo ends a step that has not begun. Its sequences are as before it.
func (c *Core) undo(s *step, out *stages.Outbox) {
	c.lanes[s.head.Batch.Lane] = nil
	for _, r := range s.reqs {
		r.step = nil
		c.finish(r, r.cancel, out)
	}
}

// finish answers a request and does what its sequence waited for.
func (c *Core) finish(r *request, err error, out *stages.Outbox) {
	s := r.seq
	s.req = nil
	c.shrink(r)
	if !r.told {
		c.tell(r, err, out)
	}
	if err == nil && len(r.msg.Tokens) == 1 {
		c.schedule.Expect(uint64(s.id))
	}
	*r = request{}
	c.spareRequests = append(c.spareRequests, r)
	if s.closing != nil {
		c.close(s, out)
	}
}

// tell answers a request.
func (c *Core) tell(r *request, err error, out *stages.Outbox) {
	a := out.Spent().ChunkEvaluated(stages.ChunkEvaluated{
		Seq: r.seq.id, Pos: r.pos, Rows: r.done, Err: err, Poison: r.seq.poison, Unfinished: r.step != nil,
	})
	if err == nil {
		a.Logits, a.Hidden, a.Picks, a.Weights = r.logits, r.hidden, r.picks, r.weights
	}
	out.Answer(r.msg.Caller, a)
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
		err = c.room(c.tally(), func(*tally) int { return 0 }, 1, out)
	}
	if err != nil {
		c.answer(m.Caller, &stages.SequenceDone{Seq: m.Seq, Kind: stages.Opened, Err: err}, out)
		return
	}
	s := &sequence{id: m.Seq, checkpoints: c.cfg.Checkpoints}
	c.seqs[m.Seq] = s
	c.place(s, from.pages, from.tokens, from.len)
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
	c.forgetAll(s.id, out)
	c.empty(s)
	delete(c.seqs, s.id)
	c.settle(out)
	c.closed(s, out)
}
