package sequencer

import (
	"errors"

	"github.com/moeflux/moeflux-actor/stages"
)

func (c *Core) stepFailed(m *stages.StepFailed, out *stages.Outbox) {
	// A step may fail in several stages at once; by the time the last of them tells, it may be
	// gone.
	s, err := c.flight.find(m.Head())
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
	c.schedule.Failed(uint64(s.head.ID))
	c.count.failed++
	out.Send(stages.Dispatch, &stages.DrainStep{Step: s.head})
}

// stepDrained ends a failed step. Requests that may be evaluated yet are tried again, each by
// itself: so those that only shared the step go on, and who fails alone has failed.
func (c *Core) stepDrained(m *stages.StepDrained, out *stages.Outbox) error {
	s, err := c.flight.find(m.Head())
	if err != nil {
		return err
	}
	if s.failing == nil {
		return errors.New("sequencer: a step that did not fail was drained")
	}
	for part, n := range s.credits {
		c.flight.ring[part][s.kind] -= n
	}
	s.spent(&m.Spell)
	c.end(s, out)
	for i, r := range s.reqs {
		switch {
		case s.untouched && (r.cancel != nil || !s.retry):
			c.dismiss(r, s.failing, out)
		case s.retry && r.cancel == nil && r.lost == nil:
			r.step, r.alone, r.ready = nil, true, c.notes.now
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
