package expertio

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/stages"
)

// Config sizes the stage.
type Config struct {
	Layers, Experts int
	ExpertBytes     int // of one record
	Slots           int // ignored if Mapped
	WaveSlots       int // most experts of one wave; the slots that speculation leaves alone
	RingDepth       int // most waves sent and not released
	// Mapped means that slot layer·Experts+expert holds that expert for ever.
	Mapped bool
}

// Core is the stage.
type Core struct {
	cfg   Config
	slots slots
	queue []*wave // not sent, in order of arrival
	inUse int     // waves sent and not released

	highWater  int
	waves      int64
	readErrors int64
	layers     []stages.LayerStats // the fields that are this stage's
}

// wave is one wave of one plan, waiting for its experts.
type wave struct {
	step    stages.Step
	plan    *stages.RoutePlan
	index   int
	slots   []stages.SlotID // [assigned]; full length once all are assigned
	missing int             // assigned slots that are still being read
	failed  error           // a read that this wave needs has failed
}

func (w *wave) uses() []stages.ExpertUse { return w.plan.Waves[w.index].Uses }
func (w *wave) assigned() bool           { return len(w.slots) == len(w.uses()) }
func (w *wave) complete() bool           { return w.failed == nil && w.missing == 0 && w.assigned() }

var _ stages.Core = (*Core)(nil)

// New returns the stage with empty slots, or with every expert in place if cfg.Mapped.
func New(cfg Config) (*Core, error) {
	if cfg.Mapped {
		cfg.Slots = cfg.Layers * cfg.Experts
	}
	if cfg.Slots < cfg.WaveSlots {
		return nil, fmt.Errorf("expertio: %d slots are less than a wave of %d experts", cfg.Slots, cfg.WaveSlots)
	}
	c := &Core{cfg: cfg, layers: make([]stages.LayerStats, cfg.Layers)}
	c.slots.init(cfg.Slots, cfg.Layers*cfg.Experts)
	if cfg.Mapped {
		for i := range cfg.Slots {
			c.slots.settle(stages.SlotID(i), i)
		}
	}
	return c, nil
}

// Step handles one message.
func (c *Core) Step(in stages.Message, out *stages.Outbox) error {
	switch m := in.(type) {
	case *stages.LayerRouted:
		c.layerRouted(m)
	case *stages.PrefetchExperts:
		c.prefetch(m, out)
		return nil
	case *stages.ExpertsRead:
		if err := c.expertsRead(m, out); err != nil {
			return err
		}
	case *stages.SlotsReleased:
		if err := c.slotsReleased(m); err != nil {
			return err
		}
	case *stages.DrainStep:
		c.drainStep(m, out)
	case *stages.CollectStats:
		c.collectStats(m, out)
		return nil
	default:
		return fmt.Errorf("expertio: unexpected message %T", in)
	}
	c.assign(out)
	c.send(out)
	return nil
}

func (c *Core) layerRouted(m *stages.LayerRouted) {
	for i := range m.Plan.Waves {
		c.queue = append(c.queue, &wave{step: m.Step, plan: m.Plan, index: i})
	}
}

// assign gives waves their slots, in order of arrival, and asks for the reads that are needed.
func (c *Core) assign(out *stages.Outbox) {
	for _, w := range c.queue {
		if w.failed == nil && !w.assigned() && !c.assignWave(w, out) {
			return
		}
	}
}

// assignWave reports whether the wave has all its slots.
func (c *Core) assignWave(w *wave, out *stages.Outbox) bool {
	var reads []stages.Read
	uses, st := w.uses(), &c.layers[w.step.Layer]
	if w.slots == nil {
		w.slots = make([]stages.SlotID, 0, len(uses))
	}
	for _, u := range uses[len(w.slots):] {
		key := w.step.Layer*c.cfg.Experts + int(u.Expert)
		id, ok := c.slots.find(key)
		if !ok {
			var evicted int
			if id, evicted, ok = c.slots.take(key); !ok {
				break
			}
			c.countEvicted(evicted)
			st.Misses++
			reads = append(reads, stages.Read{Slot: id, Gen: c.slots.at(id).gen, Layer: w.step.Layer, Expert: int(u.Expert)})
		} else {
			c.countHit(id, st)
		}
		c.slots.pin(id)
		w.slots = append(w.slots, id)
		if s := c.slots.at(id); s.state == filling {
			w.missing++
			s.waiting = append(s.waiting, w)
		}
	}
	if len(reads) > 0 {
		out.Reads = append(out.Reads, stages.ReadGroup{Step: w.step, Reads: reads})
	}
	return w.assigned()
}

// countHit counts a pick whose expert is in memory or on its way there.
func (c *Core) countHit(id stages.SlotID, st *stages.LayerStats) {
	st.Hits++
	s := c.slots.at(id)
	if s.foretold {
		s.foretold = false
		if s.state == filling {
			st.PrefetchLate++
		} else {
			st.PrefetchHit++
		}
	}
}

// countEvicted counts a speculative read that nobody used. key is what the slot held, or -1.
func (c *Core) countEvicted(key int) {
	if key >= 0 {
		c.layers[key/c.cfg.Experts].PrefetchWasted++
	}
}

// prefetch starts speculative reads for experts that have no slot. It leaves a wave's worth of slots to demand.
func (c *Core) prefetch(m *stages.PrefetchExperts, out *stages.Outbox) {
	st := &c.layers[m.Layer]
	var reads []stages.Read
	for _, e := range m.Experts {
		key := m.Layer*c.cfg.Experts + int(e)
		if _, ok := c.slots.find(key); ok {
			continue
		}
		if c.slots.spare() <= c.cfg.WaveSlots {
			st.PrefetchDropped++
			continue
		}
		id, evicted, ok := c.slots.take(key)
		if !ok {
			st.PrefetchDropped++
			continue
		}
		c.countEvicted(evicted)
		s := c.slots.at(id)
		s.foretold, s.speculative = true, true
		reads = append(reads, stages.Read{Slot: id, Gen: s.gen, Layer: m.Layer, Expert: int(e)})
	}
	if len(reads) > 0 {
		out.Reads = append(out.Reads, stages.ReadGroup{Step: m.Step, Reads: reads, Speculative: true})
	}
}

func (c *Core) expertsRead(m *stages.ExpertsRead, out *stages.Outbox) error {
	for _, r := range m.Results {
		s := c.slots.at(r.Slot)
		if s.gen != r.Gen || s.state != filling {
			return fmt.Errorf("expertio: read of slot %d generation %d ended, but the slot is in generation %d and not being read", r.Slot, r.Gen, s.gen)
		}
		if r.Err != nil {
			c.readErrors++
			c.readFailed(r, out)
			continue
		}
		c.layers[s.key/c.cfg.Experts].BytesRead += int64(c.cfg.ExpertBytes)
		for _, w := range s.waiting {
			w.missing--
		}
		c.slots.filled(r.Slot)
	}
	return nil
}

// readFailed retries a speculative read that somebody waits for by now as demand, and else fails the steps that wait.
func (c *Core) readFailed(r stages.ReadResult, out *stages.Outbox) {
	s := c.slots.at(r.Slot)
	layer, expert := s.key/c.cfg.Experts, s.key%c.cfg.Experts
	if s.speculative && len(s.waiting) > 0 {
		s.speculative = false
		s.gen++
		out.Reads = append(out.Reads, stages.ReadGroup{Step: s.waiting[0].step, Reads: []stages.Read{
			{Slot: r.Slot, Gen: s.gen, Layer: layer, Expert: expert},
		}})
		return
	}
	for _, w := range s.waiting {
		w.missing--
		if w.failed == nil {
			w.failed = r.Err
			out.Send(stages.Sequencer, &stages.StepFailed{Step: w.step, Stage: stages.ExpertIO, Err: r.Err})
		}
	}
	c.slots.spoil(r.Slot)
}

// send passes on every wave that is complete, while the ring has credits. A layer's waves keep their order.
func (c *Core) send(out *stages.Outbox) {
	rest := c.queue[:0]
	for _, w := range c.queue {
		if c.inUse >= c.cfg.RingDepth || !w.complete() || holds(rest, w.step.ID) {
			rest = append(rest, w)
			continue
		}
		c.inUse++
		c.waves++
		c.highWater = max(c.highWater, c.inUse)
		out.Send(stages.Dispatch, &stages.WaveResident{
			Step: w.step, Plan: w.plan, Wave: w.index, Last: w.index == len(w.plan.Waves)-1, Slots: w.slots,
		})
	}
	clear(c.queue[len(rest):])
	c.queue = rest
}

// holds reports whether a wave of the step is in the list.
func holds(list []*wave, id stages.StepID) bool {
	for _, w := range list {
		if w.step.ID == id {
			return true
		}
	}
	return false
}

func (c *Core) slotsReleased(m *stages.SlotsReleased) error {
	c.inUse--
	for _, id := range m.Slots {
		if err := c.slots.unpin(id); err != nil {
			return err
		}
	}
	return nil
}

// drainStep drops the waves of a failed step. What is being read for them stays, and becomes resident.
func (c *Core) drainStep(m *stages.DrainStep, out *stages.Outbox) {
	rest := c.queue[:0]
	for _, w := range c.queue {
		if w.step.ID != m.ID {
			rest = append(rest, w)
			continue
		}
		for _, id := range w.slots {
			c.slots.forget(id, w)
		}
	}
	clear(c.queue[len(rest):])
	c.queue = rest
	m2 := *m
	m2.Hop = 1
	out.Send(stages.Dispatch, &m2)
}

func (c *Core) collectStats(m *stages.CollectStats, out *stages.Outbox) {
	s := m.Stats
	s.Slots, s.ReadErrors, s.WavesSubmitted, s.RingHighWater = c.cfg.Slots, c.readErrors, c.waves, c.highWater
	for i, l := range c.layers {
		t := &s.Layers[i]
		t.Hits, t.Misses, t.BytesRead = l.Hits, l.Misses, l.BytesRead
		t.PrefetchHit, t.PrefetchLate = l.PrefetchHit, l.PrefetchLate
		t.PrefetchWasted, t.PrefetchDropped = l.PrefetchWasted, l.PrefetchDropped
	}
	out.Send(stages.Dispatch, m)
}
