package expertio

import (
	"fmt"
	"slices"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// send sends the waves that are due, while the ring has credits. It reports whether an urgent step
// has ended with a wave that carries no slots.
func (c *Core) send(out *stages.Outbox) (ended bool) {
	rest := c.queue[:0]
	for _, l := range c.queue {
		ring := c.ring(&l.step)
		for len(*ring) < c.cfg.RingDepth && c.due(l) {
			c.sendWave(l, out)
		}
		if c.due(l) {
			c.stopped(l, &l.credit, record.WaveCredit, only(*ring))
		}
		if l.failed == nil && !l.ended && l.unsent == l.answered {
			c.sendEnd(l, out)
			ended = ended || l.step.Batch.Urgent && c.lastOf(l)
		}
		if !l.ended {
			rest = append(rest, l)
		} else {
			c.over(l)
		}
	}
	clear(c.queue[len(rest):])
	c.queue = rest
	return ended
}

// ring returns the steps of the waves that the part of the device that computes a step's layer has,
// in the step's order.
func (c *Core) ring(s *stages.Step) *[]stages.StepID {
	return &c.rings[c.part(s)][s.Batch.Order()]
}

// part returns which part of the device computes a step's layer, as far as slots are concerned.
func (c *Core) part(s *stages.Step) int {
	if len(c.rings) == 1 {
		return 0
	}
	return c.cfg.Borders.Part(s.Layer)
}

// due reports whether a wave of the load should be sent now: the rest of the load, a full wave, or,
// if the device has no experts to compute in the load's order, whatever is ready. So a layer whose
// experts are in memory is one wave. If some are missing, the device computes the others meanwhile.
// While the device is busy, experts gather, so that quick reads do not make many small waves.
func (c *Core) due(l *load) bool {
	return l.failed == nil && l.ready > 0 && (len(*c.ring(&l.step)) == 0 || l.ready+l.answered == l.unsent || l.ready >= c.cfg.WaveSlots)
}

// sendWave sends a wave of what is ready, at most WaveSlots experts.
func (c *Core) sendWave(l *load, out *stages.Outbox) {
	c.goesOn(l, &l.credit)
	m := out.Spent().WaveResident(l.step, l.plan, l.waves)
	var slots []stages.SlotID
	if n := len(c.spareSlots) - 1; n >= 0 {
		slots, c.spareSlots = c.spareSlots[n][:0], c.spareSlots[:n]
	}
	for i := range l.uses {
		if u := &l.uses[i]; u.state == ready && len(slots) < c.cfg.WaveSlots {
			u.state = sent
			m.Uses, slots = append(m.Uses, int32(i)), append(slots, u.slot)
		}
	}
	l.ready -= len(slots)
	l.unsent -= len(slots)
	l.waves++
	m.Slots, m.Settled = slots, c.settled()
	c.sendAnswers(l, m)
	c.end(l, m)
	ring := c.ring(&m.Step)
	*ring = append(*ring, m.ID)
	c.waves++
	c.highWater = max(c.highWater, len(*ring))
	out.Send(stages.Dispatch, m)
}

// sendAnswers adds what hosts have computed to a wave.
func (c *Core) sendAnswers(l *load, m *stages.WaveResident) {
	for i := 0; l.answered > 0; i++ {
		if u := &l.uses[i]; u.state == answered {
			m.Answers = append(m.Answers, stages.AnsweredUse{Use: int32(i), Rows: u.rows})
			u.state, u.rows = sent, nil
			l.answered--
			l.unsent--
		}
	}
}

// sendEnd ends a layer whose remaining uses are all lost, or computed by hosts. It carries no slots
// and takes no credit.
func (c *Core) sendEnd(l *load, out *stages.Outbox) {
	m := out.Spent().WaveResident(l.step, l.plan, l.waves)
	c.sendAnswers(l, m)
	c.end(l, m)
	out.Send(stages.Dispatch, m)
}

// lastOf reports whether a load is the last of its step.
func (c *Core) lastOf(l *load) bool { return c.cfg.Single || l.step.Layer == c.cfg.Layers-1 }

// end marks the last wave of a load, with what the load has lost.
func (c *Core) end(l *load, m *stages.WaveResident) {
	if l.unsent == 0 {
		l.ended, m.Last, m.Losses = true, true, l.losses
		if c.lastOf(l) {
			c.urgent.end(l.step.ID, c.pace.now)
			c.away.leave(l.step.ID)
		}
	}
}

func (c *Core) slotsReleased(m *stages.SlotsReleased) error {
	if m.Layer < 0 || m.Layer >= c.cfg.Layers {
		return fmt.Errorf("expertio: wave %d of %v came home, of a model with %d layers", m.Wave, &m.Step, c.cfg.Layers)
	}
	ring := c.ring(&m.Step)
	i := slices.Index(*ring, m.ID)
	if i < 0 {
		return fmt.Errorf("expertio: wave %d of %v came home, but none is out", m.Wave, &m.Step)
	}
	*ring = slices.Delete(*ring, i, i+1)
	for _, id := range m.Slots {
		if !c.slots.has(id) {
			return fmt.Errorf("expertio: slot %d of wave %d of %v came home, there are %d", id, m.Wave, &m.Step, c.cfg.Slots)
		}
		if err := c.slots.unpin(id); err != nil {
			return err
		}
	}
	if len(c.spareSlots) < len(c.rings)*stages.Orders*c.cfg.RingDepth {
		c.spareSlots = append(c.spareSlots, m.Slots)
	}
	return nil
}

// drainStep drops the loads of a failed step. Experts that are being read for them still become
// resident, and waves that were sent come home.
func (c *Core) drainStep(m *stages.DrainStep, out *stages.Outbox) {
	rest := c.queue[:0]
	for _, l := range c.queue {
		if l.step.ID != m.ID {
			rest = append(rest, l)
			continue
		}
		for _, u := range l.uses {
			if u.slot != none && u.state != sent {
				c.slots.forget(u.slot, l)
			}
		}
		c.abandon(l)
		c.over(l)
	}
	clear(c.queue[len(rest):])
	c.queue = rest
	c.urgent.end(m.ID, c.pace.now)
	c.away.leave(m.ID)
	m2 := *m
	m2.Hop = 1
	out.Send(stages.Dispatch, &m2)
}
