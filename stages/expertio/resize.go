package expertio

import "github.com/moeflux/moeflux-actor/stages"

// shrinkAtOnce is how many slots one message gives up: giving memory back takes the system some 100
// µs a slot, in which no stage works.
const shrinkAtOnce = 8

// resize is the way to another number of slots.
type resize struct {
	limit   int             // the slots that are wanted
	callers []stages.Caller // who wait for that
	going   bool            // a shrinkOn is under way
}

// shrinkOn makes the stage go on giving up slots. It sends it to itself, behind what others want of
// it.
type shrinkOn struct{ stages.Outside }

// resizeSlots sets the number of slots. Callers who still wait for an earlier number are answered
// with what there is.
func (c *Core) resizeSlots(m *stages.ResizeSlots, out *stages.Outbox) {
	c.answerResized(out)
	if !c.cfg.Mapped {
		c.resize.limit = max(c.cfg.WaveSlots, min(m.Slots, len(c.slots.all)))
	}
	c.resize.callers = append(c.resize.callers, m.Caller)
	for c.slots.live() < c.resize.limit {
		c.slots.comeBack()
	}
}

// shrink gives up slots that are too many: empty ones, then those of the experts that should leave
// first. Slots in use are given up when they come home.
func (c *Core) shrink(out *stages.Outbox) {
	for n := 0; c.slots.live() > c.resize.limit; n++ {
		if n == shrinkAtOnce {
			if !c.resize.going {
				c.resize.going = true
				out.Send(stages.ExpertIO, new(shrinkOn))
			}
			return
		}
		id, evicted, ok := c.slots.giveUp()
		if !ok {
			return
		}
		c.countWasted(evicted)
		out.Frees = append(out.Frees, id)
	}
	c.answerResized(out)
}

func (c *Core) answerResized(out *stages.Outbox) {
	for _, to := range c.resize.callers {
		out.Answer(to, &stages.SlotsResized{Slots: c.slots.live()})
	}
	clear(c.resize.callers)
	c.resize.callers = c.resize.callers[:0]
}
