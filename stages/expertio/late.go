package expertio

import (
	"fmt"
	"slices"

	"github.com/moeflux/moeflux-actor/stages"
)

// readOverdue gives up the rows that wait for a read that does not end, unless a host computes
// them. The slot stays the reader's until the read ends, and then holds the expert. A load that
// comes to wait for it meanwhile is given up with the next report. So are loads that want slots
// when all are held by such reads.
func (c *Core) readOverdue(m *stages.ReadOverdue, out *stages.Outbox) error {
	if !c.slots.has(m.Slot) {
		return fmt.Errorf("expertio: a read of slot %d is late, there are %d", m.Slot, len(c.slots.all))
	}
	s := c.slots.at(m.Slot)
	if s.gen != m.Gen || s.state != filling {
		return nil // it has ended after all
	}
	if !s.late { // others need not wait for its end
		s.late = true
		c.reading.ended(s.rank)
		c.reading.late++
	}
	c.fail(s, m.Err, out)
	if c.slots.hung(c.slots.holder(m.Slot)) {
		c.starve(c.slots.holder(m.Slot), m.Err, out)
	}
	return nil
}

// hung reports whether every slot of a pool is held by a read that is late, or by a guess that
// nobody waits for, which is not called late before it has begun.
func (p *slots) hung(o *pool) bool {
	for id := o.first; id < o.end; id++ {
		s := p.at(id)
		if s.state != gone && (s.state != filling || !s.late && !s.rank.Speculative()) {
			return false
		}
	}
	return true
}

// starve gives up the uses that have no slot and would have one of a pool.
func (c *Core) starve(o *pool, err error, out *stages.Outbox) {
	for _, l := range c.queue {
		for i := 0; i < len(l.uses) && c.slots.of(l.step.Layer) == o; i++ {
			if l.failed == nil && l.uses[i].open() {
				c.lose(l, i, err, out)
			}
		}
	}
}

// fail has hosts compute what waits for a slot, or gives it up.
func (c *Core) fail(s *slot, err error, out *stages.Outbox) {
	for _, w := range slices.Clone(s.waiting) { // lose takes them out of the list
		if w.load.failed == nil && !c.handOver(w.load, w.use, err) {
			c.lose(w.load, w.use, err, out)
		}
	}
}

// lose gives up one use of a load. The sequences whose rows picked its expert are lost, and the
// step goes on for the others. If there are no others the step has failed.
func (c *Core) lose(l *load, use int, err error, out *stages.Outbox) {
	b, k := l.step.Batch, l.plan.TopK
	losses := slices.Clone(l.losses) // what the plan has is shared
	for _, pair := range l.plan.Uses[use].Pairs {
		seq := b.Segments[b.SegmentOf(int(pair)/k)].Seq
		if !slices.ContainsFunc(losses, func(x stages.Loss) bool { return x.Seq == seq }) {
			losses = append(losses, stages.Loss{Seq: seq, Err: &stages.StepError{Stage: stages.ExpertIO, Layer: l.step.Layer, Err: err}})
		}
	}
	l.losses = losses
	if len(losses) == len(b.Segments) {
		l.failed = err
		c.gaveUp(l)
		out.Send(stages.Sequencer, &stages.StepFailed{Step: l.step, Stage: stages.ExpertIO, Err: err})
		return
	}
	u := &l.uses[use]
	switch {
	case u.slot != none:
		c.slots.forget(u.slot, l)
	case u.state == unread:
		l.unread--
	default:
		l.left--
	}
	u.slot, u.state = none, lost
	l.unsent--
}
