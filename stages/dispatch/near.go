package dispatch

import (
	"fmt"
	"math"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// nearby is what the device's tables say of experts that are near, where others are far
// (Config.Far).
type nearby struct {
	sets  stages.NearSets // as the tables will be once moves is submitted
	sure  stages.NearSets // of these, what the device is known to have in its tables
	moves []nearMove      // to come before what is submitted next
	sent  []nearMove      // submitted and not done; others wait for that
	left  []nearMove      // done, of experts that left: their slots may still be read
}

// nearMove is an entry of a table that changes.
type nearMove struct {
	stages.NearExpert
	leaves bool
	ticket uint64 // of its submission
}

// moveExperts notes moves for the next submission: what is submitted now goes by the tables as they
// are.
func (c *Core) moveExperts(m *stages.MoveExperts) error {
	if len(c.near.sets) == 0 {
		return fmt.Errorf("dispatch: experts move, but none is far")
	}
	for _, x := range m.Come {
		c.near.moves = append(c.near.moves, nearMove{NearExpert: x})
	}
	for _, x := range m.Leave {
		c.near.moves = append(c.near.moves, nearMove{NearExpert: x, leaves: true})
	}
	return nil
}

// home returns the slot that an expert has from the beginning.
func (c *Core) home(layer, expert int) stages.SlotID {
	return stages.SlotID(layer*c.cfg.Model.NumExperts + expert)
}

// submitMoves replaces the entries of experts that have moved, before a step's work. An urgent step
// may overtake others, whose copies in transit are what the tables said before; so the moves wait
// for those to be done, or for a step of their order.
func (c *Core) submitMoves(b *stages.Batch, part int, out *stages.Outbox) error {
	n := &c.near
	if len(n.moves) == 0 || len(n.sent) > 0 {
		return nil
	}
	if c.transit != nil && b.Urgent && len(*c.list(part, false)) > 0 {
		return nil
	}
	r := c.record(nil, record.State)
	r.Urgent, r.Part = b.Urgent, part
	for _, x := range n.moves {
		c.encodeMoves(&r.Commands, x)
	}
	if err := c.await(r, awaited{moved: true}, out); err != nil {
		return err
	}
	for _, x := range n.moves {
		x.ticket = c.lastTicket
		n.sent = append(n.sent, x)
	}
	n.moves = n.moves[:0]
	return nil
}

// encodeMoves replaces an expert's entries.
func (c *Core) encodeMoves(cmd *gpu.Commands, x nearMove) {
	m, layer, e := c.cfg.Model, int(x.Layer), int(x.Expert)
	slot, transit := x.Slot, x.Slot
	if x.leaves {
		slot = c.home(layer, e)
	}
	c.encodeMove(cmd, c.tables, layer, e, slot)
	if c.transit != nil {
		if x.leaves {
			transit = c.transit.slot(c.cfg, layer, e)
		}
		c.encodeMove(cmd, c.transit.tables, layer, e, transit)
	}
	at := m.Layers[layer].MoEIndex
	if c.near.sets.Put(at, m.NumExperts, x.Expert, !x.leaves); x.leaves {
		c.near.sure.Put(at, m.NumExperts, x.Expert, false)
	}
}

func (c *Core) encodeMove(cmd *gpu.Commands, t *tables, layer, expert int, slot stages.SlotID) {
	e := c.net.expert(c.cfg.Layout(layer), layer, expert, c.slots.View(slot))
	gpu.Encode(cmd, gpu.Retabulate{Table: &t.layers[layer], Index: expert, Expert: e})
}

// moved handles the end of the moves that were submitted. If they failed they are made again: until
// then the tables name slots that nobody else gets.
func (c *Core) moved(err error) {
	n, m := &c.near, c.cfg.Model
	if err != nil {
		n.moves = append(n.sent, n.moves...)
		n.sent = nil
		return
	}
	for _, x := range n.sent {
		n.sure.Put(m.Layers[x.Layer].MoEIndex, m.NumExperts, x.Expert, !x.leaves)
		if x.leaves {
			n.left = append(n.left, x)
		}
	}
	n.sent = n.sent[:0]
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
		m.Slots = append(m.Slots, x.Slot)
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
