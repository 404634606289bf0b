package expertio

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/stages"
)

// wave is one wave of one plan, waiting for its experts.
type wave struct {
	step    stages.Step
	plan    *stages.RoutePlan
	index   int
	slots   []stages.SlotID // [uses], none where no slot is assigned
	left    int             // uses without a slot
	missing int             // assigned slots that are still being read
	failed  error           // a read that this wave needs has failed
}

// none is no slot.
const none stages.SlotID = -1

// newWave returns a wave in the memory of one that was sent, and with a list of slots that came home.
func (c *Core) newWave(s stages.Step, plan *stages.RoutePlan, index int) *wave {
	var w *wave
	if n := len(c.spareWaves) - 1; n >= 0 {
		w, c.spareWaves = c.spareWaves[n], c.spareWaves[:n]
	} else {
		w = new(wave)
	}
	*w = wave{step: s, plan: plan, index: index, left: len(plan.Waves[index].Uses)}
	if n := len(c.spareSlots) - 1; n >= 0 {
		w.slots, c.spareSlots = c.spareSlots[n][:0], c.spareSlots[:n]
	}
	for range w.left {
		w.slots = append(w.slots, none)
	}
	return w
}

func (w *wave) uses() []stages.ExpertUse { return w.plan.Waves[w.index].Uses }
func (w *wave) assigned() bool           { return w.left == 0 }
func (w *wave) complete() bool           { return w.failed == nil && w.missing == 0 && w.assigned() }

func (c *Core) layerRouted(m *stages.LayerRouted) error {
	if err := c.checkPlan(m); err != nil {
		return err
	}
	c.slots.routed(m.Layer, len(m.Batch.Rows), func(e int32) int { return m.Layer*c.cfg.Experts + int(e) }, m.Plan.Waves)
	for i := range m.Plan.Waves {
		c.queue = append(c.queue, c.newWave(m.Step, m.Plan, i))
	}
	return nil
}

// checkPlan reports a plan that could never be served.
func (c *Core) checkPlan(m *stages.LayerRouted) error {
	if m.Plan == nil {
		return fmt.Errorf("expertio: %v is routed without a plan", &m.Step)
	}
	if m.Layer < 0 || m.Layer >= c.cfg.Layers {
		return fmt.Errorf("expertio: a plan for %v of a model with %d layers", &m.Step, c.cfg.Layers)
	}
	for i, w := range m.Plan.Waves {
		if n := len(w.Uses); n == 0 || n > c.cfg.WaveSlots {
			return fmt.Errorf("expertio: wave %d of %v has %d experts, want 1 to %d", i, &m.Step, n, c.cfg.WaveSlots)
		}
		before := int32(-1)
		for _, u := range w.Uses {
			if u.Expert <= before || int(u.Expert) >= c.cfg.Experts {
				return fmt.Errorf("expertio: wave %d of %v has expert %d after %d, want them ascending and below %d",
					i, &m.Step, u.Expert, before, c.cfg.Experts)
			}
			before = u.Expert
		}
	}
	return nil
}

// assign gives waves their slots, in order of arrival, and asks for the reads that are needed.
func (c *Core) assign(out *stages.Outbox) {
	for _, w := range c.queue {
		if w.failed == nil && !w.assigned() && !c.assignWave(w, out) {
			return
		}
	}
}

// assignWave reports whether the wave has all its slots. What is in memory is pinned before anything is evicted.
func (c *Core) assignWave(w *wave, out *stages.Outbox) bool {
	st := &c.layers[w.step.Layer]
	for i := range w.slots {
		if w.slots[i] != none {
			continue
		}
		if id, ok := c.slots.find(c.keyOf(w, i)); ok {
			c.countHit(id, st)
			c.hold(w, i, id)
		}
	}
	var reads []stages.Read
	for i := range w.slots {
		if w.slots[i] != none {
			continue
		}
		key := c.keyOf(w, i)
		id, evicted, ok := c.slots.take(key)
		if !ok {
			break
		}
		c.countWasted(evicted)
		st.Misses++
		c.hold(w, i, id)
		reads = append(reads, c.readInto(id))
	}
	if len(reads) > 0 {
		out.Reads = append(out.Reads, stages.ReadGroup{Step: w.step, Reads: reads})
	}
	return w.assigned()
}

func (c *Core) keyOf(w *wave, use int) int {
	return w.step.Layer*c.cfg.Experts + int(w.uses()[use].Expert)
}

// hold gives a wave the slot for one of its uses.
func (c *Core) hold(w *wave, use int, id stages.SlotID) {
	c.slots.pin(id)
	w.slots[use] = id
	w.left--
	if s := c.slots.at(id); s.state == filling {
		w.missing++
		s.waiting = append(s.waiting, w)
	}
}

// readInto returns the read of the expert that a slot is for.
func (c *Core) readInto(id stages.SlotID) stages.Read {
	s := c.slots.at(id)
	return stages.Read{Slot: id, Gen: s.gen, Layer: s.key / c.cfg.Experts, Expert: s.key % c.cfg.Experts}
}

// countHit counts a pick whose expert is in memory or on its way there.
func (c *Core) countHit(id stages.SlotID, st *stages.LayerStats) {
	st.Hits++
	c.countUsed(id, st)
}
