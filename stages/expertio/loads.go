package expertio

import (
	"fmt"
	"slices"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// load is the experts of one layer of one step on their way to dispatch.
type load struct {
	step     stages.Step
	plan     *stages.RoutePlan
	uses     []use         // of plan.Uses
	left     int           // uses that neither have a slot nor are away
	ready    int           // uses in memory and not sent
	unsent   int           // uses not sent and not lost
	hedged   bool          // uses were asked for twice
	answered int           // uses that hosts have computed and that are not sent
	waves    int           // sent
	ended    bool          // the last wave is sent
	failed   error         // set when all sequences are lost
	losses   []stages.Loss // the sequences that are lost
	unread   int           // uses that hosts are to be asked for since they could not be read
	readErr  error         // why, of the last one
	short    stall         // it lacks slots, or may not read what it lacks
	credit   stall         // its next wave could be sent but for the ring
}

// use is one expert of a load.
type use struct {
	slot   stages.SlotID // none until there is one
	state  useState
	failed uint32    // the hosts, as bits, that could not compute it
	rows   []float32 // answered: what a host has computed
	hosts  int8      // that are asked for it and have not answered
	noRead bool      // it could not be read here
}

type useState uint8

const (
	wanted useState = iota // without a slot, or its slot is being read into
	ready
	sent
	lost     // its expert could not be read
	asked    // a host computes it
	answered // a host has
	unread   // it could not be read here, and a host is to be asked
)

// open reports whether the use has no slot and needs one.
func (u *use) open() bool { return u.slot == none && u.state == wanted }

// none is no slot.
const none stages.SlotID = -1

// waiter is a use that waits for the read into a slot.
type waiter struct {
	load *load
	use  int
}

// newLoad returns a load, in the memory of an earlier one if possible.
func (c *Core) newLoad(s stages.Step, plan *stages.RoutePlan) *load {
	var l *load
	if n := len(c.spareLoads) - 1; n >= 0 {
		l, c.spareLoads = c.spareLoads[n], c.spareLoads[:n]
	} else {
		l = new(load)
	}
	n := len(plan.Uses)
	*l = load{step: s, plan: plan, uses: l.uses[:0], left: n, unsent: n, losses: plan.Losses}
	for range n {
		l.uses = append(l.uses, use{slot: none})
	}
	return l
}

// over keeps the memory of a load for the next one.
func (c *Core) over(l *load) {
	c.gaveUp(l)
	if l.hedged { // a host that is late still has an ask for it
		c.abandon(l)
	}
	clear(l.uses)
	*l = load{uses: l.uses[:0]}
	c.spareLoads = append(c.spareLoads, l)
}

func (c *Core) layerRouted(m *stages.LayerRouted) error {
	if err := c.checkPlan(m); err != nil {
		return err
	}
	c.place(&m.Step)
	c.slots.routed(side(&m.Step), m.Layer, len(m.Batch.Rows), m.Plan.Uses)
	at := len(c.queue)
	if m.Batch.Urgent {
		at = c.firstOrdinary()
		c.urgent.routed(m, c.pace.now)
	}
	c.queue = slices.Insert(c.queue, at, c.newLoad(m.Step, m.Plan))
	return nil
}

// checkPlan reports a plan that cannot be served.
func (c *Core) checkPlan(m *stages.LayerRouted) error {
	if m.Plan == nil || m.Batch == nil {
		return fmt.Errorf("expertio: %v is routed without a plan or a batch", &m.Step)
	}
	if m.Layer < 0 || m.Layer >= c.cfg.Layers {
		return fmt.Errorf("expertio: a plan for %v of a model with %d layers", &m.Step, c.cfg.Layers)
	}
	if len(m.Plan.Uses) == 0 {
		return fmt.Errorf("expertio: the plan for %v has no experts", &m.Step)
	}
	before := int32(-1)
	for _, u := range m.Plan.Uses {
		if u.Expert <= before || int(u.Expert) >= c.cfg.Experts {
			return fmt.Errorf("expertio: the plan for %v has expert %d after %d, want them ascending and below %d",
				&m.Step, u.Expert, before, c.cfg.Experts)
		}
		before = u.Expert
	}
	return nil
}

// assign gives loads their slots, those of urgent steps first and otherwise in order of arrival,
// and asks for the reads that they need. It runs as far ahead of the device as there are slots, and
// for loads that are not urgent no further than keeps the disk busy. Loads wait for slots of their
// own part of the device alone.
func (c *Core) assign(out *stages.Outbox) {
	clear(c.full)
	for i, l := range c.queue {
		if l.failed == nil && l.left > 0 {
			reason, ok := record.Room, false
			if part := c.part(&l.step); !c.full[part] {
				reason, ok = c.assignLoad(l, out)
				c.full[part] = !ok
			}
			switch {
			case ok:
			case reason != record.Room || !slices.Contains(c.full, false):
				c.stopAll(c.queue[i:], reason)
				return
			default:
				c.stopped(l, &l.short, reason, c.inTheWay(reason))
				continue
			}
		}
		c.goesOn(l, &l.short)
	}
}

// assignLoad gives a load slots and reports whether it has all of them, or what it waits for. It
// pins what is in memory before it evicts anything. What hosts own they are asked for. The other
// experts are read in the order in which they lie in the file.
func (c *Core) assignLoad(l *load, out *stages.Outbox) (waits record.Reason, ok bool) {
	st := &c.layers[l.step.Layer]
	for i := range l.uses {
		if !l.uses[i].open() {
			continue
		}
		if id, ok := c.slots.find(c.keyOf(l, i)); ok {
			s := c.slots.at(id)
			if s.state == filling {
				c.charge(l, i, late, s)
			} else {
				c.charge(l, i, hit, s)
			}
			c.noteUse(l, i, id, c.found(s))
			c.countHit(id, st)
			c.hurry(id, l, out)
			c.hold(l, i, id)
		}
	}
	c.askFor(l, out)
	first, rank := len(c.reads), stages.RankOf(l.step.Batch.Urgent, false)
	for i := range l.uses {
		if !l.uses[i].open() {
			continue
		}
		var held bool
		if waits, held = c.heldBack(l.step.Layer, rank); held {
			break
		}
		id, wasted, ok := c.slots.take(c.keyOf(l, i))
		if !ok {
			waits = record.Room
			break
		}
		c.countWasted(wasted)
		st.Misses++
		c.charge(l, i, missed, nil)
		c.hold(l, i, id)
		c.reads = append(c.reads, c.readInto(id, rank, c.notes.demand(l.step.ID)))
		c.noteUse(l, i, id, record.Missing)
	}
	c.group(out, l.step, first, rank)
	return waits, l.left == 0
}

func (c *Core) keyOf(l *load, use int) int {
	return l.step.Layer*c.cfg.Experts + int(l.plan.Uses[use].Expert)
}

// hold gives a load the slot for one of its uses.
func (c *Core) hold(l *load, use int, id stages.SlotID) {
	c.slots.pin(side(&l.step), id)
	l.uses[use].slot = id
	l.left--
	if s := c.slots.at(id); s.state == filling {
		s.waiting = append(s.waiting, waiter{l, use})
	} else {
		l.uses[use].state = ready
		l.ready++
	}
}

// countHit counts a use whose expert is in memory or on its way there.
func (c *Core) countHit(id stages.SlotID, st *stages.LayerStats) {
	st.Hits++
	c.countUsed(id, st)
}
