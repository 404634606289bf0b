package expertio

import (
	"slices"

	"github.com/moeflux/moeflux-actor/stages"
)

// shrinkAtOnce is how many slots one message gives up. The system takes some 100 µs to free the
// memory of a slot, in which no stage works.
const shrinkAtOnce = 8

// resize is the way to another number of slots.
type resize struct {
	bounds  [2]int    // of the caller, of the memory
	waiting []resizer // for the smaller of them
	going   bool      // a shrinkOn is under way
}

// resizer waits for the answer to a ResizeSlots.
type resizer struct {
	caller stages.Caller
	bound  int // which it set
}

// limit returns how many slots there should be.
func (r *resize) limit() int { return min(r.bounds[0], r.bounds[1]) }

// shrinkOn makes the stage give up more slots. It sends it to itself, so that messages of others
// come first.
type shrinkOn struct{ stages.Outside }

func (*shrinkOn) MessageKind() stages.Kind { return stages.KindOther }

// resizeSlots sets a bound of the number of slots. Callers who still wait for an earlier one of the
// same kind are answered with what there is.
func (c *Core) resizeSlots(m *stages.ResizeSlots, out *stages.Outbox) {
	bound := 0
	if m.Memory {
		bound = 1
	}
	c.answerResized(func(r resizer) bool { return r.bound == bound }, out)
	if !c.cfg.Mapped {
		c.resize.bounds[bound] = max(c.slots.least, min(m.Slots, len(c.slots.all)))
	}
	c.resize.waiting = append(c.resize.waiting, resizer{m.Caller, bound})
	for c.slots.live() < c.resize.limit() {
		c.slots.comeBack()
	}
}

// shrink gives up surplus slots: empty ones first, then those of the experts that should leave
// first. Slots in use are given up when they come home.
func (c *Core) shrink(out *stages.Outbox) {
	for n := 0; c.slots.live() > c.resize.limit(); n++ {
		if n == shrinkAtOnce {
			if !c.resize.going {
				c.resize.going = true
				out.Send(stages.ExpertIO, new(shrinkOn))
			}
			return
		}
		id, wasted, ok := c.slots.giveUp(c.cfg.WaveSlots)
		if !ok {
			return
		}
		c.countWasted(wasted)
		out.Frees = append(out.Frees, id)
	}
	c.answerResized(func(resizer) bool { return true }, out)
}

// answerResized answers those who wait and are meant.
func (c *Core) answerResized(meant func(resizer) bool, out *stages.Outbox) {
	c.resize.waiting = slices.DeleteFunc(c.resize.waiting, func(r resizer) bool {
		if !meant(r) {
			return false
		}
		out.Answer(r.caller, &stages.SlotsResized{Slots: c.slots.live()})
		return true
	})
}
