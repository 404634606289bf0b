package sequencer

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/moeflux/moeflux-actor/stages"
)

// beginLayers begins layers while the ring has credits, step after step in turn.
func (c *Core) beginLayers(out *stages.Outbox) {
	for c.ringUsed < c.cfg.RingDepth {
		s := c.nextToBegin()
		if s == nil {
			return
		}
		head := s.head
		head.Layer = s.begun
		if s.begun == 0 {
			c.steps++
			c.rows += int64(len(head.Batch.Rows))
		}
		n := c.together(s)
		if !c.cfg.Resident {
			out.Send(stages.Router, out.Spent().BeginLayer(head, 0))
		}
		out.Send(stages.Dispatch, out.Spent().BeginLayer(head, n-1))
		s.begun += n
		s.credits++
		c.ringUsed++
	}
}

// togetherRows bounds the layers that begin together, in rows: a step that is given up ends what
// has begun.
const togetherRows = 64

// together returns how many layers of a step begin with the next one and share its credit. Where
// the host has no part in a layer, single layers would only cost messages. A step begins with few,
// so that the device soon has something to do, and doubles them from then on. A traced step goes
// layer by layer, so that each has its times.
func (c *Core) together(s *step) int {
	if !c.cfg.Resident || s.head.Batch.Traced {
		return 1
	}
	return min(max(1, s.begun), max(1, togetherRows/len(s.head.Batch.Rows)), c.cfg.Layers-s.begun)
}

// nextToBegin returns the step whose next layer may begin: the layer before it is with the device.
func (c *Core) nextToBegin() *step {
	for i := range c.lanes {
		lane := (c.turn + i) % len(c.lanes)
		s := c.lanes[lane]
		if s != nil && s.failing == nil && s.begun < c.cfg.Layers && s.begun == s.submitted {
			c.turn = lane + 1
			return s
		}
	}
	return nil
}

// find returns the step that a message belongs to.
func (c *Core) find(h *stages.Step) (*step, error) {
	if h.Batch != nil && h.Batch.Lane >= 0 && h.Batch.Lane < len(c.lanes) {
		if s := c.lanes[h.Batch.Lane]; s != nil && s.head.ID == h.ID {
			return s, nil
		}
	}
	return nil, fmt.Errorf("sequencer: message for %v, which is not in flight", h)
}

// late forgives what dispatch tells of a step that has ended: StepDrained comes by way of combine
// and may overtake it.
func (c *Core) late(h *stages.Step, err error) error {
	if h.ID <= c.lastStep {
		return nil
	}
	return err
}

func (c *Core) layerSubmitted(m *stages.LayerSubmitted, out *stages.Outbox) error {
	s, err := c.find(m.Head())
	if err != nil {
		return c.late(m.Head(), err)
	}
	if m.Layer != s.submitted || s.submitted+m.More >= s.begun {
		return fmt.Errorf("sequencer: %v and the next %d layers are submitted after %d layers, %d have begun", &m.Step, m.More, s.submitted, s.begun)
	}
	s.submitted += 1 + m.More
	c.lose(s, m.Losses, out)
	if s.submitted == c.cfg.Layers && s.failing == nil {
		s.asked = true
		if c.cfg.Resident || s.wants() {
			head := s.head
			head.Layer = c.cfg.Layers
			out.Send(stages.Dispatch, out.Spent().ReadLogits(head))
		} else {
			s.logits = out.Spent().LogitsReady(s.head, 0)
			c.commit(s, out) // the last layer may be retired already
		}
	}
	return nil
}

// lose notes requests that the step goes on without. If it has none left it is given up.
func (c *Core) lose(s *step, losses []stages.Loss, out *stages.Outbox) {
	for _, l := range losses {
		for _, r := range s.reqs {
			if r.seq.id == l.Seq && r.lost == nil {
				r.lost = l.Err
			}
		}
	}
	if len(losses) > 0 && s.forsaken() && s.begun < c.cfg.Layers {
		c.fail(s, losses[0].Err, out)
	}
}

func (c *Core) layerRetired(m *stages.LayerRetired, out *stages.Outbox) error {
	s, err := c.find(m.Head())
	if err != nil {
		return err
	}
	if m.Layer != s.retired || s.retired+m.More >= s.begun {
		return fmt.Errorf("sequencer: %v and the next %d layers are retired after %d layers, %d have begun", &m.Step, m.More, s.retired, s.begun)
	}
	s.retired += 1 + m.More
	s.credits--
	c.ringUsed--
	c.commit(s, out)
	return nil
}

func (c *Core) logitsReady(m *stages.LogitsReady, out *stages.Outbox) error {
	s, err := c.find(m.Head())
	if err != nil {
		return c.late(m.Head(), err)
	}
	if err := c.checkResults(s, m); err != nil {
		return err
	}
	s.logits = m
	c.lose(s, m.Losses, out)
	c.commit(s, out)
	return nil
}

// checkResults compares the lengths of what came with what was asked for.
func (c *Core) checkResults(s *step, m *stages.LogitsReady) error {
	b, logits := s.head.Batch, 0
	for i := range b.Rows {
		logits += b.Rows[i].Width(c.cfg.Vocab)
	}
	hidden, picks := 0, 0
	if b.Hidden {
		hidden = (c.cfg.Layers + 1) * len(b.Rows) * c.cfg.Hidden
	}
	if b.Routing {
		picks = c.cfg.MoELayers * len(b.Rows) * c.cfg.TopK
	}
	switch {
	case !s.asked || s.logits != nil:
		return fmt.Errorf("sequencer: results of %v, which were not asked for", &s.head)
	case len(m.Logits) != logits || len(m.Hidden) != hidden || len(m.Picks) != picks || len(m.Weights) != picks:
		return fmt.Errorf("sequencer: %d logits, %d hidden, %d picks, %d weights for %v, want %d, %d, %d, %d",
			len(m.Logits), len(m.Hidden), len(m.Picks), len(m.Weights), &s.head, logits, hidden, picks, picks)
	}
	return nil
}

// commit ends a step whose layers are all retired and whose results are here.
func (c *Core) commit(s *step, out *stages.Outbox) {
	if s.failing != nil || s.retired < c.cfg.Layers || s.logits == nil {
		return
	}
	c.end(s, out)
	c.share(s, out)
	for i, r := range s.reqs {
		g := s.head.Batch.Segments[i]
		if r.lost != nil || r.told {
			c.giveUp(r, cmp.Or(r.lost, r.cancel), out)
			continue
		}
		c.collect(s, r, g)
		r.step, r.alone = nil, false
		r.done += g.Rows
		c.advance(r, g, out)
		switch {
		case r.Left() == 0:
			c.finish(r, nil, out)
		case r.cancel != nil:
			c.finish(r, r.cancel, out)
		default:
			c.schedule.Add(r)
		}
	}
	out.Spent().LogitsDone(s.logits)
	c.recycle(s)
}

// advance notes what a step has done for a request. Its copy is made.
func (c *Core) advance(r *request, g stages.Segment, out *stages.Outbox) {
	s := r.seq
	s.tokens = append(s.tokens, r.msg.Tokens[r.done-g.Rows:r.done]...)
	s.len += g.Rows
	if cp := r.copy; cp.From != cp.To {
		c.pages.release(live, cp.From)
		r.copy = stages.PageCopy{}
	}
	c.remember(r, out)
}

// share gives each request its rows of the step's logits. One that is alone and has none yet gets
// them without a copy.
func (c *Core) share(s *step, out *stages.Outbox) {
	logits := s.logits.Logits
	if r := s.reqs[0]; len(s.reqs) == 1 && r.logits == nil {
		if len(logits) > 0 {
			r.logits = logits
		}
		return
	}
	for i, r := range s.reqs {
		g, n := s.head.Batch.Segments[i], 0
		for _, row := range s.head.Batch.Rows[g.Row : g.Row+g.Rows] {
			n += row.Width(c.cfg.Vocab)
		}
		if r.logits == nil && n > 0 {
			r.logits = out.Spent().Floats(n)[:0]
		}
		r.logits = append(r.logits, logits[:n]...)
		logits = logits[n:]
	}
	c.floatsDone(s.logits.Logits, out)
}

// keepRows is how many rows' logits a slice may hold that is kept for other answers.
const keepRows = 16

// floatsDone gives back a slice of logits, unless it is a large one.
func (c *Core) floatsDone(f []float32, out *stages.Outbox) {
	if cap(f) <= keepRows*c.cfg.Vocab {
		out.Spent().FloatsDone(f)
	}
}

// collect copies the hidden states and the routing of a segment to its request.
func (c *Core) collect(s *step, r *request, g stages.Segment) {
	rows, total := len(s.head.Batch.Rows), len(r.msg.Tokens)
	if r.msg.Hidden {
		if r.hidden == nil {
			r.hidden = make([]float32, (c.cfg.Layers+1)*total*c.cfg.Hidden)
		}
		copyRows(r.hidden, s.logits.Hidden, c.cfg.Layers+1, c.cfg.Hidden, total, r.done, rows, g)
	}
	if r.msg.Routing {
		if r.picks == nil {
			r.picks = make([]int32, c.cfg.MoELayers*total*c.cfg.TopK)
			r.weights = make([]float32, c.cfg.MoELayers*total*c.cfg.TopK)
		}
		copyRows(r.picks, s.logits.Picks, c.cfg.MoELayers, c.cfg.TopK, total, r.done, rows, g)
		copyRows(r.weights, s.logits.Weights, c.cfg.MoELayers, c.cfg.TopK, total, r.done, rows, g)
	}
}

// copyRows copies a segment's rows of src [planes, rows, width] to dst [planes, total, width] from
// row at on.
func copyRows[T any](dst, src []T, planes, width, total, at, rows int, g stages.Segment) {
	for p := range planes {
		copy(dst[(p*total+at)*width:][:g.Rows*width], src[(p*rows+g.Row)*width:][:g.Rows*width])
	}
}

func (c *Core) stepFailed(m *stages.StepFailed, out *stages.Outbox) {
	// A step may fail in several stages at once; by the time the last of them tells, it may be
	// gone.
	s, err := c.find(m.Head())
	if err != nil || s.failing != nil {
		return
	}
	// What the router or expert-IO reports is the fault of each request; the device, or memory,
	// fails all of them for the sake of one or none.
	whole := m.Stage == stages.Dispatch || m.Stage == stages.Combine
	s.untouched = m.Untouched
	s.retry = whole && (m.Untouched || c.cfg.RecurrentBytes == 0) && len(s.reqs) > 1
	c.fail(s, &stages.StepError{Stage: m.Stage, Layer: m.Layer, Err: m.Err}, out)
}

// fail gives a step up: no layer begins any more, and a DrainStep goes round.
func (c *Core) fail(s *step, cause error, out *stages.Outbox) {
	if s.failing != nil {
		return
	}
	s.failing = cause
	c.failed++
	out.Send(stages.Dispatch, &stages.DrainStep{Step: s.head})
}

// stepDrained ends a failed step. Requests that may be evaluated yet are tried again, each by
// itself: so those that only shared the step go on, and who fails alone has failed.
func (c *Core) stepDrained(m *stages.StepDrained, out *stages.Outbox) error {
	s, err := c.find(m.Head())
	if err != nil {
		return err
	}
	if s.failing == nil {
		return errors.New("sequencer: a step that did not fail was drained")
	}
	c.ringUsed -= s.credits
	c.end(s, out)
	for i, r := range s.reqs {
		switch {
		case s.untouched && (r.cancel != nil || !s.retry):
			c.dismiss(r, s.failing, out)
		case s.retry && r.cancel == nil && r.lost == nil:
			r.step, r.alone = nil, true
			c.schedule.AddAt(i, r)
		case r.lost != nil:
			c.giveUp(r, r.lost, out)
		default:
			c.giveUp(r, s.failing, out)
		}
	}
	return nil
}

// giveUp ends a request whose rows were begun and not finished. Its sequence is poisoned: layers
// may stand at different lengths, and after an error of ours anything may be wrong. Only
// of a cancelled one what was begun is taken back, where it can be.
func (c *Core) giveUp(r *request, cause error, out *stages.Outbox) {
	if r.cancel == nil || c.cfg.RecurrentBytes > 0 {
		r.seq.poison = &stages.PoisonedError{Seq: r.seq.id, Err: cause}
	}
	c.dismiss(r, cause, out)
}

// dismiss takes a request out of its step and ends it.
func (c *Core) dismiss(r *request, cause error, out *stages.Outbox) {
	r.step = nil
	if r.cancel != nil {
		cause = r.cancel
	}
	c.finish(r, cause, out)
}

// end frees the step's lane.
func (c *Core) end(s *step, out *stages.Outbox) {
	c.lanes[s.head.Batch.Lane] = nil
	if s.head.Batch.Traced {
		out.Ended = append(out.Ended, stages.Ended{Step: s.head, Err: s.failing})
	}
}
