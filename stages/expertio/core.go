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

	pace      pace
	pauses    []pause       // [layers]
	readAhead []stages.Read // of the hint that is being handled

	spareWaves []*wave
	spareSlots [][]stages.SlotID
}

var _ stages.Core = (*Core)(nil)

// New returns the stage with empty slots, or with every expert in place if cfg.Mapped.
func New(cfg Config) (*Core, error) {
	if cfg.Mapped {
		cfg.Slots = cfg.Layers * cfg.Experts
	}
	if cfg.Slots < cfg.WaveSlots {
		return nil, fmt.Errorf("expertio: %d slots are less than a wave of %d experts", cfg.Slots, cfg.WaveSlots)
	}
	c := &Core{cfg: cfg, layers: make([]stages.LayerStats, cfg.Layers), pace: newPace(cfg.Layers), pauses: make([]pause, cfg.Layers)}
	if err := c.slots.init(cfg.Slots, cfg.Layers, cfg.Experts, cfg.Mapped); err != nil {
		return nil, fmt.Errorf("expertio: %w", err)
	}
	return c, nil
}

// Step handles one message.
func (c *Core) Step(in stages.Message, out *stages.Outbox) error {
	c.pace.tick(in.Head())
	switch m := in.(type) {
	case *stages.LayerRouted:
		if err := c.layerRouted(m); err != nil {
			return err
		}
		c.judge(m, out)
	case *stages.PrefetchExperts:
		if err := c.prefetch(m, out); err != nil {
			return err
		}
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
		return c.collectStats(m, out)
	default:
		return fmt.Errorf("expertio: unexpected message %T", in)
	}
	c.assign(out)
	c.send(out)
	c.pace.asked(out.Reads)
	return nil
}

func (c *Core) expertsRead(m *stages.ExpertsRead, out *stages.Outbox) error {
	for _, r := range m.Results {
		if !c.slots.has(r.Slot) {
			return fmt.Errorf("expertio: a read of slot %d ended, there are %d", r.Slot, c.cfg.Slots)
		}
		s := c.slots.at(r.Slot)
		if s.gen != r.Gen || s.state != filling {
			return fmt.Errorf("expertio: read of slot %d generation %d ended, but the slot is in generation %d and not being read", r.Slot, r.Gen, s.gen)
		}
		c.pace.ended(s.speculative)
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
	if s.speculative && len(s.waiting) > 0 {
		s.speculative = false
		s.gen++
		out.Reads = append(out.Reads, stages.ReadGroup{Step: s.waiting[0].step, Reads: []stages.Read{c.readInto(r.Slot)}})
		return
	}
	for _, w := range s.waiting {
		w.missing--
		if w.failed == nil {
			w.failed = r.Err
			out.Send(stages.Sequencer, &stages.StepFailed{Step: w.step, Stage: stages.ExpertIO, Err: r.Err})
		}
	}
	c.countUnused(r.Slot)
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
		out.Send(stages.Dispatch, out.Spent().WaveResident(stages.WaveResident{
			Step: w.step, Plan: w.plan, Wave: w.index, Last: w.index == len(w.plan.Waves)-1, Slots: w.slots,
		}))
		*w = wave{}
		c.spareWaves = append(c.spareWaves, w)
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
	if c.inUse == 0 {
		return fmt.Errorf("expertio: wave %d of %v came home, but none is out", m.Wave, &m.Step)
	}
	c.inUse--
	for _, id := range m.Slots {
		if !c.slots.has(id) {
			return fmt.Errorf("expertio: slot %d of wave %d of %v came home, there are %d", id, m.Wave, &m.Step, c.cfg.Slots)
		}
		if err := c.slots.unpin(id); err != nil {
			return err
		}
	}
	if len(c.spareSlots) < c.cfg.RingDepth {
		c.spareSlots = append(c.spareSlots, m.Slots)
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
			if id != none {
				c.slots.forget(id, w)
			}
		}
	}
	clear(c.queue[len(rest):])
	c.queue = rest
	m2 := *m
	m2.Hop = 1
	out.Send(stages.Dispatch, &m2)
}

func (c *Core) collectStats(m *stages.CollectStats, out *stages.Outbox) error {
	s := m.Stats
	if s == nil || len(s.Layers) != len(c.layers) {
		return fmt.Errorf("expertio: figures %+v without those of %d layers", s, len(c.layers))
	}
	s.Slots, s.ReadErrors, s.WavesSubmitted, s.RingHighWater = c.cfg.Slots, c.readErrors, c.waves, c.highWater
	for i, l := range c.layers {
		t := &s.Layers[i]
		t.Hits, t.Misses, t.BytesRead = l.Hits, l.Misses, l.BytesRead
		t.PrefetchIssued, t.PrefetchHit, t.PrefetchLate, t.PrefetchWasted = l.PrefetchIssued, l.PrefetchHit, l.PrefetchLate, l.PrefetchWasted
		t.PrefetchDropped, t.PrefetchDeclined, t.PrefetchSkipped = l.PrefetchDropped, l.PrefetchDeclined, l.PrefetchSkipped
		t.PrefetchPauses, t.PrefetchPaused = l.PrefetchPauses, c.pauses[i].on()
	}
	for i := range c.slots.all {
		if f := &c.slots.all[i]; f.foretold {
			s.Layers[f.key/c.cfg.Experts].PrefetchHeld++
		}
	}
	out.Send(stages.Dispatch, m)
	return nil
}
