package sequencer

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/stages"
)

// sequence is what the stage knows of one sequence.
type sequence struct {
	id        stages.SeqID
	len       int   // positions evaluated
	pages     int   // key-value pages reserved
	poison    error // why it is unusable, or nil
	req       *request
	expected  bool                  // counted in Core.expected
	resetting bool                  // dispatch is at it
	closing   *stages.CloseSequence // wants to be closed once req or the reset has ended
}

// request is one EvalChunk on its way.
type request struct {
	msg     *stages.EvalChunk
	seq     *sequence
	pos     int   // of the first token
	done    int   // tokens evaluated and kept
	step    *step // that evaluates some of the tokens now, or nil
	cancel  error // why it should end, or nil
	logits  []float32
	hidden  []float32 // [layers+1, tokens, hidden]
	picks   []int32   // [layers, tokens, TopK]
	weights []float32
}

func (r *request) left() int { return len(r.msg.Tokens) - r.done }

func (c *Core) evalChunk(m *stages.EvalChunk, out *stages.Outbox) {
	if a := m.Spare; a != nil {
		c.floatsDone(a.Logits, out)
		out.Spent().AnswerDone(a)
	}
	s, err := c.admit(m)
	if err != nil {
		a := &stages.ChunkEvaluated{Seq: m.Seq, Err: err}
		if s := c.seqs[m.Seq]; s != nil {
			a.Poison = s.poison
		}
		out.Answer(m.Caller, a)
		return
	}
	c.unexpect(s)
	c.reserve(s, s.len+len(m.Tokens))
	var r *request
	if n := len(c.spareRequests) - 1; n >= 0 {
		r, c.spareRequests = c.spareRequests[n], c.spareRequests[:n]
	} else {
		r = new(request)
	}
	*r = request{msg: m, seq: s, pos: s.len}
	s.req = r
	c.ready = append(c.ready, s.req)
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
	case s.req != nil || s.resetting:
		return nil, stages.ErrBusy
	case s.poison != nil:
		return nil, s.poison
	case len(m.Tokens) == 0:
		return nil, stages.ErrEmptyChunk
	case m.Pos >= 0 && m.Pos != s.len:
		return nil, &stages.PosError{Seq: s.id, Pos: m.Pos, Want: s.len}
	case len(m.Tokens) > c.cfg.MaxPositions-s.len:
		return nil, &stages.ContextError{Len: s.len, Tokens: len(m.Tokens), Max: c.cfg.MaxPositions}
	}
	for i, t := range m.Tokens {
		if t < 0 || int(t) >= c.cfg.Vocab {
			return nil, &stages.TokenError{Index: i, Token: t, Vocab: c.cfg.Vocab}
		}
	}
	if need := c.pagesFor(s.len+len(m.Tokens)) - s.pages; need > c.cfg.MaxPages-c.pagesUsed {
		return nil, &stages.StateMemoryError{Pages: need, Used: c.pagesUsed, Max: c.cfg.MaxPages}
	}
	return s, nil
}

func (c *Core) pagesFor(positions int) int {
	return (positions + c.cfg.PageRows - 1) / c.cfg.PageRows
}

// reserve makes the sequence's share of the page pool fit the positions.
func (c *Core) reserve(s *sequence, positions int) {
	pages := c.pagesFor(positions)
	c.pagesUsed += pages - s.pages
	s.pages = pages
}

func (c *Core) unexpect(s *sequence) {
	if s.expected {
		s.expected = false
		c.expected--
	}
}

func (c *Core) cancelEval(m *stages.CancelEval, out *stages.Outbox) {
	if s := c.seqs[m.Seq]; s != nil && s.req != nil && s.req.msg.Request == m.Request {
		c.cancel(s.req, m.Cause, out)
	}
}

// cancel ends a request that is in no step at once. One that is in a step ends when the step does; if nobody wants the
// step any more, it is undone when no layer of it has begun, and given up between layers when some are left to begin.
func (c *Core) cancel(r *request, cause error, out *stages.Outbox) {
	if r.cancel == nil {
		r.cancel = cause
	}
	if r.step == nil {
		for i, q := range c.ready {
			if q == r {
				c.ready = append(c.ready[:i], c.ready[i+1:]...)
				break
			}
		}
		c.finish(r, r.cancel, out)
		return
	}
	for _, q := range r.step.reqs {
		if q.cancel == nil {
			return
		}
	}
	switch s := r.step; {
	case s.begun == 0: // no other stage knows of it
		c.undo(s, out)
	case s.begun < c.cfg.Layers:
		c.fail(s, cause, out)
	}
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
	if s.poison == nil {
		c.reserve(s, s.len)
	}
	a := out.Spent().ChunkEvaluated(stages.ChunkEvaluated{Seq: s.id, Pos: r.pos, Rows: r.done, Err: err, Poison: s.poison})
	if err == nil {
		a.Logits, a.Hidden, a.Picks, a.Weights = r.logits, r.hidden, r.picks, r.weights
		if len(r.msg.Tokens) == 1 {
			s.expected = true
			c.expected++
		}
	}
	out.Answer(r.msg.Caller, a)
	*r = request{}
	c.spareRequests = append(c.spareRequests, r)
	if s.closing != nil {
		c.sendClose(s, out)
	}
}

func (c *Core) openSequence(m *stages.OpenSequence, out *stages.Outbox) {
	var err error
	switch {
	case c.draining:
		err = stages.ErrClosed
	case c.seqs[m.Seq] != nil:
		err = fmt.Errorf("moeflux: sequence %d is open already", m.Seq)
	}
	if err != nil {
		out.Answer(m.Caller, &stages.SequenceDone{Seq: m.Seq, Kind: stages.Opened, Err: err})
		return
	}
	out.Send(stages.Dispatch, m)
}

func (c *Core) resetSequence(m *stages.ResetSequence, out *stages.Outbox) {
	s, err := c.idle(m.Seq)
	if err != nil {
		out.Answer(m.Caller, &stages.SequenceDone{Seq: m.Seq, Kind: stages.WasReset, Err: err})
		return
	}
	c.unexpect(s)
	s.len, s.resetting = 0, true
	c.reserve(s, 0)
	out.Send(stages.Router, &stages.ForgetSequence{Seq: s.id})
	out.Send(stages.Dispatch, m)
}

// idle returns the sequence if nothing is being done to it.
func (c *Core) idle(id stages.SeqID) (*sequence, error) {
	s := c.seqs[id]
	switch {
	case s == nil:
		return nil, stages.ErrUnknownSequence
	case s.closing != nil:
		return nil, stages.ErrClosed
	case s.req != nil || s.resetting:
		return nil, stages.ErrBusy
	}
	return s, nil
}

func (c *Core) closeSequence(m *stages.CloseSequence, out *stages.Outbox) {
	s := c.seqs[m.Seq]
	if s == nil || s.closing != nil {
		out.Answer(m.Caller, &stages.SequenceDone{Seq: m.Seq, Kind: stages.Closed, Err: stages.ErrUnknownSequence})
		return
	}
	s.closing = m
	if s.req != nil {
		c.cancel(s.req, stages.ErrClosed, out)
	} else if !s.resetting {
		c.sendClose(s, out)
	}
}

func (c *Core) sendClose(s *sequence, out *stages.Outbox) {
	c.unexpect(s)
	c.reserve(s, 0)
	delete(c.seqs, s.id)
	out.Send(stages.Router, &stages.ForgetSequence{Seq: s.id})
	out.Send(stages.Dispatch, s.closing)
}

func (c *Core) sequenceDone(m *stages.SequenceDone, out *stages.Outbox) error {
	out.Answer(m.Caller, m)
	s := c.seqs[m.Seq]
	switch {
	case m.Kind == stages.Opened && m.Err == nil && s != nil:
		return fmt.Errorf("sequencer: sequence %d, which is open, was opened", m.Seq)
	case m.Kind == stages.Opened && m.Err == nil:
		c.seqs[m.Seq] = &sequence{id: m.Seq}
	case m.Kind == stages.WasReset && (s == nil || !s.resetting):
		return fmt.Errorf("sequencer: sequence %d was reset, which nobody asked for", m.Seq)
	case m.Kind == stages.WasReset:
		s.resetting, s.poison = false, nil
		if m.Err != nil { // its recurrent state is not empty
			s.poison = &stages.PoisonedError{Seq: s.id, Err: m.Err}
		}
		if s.closing != nil {
			c.sendClose(s, out)
		}
	}
	return nil
}
