package expertio

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/stages"
)

// readOverdue fails the steps that wait for a read which does not end. The slot stays the reader's until it does, and holds the
// expert then; whoever comes to wait for it meanwhile is told of the next report.
func (c *Core) readOverdue(m *stages.ReadOverdue, out *stages.Outbox) error {
	if !c.slots.has(m.Slot) {
		return fmt.Errorf("expertio: a read of slot %d is late, there are %d", m.Slot, len(c.slots.all))
	}
	s := c.slots.at(m.Slot)
	if s.gen != m.Gen || s.state != filling {
		return nil // it has ended after all
	}
	c.fail(s, m.Err, out)
	return nil
}

// fail fails the steps that wait for a slot.
func (c *Core) fail(s *slot, err error, out *stages.Outbox) {
	for _, w := range s.waiting {
		if l := w.load; l.failed == nil {
			l.failed = err
			out.Send(stages.Sequencer, &stages.StepFailed{Step: l.step, Stage: stages.ExpertIO, Err: err})
		}
	}
}

// hurry asks that a read on a guess, which somebody waits for by now, goes before the others. It asks once: whoever waited may have
// been drained, and another come.
func (c *Core) hurry(id stages.SlotID, out *stages.Outbox) {
	if s := c.slots.at(id); s.state == filling && s.speculative && !s.urgent {
		s.urgent = true
		c.pace.urged()
		out.Hurries = append(out.Hurries, stages.Hurry{Slot: id, Gen: s.gen})
	}
}
