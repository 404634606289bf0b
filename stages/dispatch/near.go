package dispatch

import (
	"fmt"
	"math"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/stages"
)

// nearby is what the device's tables say of experts that are near, where others are far
// (Config.Far).
type nearby struct {
	sets  stages.NearSets // as the tables will be once moves is submitted
	moves []nearMove      // to come before what is submitted next
	left  []vacating      // oldest first
}

// nearMove is an entry of a table that changes.
type nearMove struct {
	stages.NearExpert
	leaves bool
}

// vacating is a slot that what was submitted up to a ticket may read.
type vacating struct {
	slot   stages.SlotID
	ticket uint64
}

// moveExperts notes moves for the next submission: what is submitted now goes by the tables as they
// are.
func (c *Core) moveExperts(m *stages.MoveExperts) error {
	if len(c.near.sets) == 0 {
		return fmt.Errorf("dispatch: experts move, but none is far")
	}
	for _, x := range m.Come {
		c.near.moves = append(c.near.moves, nearMove{x, false})
	}
	for _, x := range m.Leave {
		c.near.moves = append(c.near.moves, nearMove{x, true})
	}
	return nil
}

// home returns the slot that an expert has from the beginning.
func (c *Core) home(layer, expert int) stages.SlotID {
	return stages.SlotID(layer*c.cfg.Model.NumExperts + expert)
}

// moving reports whether the moves go with a recording. An urgent one may overtake others, whose
// copies in transit are what the tables said before; so the moves wait for those to be done, or for
// one of their order.
func (c *Core) moving(r *recording) bool {
	if len(c.near.moves) == 0 {
		return false
	}
	return c.transit == nil || !r.Urgent || len(*c.list(r.Part, false)) == 0
}

// encodeMoves replaces the entries of experts that have moved, and reports whether there are any.
// If the recording is refused they come before the next one again.
func (c *Core) encodeMoves(r *recording) (moving bool) {
	if !c.moving(r) {
		return false
	}
	m := c.cfg.Model
	for _, x := range c.near.moves {
		layer, e := int(x.Layer), int(x.Expert)
		slot, transit := x.Slot, x.Slot
		if x.leaves {
			slot = c.home(layer, e)
		}
		c.encodeMove(&r.Commands, c.tables, layer, e, slot)
		if c.transit != nil {
			if x.leaves {
				transit = c.transit.slot(c.cfg, layer, e)
			}
			c.encodeMove(&r.Commands, c.transit.tables, layer, e, transit)
		}
		c.near.sets.Put(m.Layers[layer].MoEIndex, m.NumExperts, x.Expert, !x.leaves)
	}
	return true
}

func (c *Core) encodeMove(cmd *gpu.Commands, t *tables, layer, expert int, slot stages.SlotID) {
	e := c.net.expert(c.cfg.Layout(layer), layer, expert, c.slots.View(slot))
	gpu.Encode(cmd, gpu.Retabulate{Table: &t.layers[layer], Index: expert, Expert: e})
}

// moved notes that the moves were submitted with the last ticket.
func (c *Core) moved() {
	n := &c.near
	for _, x := range n.moves {
		if x.leaves {
			n.left = append(n.left, vacating{x.Slot, c.lastTicket})
		}
	}
	n.moves = n.moves[:0]
}

// tellVacated gives back the slots that nothing reads any more: all that was submitted before their
// experts' entries were replaced is done, in whatever order the device takes it.
func (c *Core) tellVacated(out *stages.Outbox) {
	n := &c.near
	if len(n.left) == 0 {
		return
	}
	oldest := uint64(math.MaxUint64)
	for _, orders := range c.recorded {
		for _, list := range orders {
			if len(list) > 0 {
				oldest = min(oldest, list[0].ticket)
			}
		}
	}
	done := 0
	for done < len(n.left) && n.left[done].ticket < oldest {
		done++
	}
	if done == 0 {
		return
	}
	m := out.Spent().SlotsVacated()
	for _, x := range n.left[:done] {
		m.Slots = append(m.Slots, x.slot)
	}
	n.left = append(n.left[:0], n.left[done:]...)
	out.Send(stages.ExpertIO, m)
}

// noteNear notes for the lane which of a layer's experts are near as the layer is recorded.
func (c *Core) noteNear(l *lane, n int) {
	if len(c.near.sets) == 0 {
		return
	}
	words := stages.NearWords(c.cfg.Model.NumExperts)
	copy(l.near[n*words:(n+1)*words], c.near.sets[n*words:])
}
