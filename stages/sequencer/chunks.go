package sequencer

import (
	"slices"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/pages"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// request is one EvalChunk on its way.
type request struct {
	msg  *stages.EvalChunk
	seq  *sequence
	pos  int // of the first token
	done int // tokens evaluated and kept
	// of a page that others share, until a step has made it; From equals To if there is none
	copy   stages.PageCopy
	border int   // position from which on the text is remembered next
	step   *step // that evaluates some of the tokens now, or nil
	cancel error // why it should end, or nil
	lost   error // why its step goes on without it, or nil
	told   bool  // it was answered before its step ended; the step's results are not kept
	alone  bool  // a step with others has failed, so it gets one of its own
	began  int64 // when its first step was formed; 0: none was
	ready  int64 // since when it waits for a step, or for its state; 0: it does not
	results
	account stages.Account
}

// Left returns how many tokens are not evaluated yet.
func (r *request) Left() int { return len(r.msg.Tokens) - r.done }

// Alone reports whether the request must have a step to itself.
func (r *request) Alone() bool { return r.alone }

// Key names who shares the rows of prompts with others.
func (r *request) Key() string { return r.seq.grant.share.Key() }

// Weight returns the weight of that.
func (r *request) Weight() int { return r.seq.grant.share.Weight() }

// before returns how much of the text in front of the chunk counts with it.
func (r *request) before() int { return min(max(r.msg.Before, 0), r.pos) }

func (c *Core) evalChunk(m *stages.EvalChunk, out *stages.Outbox) {
	if a := m.Spare; a != nil {
		c.floatsDone(a.Logits, out)
		out.Spent().LargestDone(a.Largest)
		out.Spent().AnswerDone(a)
	}
	s, err := c.admit(m)
	if err != nil {
		a, pos := &stages.ChunkEvaluated{Seq: m.Seq, Request: m.Request, Err: err}, 0
		if s := c.seqs[m.Seq]; s != nil {
			a.Poison, pos = s.poison, s.Len
		}
		c.noteRequest(m, 0, pos, record.Refused, new(stages.Cost))
		out.Answer(m.Caller, a)
		return
	}
	if len(m.Tokens) == 1 {
		c.schedule.Back(uint64(s.id))
	} else {
		c.schedule.Unexpect(uint64(s.id))
	}
	r := c.spare.request()
	*r = request{msg: m, seq: s, pos: s.Len, alone: m.Probe != nil || m.Plain}
	if m.Probe != nil { // nobody else shares what it computes, not even while it does
		s.poison = &stages.PoisonedError{Seq: s.id, Err: stages.ErrProbed}
	}
	s.remembers = s.remembers || m.Remember
	r.border = c.nextBorder(r)
	s.req = r
	if until := c.reach(s, m); c.within(s, until) {
		c.start(r, until, out)
	} else {
		c.obtain(c.askToEval(r, until), out)
	}
}

// askToEval returns what a chunk asks for that its sequence's grant does not cover.
func (c *Core) askToEval(r *request, until int) *ask {
	s := r.seq
	need := pages.Need{Pages: c.book.ToGrow(&s.Text, until), Tail: &s.Text, Own: s.grant.promised}
	if !s.grant.holds {
		need.States = 1
	}
	return &ask{
		seq: s, caller: r.msg.Caller, chunk: r, request: r.msg.Request, enters: !s.grant.holds, pages: c.book.Count(until), states: 1,
		room:   func() error { return c.book.Room(need) },
		take:   func(out *stages.Outbox) { c.start(r, until, out) },
		refuse: func(err error, out *stages.Outbox) { c.finish(r, err, out) },
	}
}

// admit checks a chunk before anything is changed.
func (c *Core) admit(m *stages.EvalChunk) (*sequence, error) {
	if c.draining {
		return nil, stages.ErrClosed
	}
	s := c.seqs[m.Seq]
	switch {
	case s == nil:
		return nil, stages.ErrUnknownSequence
	case s.closing != nil:
		return nil, stages.ErrClosed
	case s.op != nil || s.draft != nil || s.ask != nil && s.req == nil || s.awaited():
		return nil, stages.ErrBusy
	case s.poison != nil:
		return nil, s.poison
	case s.req != nil:
		return nil, stages.ErrBusy
	case len(m.Tokens) == 0:
		return nil, stages.ErrEmptyChunk
	case !m.Pos.Holds(s.Len):
		return nil, &stages.PosError{Seq: s.id, Pos: m.Pos, Len: s.Len}
	case len(m.Tokens) > c.cfg.MaxPositions-s.Len:
		return nil, &stages.ContextError{Len: s.Len, Tokens: len(m.Tokens), Max: c.cfg.MaxPositions}
	}
	if err := c.checkTokens(m.Tokens); err != nil {
		return nil, err
	}
	if err := stages.CheckWants(m.Wants); err != nil {
		return nil, err
	}
	return s, nil
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
	s := c.seqs[m.Seq]
	if s == nil {
		return
	}
	for i, w := range s.waits {
		if chunk, ok := w.(*stages.EvalChunk); ok && chunk.Request == m.Request {
			s.waits = slices.Delete(s.waits, i, i+1)
			c.deny(w, m.Cause, record.Cancelled, out)
			c.nobodyWaits(s, out)
			return
		}
	}
	if r := s.req; r != nil && r.msg.Request == m.Request {
		c.cancel(r, m.Cause, out)
	}
}

// abandon answers a cancelled request of a sequence that is closed while its step goes on, be it
// for others, or because it still waits for something.
func (c *Core) abandon(r *request, out *stages.Outbox) {
	c.tell(r, r.cancel, out)
	r.told = true
}

// cancel ends a request that is in no step at once, or when its sequence has got its state, if
// dispatch is at that. One that is in a step ends when the step does; if nobody wants the step any
// more, it is undone when no layer of it has begun, and given up between layers when some are left
// to begin.
func (c *Core) cancel(r *request, cause error, out *stages.Outbox) {
	if r.cancel == nil {
		r.cancel = cause
	}
	if r.step == nil {
		if r.seq.op != nil {
			return
		}
		if a := r.seq.ask; a != nil {
			c.unqueue(a, out)
		}
		c.noteReady(r)
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

// undo ends a step that has not begun. Its sequences are as before it.
func (c *Core) undo(s *step, out *stages.Outbox) {
	c.flight.free(s)
	c.noteEnd(s, true, out)
	c.schedule.Ended(uint64(s.head.ID))
	for _, r := range s.reqs {
		r.step = nil
		c.finish(r, r.cancel, out)
	}
}

// finish answers a request and does what its sequence waited for.
func (c *Core) finish(r *request, err error, out *stages.Outbox) {
	s := r.seq
	s.req, s.used = nil, c.accounts.now
	if s.poison == nil {
		c.book.Back(&s.Text, r.copy)
	} else { // nobody knows what its pages hold
		c.book.Copied(r.copy)
	}
	if err != nil || s.Len >= s.grant.until {
		c.endGrant(s)
	}
	account := c.account(r, err == nil)
	c.accounts.close(s, &account)
	c.asks.stirred = c.asks.stirred || c.cfg.Parks && c.asks.queue.Len() > 0 // its state may be parked
	if !r.told {
		c.tell(r, err, out)
	}
	if err == nil && len(r.msg.Tokens) == 1 {
		c.schedule.Expect(uint64(s.id))
	}
	c.spare.keepRequest(r)
	if s.closing != nil {
		c.close(s, out)
	}
}

// tell answers a request.
func (c *Core) tell(r *request, err error, out *stages.Outbox) {
	c.noteRequest(r.msg, r.began, r.pos, r.outcome(err), &r.account.Cost)
	a := out.Spent().ChunkEvaluated(stages.ChunkEvaluated{
		Seq: r.seq.id, Request: r.msg.Request, Pos: r.pos, Rows: r.done, Err: err, Poison: r.seq.poison, Unfinished: r.step != nil || r.seq.op != nil,
		Account: c.account(r, err == nil),
	})
	if err == nil {
		a.Logits, a.Largest, a.Dump = r.logits, r.largest, r.dump
	}
	out.Answer(r.msg.Caller, a)
}
