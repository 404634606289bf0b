package expertio

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/stages"
)

// prefetch takes a hint: what it names is kept if it is in memory, and read if it is not and the
// read is worth it.
//
// Reads are asked for in the order of the hint, the likeliest first, while there are spare slots
// beyond a wave's worth, which is left to demand, and only into slots of experts that are less
// likely themselves. Each is weighed in units of one read's time:
//
//	chance · saved > (1 - chance) · cost
//
// saved is how much of it the disk can do before its layer is due: the time that is left by
// experience, less everything that the disk has to do before (reads under way, what the layers
// between will miss, the reads asked for just now), at most 1; so what could not even begin in time
// is not read. cost is what a read for nothing takes from others: the share of time in which the
// disk has reads to do that somebody waits for, and slotCost for the slot that another expert had.
// Before there is experience time is taken to suffice.
func (c *Core) prefetch(m *stages.PrefetchExperts, out *stages.Outbox) error {
	if err := c.checkHint(m); err != nil {
		return err
	}
	st, due := &c.layers[m.Layer], c.pace.foretold(m)
	room, cost := c.pace.room(m, due), c.pace.cost()
	first := len(c.reads)
	for i, e := range m.Experts {
		key, chance := m.Layer*c.cfg.Experts+int(e), float64(m.Chances[i])
		c.slots.foretell(key, m.Chances[i])
		if _, ok := c.slots.find(key); ok {
			continue
		}
		saved := min(1, max(0, room-float64(len(c.reads)-first)))
		switch {
		case c.pauses[m.Layer].on():
			st.PrefetchSkipped++
			out.Hint.Skipped++
			continue
		case c.slots.spare() <= c.cfg.WaveSlots || !c.slots.spareFor(chance):
			st.PrefetchDropped++
			out.Hint.Dropped++
			continue
		case chance*saved <= (1-chance)*cost:
			st.PrefetchDeclined++
			out.Hint.Declined++
			continue
		}
		id, evicted, ok := c.slots.take(key)
		if !ok {
			st.PrefetchDropped++
			out.Hint.Dropped++
			continue
		}
		c.countWasted(evicted)
		s := c.slots.at(id)
		s.foretold, s.speculative = true, true
		st.PrefetchIssued++
		out.Hint.Issued++
		c.reads = append(c.reads, c.readInto(id))
	}
	c.group(out, m.Step, first, true)
	return nil
}

// checkHint reports a hint about experts that there are not.
func (c *Core) checkHint(m *stages.PrefetchExperts) error {
	if m.Layer < 0 || m.Layer >= c.cfg.Layers || m.Ahead < 0 {
		return fmt.Errorf("expertio: experts are foretold for %v, %d layers ahead, of a model with %d layers", &m.Step, m.Ahead, c.cfg.Layers)
	}
	if len(m.Chances) != len(m.Experts) {
		return fmt.Errorf("expertio: %d experts are foretold for %v with %d chances", len(m.Experts), &m.Step, len(m.Chances))
	}
	for i, e := range m.Experts {
		if e < 0 || int(e) >= c.cfg.Experts {
			return fmt.Errorf("expertio: expert %d of %d is foretold for %v", e, c.cfg.Experts, &m.Step)
		}
		if chance := m.Chances[i]; !(chance > 0 && chance <= 1) {
			return fmt.Errorf("expertio: expert %d is foretold for %v with a chance of %v", e, &m.Step, chance)
		}
	}
	return nil
}

// countUsed counts that an expert is wanted, if it was read for a prediction and nobody has wanted
// it before.
func (c *Core) countUsed(id stages.SlotID, st *stages.LayerStats) {
	s := c.slots.at(id)
	if !s.foretold {
		return
	}
	s.foretold = false
	p := &c.pauses[s.key/c.cfg.Experts]
	if s.state == filling {
		st.PrefetchLate++
		p.saved[0] += lateSaves
	} else {
		st.PrefetchHit++
		p.saved[0]++
	}
}

// countUnused counts as wasted what a slot was filled with, or should have been, if that was
// foretold and nobody has wanted it.
func (c *Core) countUnused(id stages.SlotID) {
	if s := c.slots.at(id); s.foretold {
		c.countWasted(s.key)
	}
}

// countWasted counts a speculative read that nobody used. key is what the slot held, or -1.
func (c *Core) countWasted(key int) {
	if key >= 0 {
		layer := key / c.cfg.Experts
		c.layers[layer].PrefetchWasted++
		c.pauses[layer].wasted[0]++
	}
}
