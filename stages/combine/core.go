package combine

import (
	"fmt"
	"slices"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// Core is the stage. The zero value is ready, for a device of one part.
type Core struct {
	// Borders say which part of a gpu.Split computes which layers.
	Borders stages.Borders

	ring   []entry // oldest first
	held   held
	lastID uint64
	drains []*stages.DrainStep // of failed steps that still have waves in the ring
}

// entry is one submitted wave.
type entry struct {
	id   uint64
	wave stages.WaveSubmitted
	done bool
}

// held is what waves of the ring, from the oldest one on, keep later ones from: those of the same
// order on the same part of the device, and those of the same step.
type held struct {
	orders [][stages.Orders]bool // [parts]
	steps  []stages.StepID
}

var _ stages.Core = (*Core)(nil)

// Step handles one message.
func (c *Core) Step(in stages.Message, out *stages.Outbox) error {
	switch m := in.(type) {
	case *stages.WaveSubmitted:
		return c.waveSubmitted(m, out)
	case *stages.TicketDone:
		return c.ticketDone(m, out)
	case *stages.DrainStep:
		c.drains = append(c.drains, m)
		c.endDrains(out)
	case *stages.CollectStats:
		out.Answer(m.Caller, m)
	default:
		return fmt.Errorf("combine: unexpected message %T", in)
	}
	return nil
}

// Waves returns how many waves are in the ring.
func (c *Core) Waves() int { return len(c.ring) }

// Level tells how many waves are in the ring.
func (c *Core) Level(l *record.Level) { l.Waves = int32(len(c.ring)) }

func (c *Core) waveSubmitted(m *stages.WaveSubmitted, out *stages.Outbox) error {
	if m.Ticket == nil {
		return fmt.Errorf("combine: wave %d of %v has no ticket", m.Wave, &m.Step)
	}
	c.lastID++
	c.ring = append(c.ring, entry{id: c.lastID, wave: *m})
	out.Awaits = append(out.Awaits, stages.Await{Step: m.Step, ID: c.lastID, Ticket: m.Ticket, After: m.After})
	return nil
}

func (c *Core) ticketDone(m *stages.TicketDone, out *stages.Outbox) error {
	at := -1
	for i := range c.ring {
		if c.ring[i].id == m.ID {
			at = i
		}
	}
	if at < 0 || c.ring[at].done {
		return fmt.Errorf("combine: ticket %d of %v is not in the ring, or done already", m.ID, &m.Step)
	}
	c.ring[at].done = true
	if m.Err != nil {
		out.Send(stages.Sequencer, &stages.StepFailed{Step: c.ring[at].wave.Step, Stage: stages.Combine, Err: m.Err})
	}
	c.retire(out)
	c.endDrains(out)
	return nil
}

// retire ends the oldest waves, as far as they are done: on each part of the device, of urgent
// steps and of others.
func (c *Core) retire(out *stages.Outbox) {
	rest := c.ring[:0]
	c.held.clear(len(c.Borders) + 1)
	for i := range c.ring {
		w := &c.ring[i].wave
		if c.held.holds(c.Borders.Part(w.Layer), w, c.ring[i].done) {
			rest = append(rest, c.ring[i])
			continue
		}
		if len(w.Slots) > 0 { // neither a dense layer nor one routed on the device has any
			out.Send(stages.ExpertIO, out.Spent().SlotsReleased(w.Step, w.Wave, w.Slots))
		}
		if w.Last {
			if w.Plan != nil {
				out.Spent().PlanDone(w.Plan)
			}
			out.Send(stages.Sequencer, out.Spent().LayerRetired(w.Step, w.More))
		}
	}
	clear(c.ring[len(rest):])
	c.ring = rest
}

func (h *held) clear(parts int) {
	if h.orders == nil {
		h.orders = make([][stages.Orders]bool, parts)
	}
	clear(h.orders)
	h.steps = h.steps[:0]
}

// holds reports whether a wave is not done, or held by one before it, and holds others then.
func (h *held) holds(part int, w *stages.WaveSubmitted, done bool) bool {
	order := &h.orders[part][w.Batch.Order()]
	if done && !*order && !slices.Contains(h.steps, w.ID) {
		return false
	}
	*order = true
	h.steps = append(h.steps, w.ID)
	return true
}

// endDrains reports failed steps that have no wave left to the sequencer.
func (c *Core) endDrains(out *stages.Outbox) {
	rest := c.drains[:0]
	for _, d := range c.drains {
		if c.holds(d.ID) {
			rest = append(rest, d)
			continue
		}
		out.Send(stages.Sequencer, &stages.StepDrained{Step: d.Step})
	}
	clear(c.drains[len(rest):])
	c.drains = rest
}

func (c *Core) holds(id stages.StepID) bool {
	for i := range c.ring {
		if c.ring[i].wave.ID == id {
			return true
		}
	}
	return false
}
