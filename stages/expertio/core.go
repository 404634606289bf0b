package expertio

import (
	"errors"
	"fmt"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// Config sizes the stage.
type Config struct {
	Layers, Experts int
	First           int // the first layer with experts; all layers after it have them
	ExpertBytes     int // of one record
	Slots           int // ignored if Mapped
	WaveSlots       int // the most experts of one wave; also the slots that speculation leaves free
	RingDepth       int // the most waves sent and not released
	// Reads is the most reads on demand that are asked for at once for steps that are not urgent:
	// enough to keep the disk busy. 0 means no bound, not even beside urgent steps.
	Reads int
	// Mapped means that slot layer·Experts+expert always holds that expert.
	Mapped bool
	// Near is how many slots the device's own memory has, where all experts lie in the host's and
	// the device reads the others there. They come after those of Mapped. 0: there are none.
	Near int
	// Single means that a step is a single layer, as on an expert host.
	Single bool
	// Hosts is how many expert hosts there are; none can be asked before a HostChanged says so.
	Hosts int
	// AskPicks is the most picks of one ask.
	AskPicks int
	// Chances, [Layers·Experts], is the share of rows in earlier runs that used each expert, 0 to
	// 1; nil if nothing is known.
	Chances []float64
	// Borders say which part of the device computes which layers, and Parts how many of the slots
	// lie in the memory of each part; they are nil where the device is not several.
	Borders stages.Borders
	Parts   []int
	// Order is which expert leaves first; nil means a policy.Order. Only comparisons set it.
	Order Order
}

// ring is the steps of the waves that were sent and not released, of each order.
type ring [stages.Orders][]stages.StepID

// Core is the stage.
type Core struct {
	cfg   Config
	slots slots
	queue []*load // not completely sent, in order of arrival
	rings []ring  // of each part of the device
	notes notes

	reading under // reads under way
	urgent  urgent
	warm    warm
	away    away
	resize  resize
	near    near
	forgets []stages.Caller // of ForgetExperts, not answered yet

	highWater  int
	waves      int64
	readErrors int64
	layers     []stages.LayerStats // the fields that are this stage's

	pace   pace
	pauses []pauses // [layers]

	total, nobody stages.Cost // see costs.go

	reads      []stages.Read // memory for the groups of reads of the present message
	spareLoads []*load
	spareSlots [][]stages.SlotID
	full       []bool // pools that have no slot for the loads before
}

var _ stages.Core = (*Core)(nil)

// New returns the stage with empty slots or, if cfg.Mapped, with every expert in its slot.
func New(cfg Config) (*Core, error) {
	if cfg.Mapped {
		cfg.Slots = cfg.Layers * cfg.Experts
	}
	if cfg.Slots < cfg.WaveSlots {
		return nil, fmt.Errorf("expertio: %d slots are less than a wave of %d experts", cfg.Slots, cfg.WaveSlots)
	}
	if n := cfg.Layers * cfg.Experts; cfg.Chances != nil && len(cfg.Chances) != n {
		return nil, fmt.Errorf("expertio: chances of %d experts, want those of %d", len(cfg.Chances), n)
	}
	c := &Core{cfg: cfg, notes: notes{log: new(record.Log)}, layers: make([]stages.LayerStats, cfg.Layers), pace: newPace(cfg.Layers), pauses: make([]pauses, cfg.Layers)}
	c.slots.notes = &c.notes
	if err := c.slots.init(&cfg); err != nil {
		return nil, fmt.Errorf("expertio: %w", err)
	}
	c.rings, c.full = make([]ring, len(c.slots.pools)), make([]bool, len(c.slots.pools))
	if err := c.away.init(&cfg); err != nil {
		return nil, err
	}
	if err := c.near.init(&cfg); err != nil {
		return nil, err
	}
	c.resize.bounds = [2]int{cfg.Slots, cfg.Slots}
	if !cfg.Mapped {
		c.seed()
	}
	return c, nil
}

// everything returns how many experts the model has.
func (c *Core) everything() int { return (c.cfg.Layers - c.cfg.First) * c.cfg.Experts }

// settled reports whether every expert is in memory, so that nothing need be read any more.
func (c *Core) settled() bool { return c.slots.residents >= c.everything() }

// Step handles one message.
func (c *Core) Step(in stages.Message, out *stages.Outbox) error {
	c.reads = c.reads[:0]
	c.notes.message(out)
	c.pace.tick(in.Head())
	switch m := in.(type) {
	case *stages.LayerRouted:
		if err := c.layerRouted(m); err != nil {
			return err
		}
		c.judge(m, out)
		c.recall(m, out)
	case *stages.PrefetchExperts:
		if err := c.prefetch(m, out); err != nil {
			return err
		}
	case *stages.ExpertsUsed:
		return c.expertsUsed(m, out)
	case *stages.SlotsVacated:
		return c.slotsVacated(m, out)
	case *stages.ExpertsRead:
		if c.cfg.Near > 0 {
			return c.nearFilled(m, out)
		}
		if err := c.expertsRead(m, out); err != nil {
			return err
		}
	case *stages.ReadOverdue:
		if err := c.readOverdue(m, out); err != nil {
			return err
		}
	case *stages.ExpertsAnswered:
		c.expertsAnswered(m)
	case *stages.AskOverdue:
		c.askOverdue(m, out)
	case *stages.HostChanged:
		if err := c.hostChanged(m); err != nil {
			return err
		}
	case *stages.SlotsReleased:
		if err := c.slotsReleased(m); err != nil {
			return err
		}
	case *stages.DrainStep:
		c.drainStep(m, out)
	case *stages.ResizeSlots:
		c.resizeSlots(m, out)
	case *stages.ForgetExperts:
		c.forgetExperts(m, out)
	case *shrinkOn:
		c.resize.going = false
	case *stages.WarmSlots:
		if c.cfg.Near > 0 {
			c.warmNear(out)
			return nil
		}
		if c.warm.on = true; m.Keys != nil {
			c.warm.keys = m.Keys
		}
	case *stages.CollectStats:
		return c.collectStats(m, out)
	default:
		return fmt.Errorf("expertio: unexpected message %T", in)
	}
	c.answerForgotten(out)
	c.shrink(out)
	c.assign(out)
	c.askUnread(out)
	if c.send(out) { // no slots come home to say that others may read
		c.assign(out)
		c.send(out)
	}
	c.warmUp(out)
	c.tellShares(out)
	c.pace.asked(out.Reads)
	return nil
}

func (c *Core) expertsRead(m *stages.ExpertsRead, out *stages.Outbox) error {
	for i := range m.Results {
		r := &m.Results[i]
		if !c.slots.has(r.Slot) {
			return fmt.Errorf("expertio: a read of slot %d ended, there are %d", r.Slot, c.cfg.Slots)
		}
		s := c.slots.at(r.Slot)
		if s.gen != r.Gen || s.state != filling {
			return fmt.Errorf("expertio: read of slot %d generation %d ended, but the slot is in generation %d and not being read", r.Slot, r.Gen, s.gen)
		}
		c.pace.ended(!s.rank.Speculative())
		c.readEnded(s)
		c.noteRead(s, r)
		if s.warm {
			c.warm.reading--
		}
		if r.Err != nil {
			c.readFailed(r, out)
			continue
		}
		c.countRead(s)
		c.payRead(s, r.FromHost)
		for _, w := range s.waiting {
			w.load.ready++
			w.load.uses[w.use].state = ready
		}
		c.slots.filled(r.Slot)
		if s.doomed {
			c.empty(r.Slot)
		}
	}
	return nil
}

// readEnded counts the end of a read.
func (c *Core) readEnded(s *slot) {
	if s.late {
		c.reading.late--
	} else {
		c.reading.ended(s.rank)
	}
}

// countRead counts a successful read.
func (c *Core) countRead(s *slot) {
	st, n := &c.layers[s.key/c.cfg.Experts], int64(c.cfg.ExpertBytes)
	st.BytesRead += n
	switch {
	case s.warm:
		st.BytesWarm += n
	case s.speculative:
		st.BytesAhead += n
	}
}

// readFailed handles the failure of a read, or that it was recalled. A guess that a load has come
// to wait for is tried again on demand. Otherwise the loads that wait ask hosts for it or lose it.
func (c *Core) readFailed(r *stages.ReadResult, out *stages.Outbox) {
	s, recalled := c.slots.at(r.Slot), errors.Is(r.Err, stages.ErrRecalled)
	if !recalled {
		c.readErrors++
	}
	if s.speculative && len(s.waiting) > 0 {
		s.speculative, s.warm, s.late, s.recalled = false, false, false, false
		s.gen++
		first, step, rank := len(c.reads), s.waiting[0].load.step, s.rank
		if rank.Speculative() { // of a guess for an urgent step, for which others have come to wait
			rank = stages.DemandRead
		}
		c.reads = append(c.reads, c.readInto(r.Slot, rank, c.notes.demand(step.ID)))
		c.group(out, step, first, rank)
		return
	}
	if recalled { // it has cost nobody a read, so speculation is not judged by it
		c.layers[s.key/c.cfg.Experts].PrefetchWasted++
		c.slots.spoil(r.Slot)
		return
	}
	if s.warm { // do not bother a failing disk
		c.warm.keys = nil
	}
	c.countUnused(r.Slot)
	c.fail(s, r.Err, out)
	c.slots.spoil(r.Slot)
}

// readInto returns the read of a slot's expert, and counts it as under way.
func (c *Core) readInto(id stages.SlotID, rank stages.Rank, by request) stages.Read {
	c.reading.begun(rank)
	s := c.slots.at(id)
	s.rank, s.request = rank, by
	return stages.Read{Slot: id, Gen: s.gen, Layer: s.key / c.cfg.Experts, Expert: s.key % c.cfg.Experts}
}

// group asks for the reads from first on, if there are any, as a group.
func (c *Core) group(out *stages.Outbox, step stages.Step, first int, rank stages.Rank) {
	if reads := c.reads[first:len(c.reads):len(c.reads)]; len(reads) > 0 {
		out.Reads = append(out.Reads, stages.ReadGroup{Step: step, Reads: reads, Rank: rank})
	}
}

func (c *Core) collectStats(m *stages.CollectStats, out *stages.Outbox) error {
	s := m.Stats
	if s == nil || len(s.Layers) != len(c.layers) {
		return fmt.Errorf("expertio: figures %+v without those of %d layers", s, len(c.layers))
	}
	s.Slots, s.SlotsUsed, s.SlotsMost = c.slots.live(), c.slots.live()-c.slots.vacant(), len(c.slots.all)
	if c.cfg.Near > 0 {
		s.Slots, s.SlotsUsed, s.SlotsMost = c.cfg.Near, c.near.used(), c.cfg.Near
	}
	s.Accounts.Nobody.Add(&c.nobody)
	s.ReadErrors, s.WavesSubmitted, s.RingHighWater = c.readErrors, c.waves, c.highWater
	for i, l := range c.layers {
		t := &s.Layers[i]
		// the router has counted what the device routed by itself
		t.Hits, t.Misses, t.Away = t.Hits+l.Hits, t.Misses+l.Misses, l.Away
		t.BytesRead, t.BytesAhead, t.BytesWarm = l.BytesRead, l.BytesAhead, l.BytesWarm
		t.Evictions = c.slots.evictions[i] + l.Evictions
		t.PrefetchIssued, t.PrefetchHit, t.PrefetchLate, t.PrefetchWasted = l.PrefetchIssued, l.PrefetchHit, l.PrefetchLate, l.PrefetchWasted
		t.PrefetchDropped, t.PrefetchDeclined, t.PrefetchSkipped = l.PrefetchDropped, l.PrefetchDeclined, l.PrefetchSkipped
		t.PrefetchPauses, t.PrefetchPaused = l.PrefetchPauses, c.pauses[i].any()
	}
	for i := range c.slots.all {
		if f := &c.slots.all[i]; f.predicted {
			s.Layers[f.key/c.cfg.Experts].PrefetchHeld++
		}
	}
	for i := c.cfg.First; i < len(s.Layers); i++ {
		if s.Layers[i].Places = c.slots.places(i); c.cfg.Near > 0 {
			s.Layers[i].Places = c.nearPlaces(i)
		}
	}
	out.Send(stages.Dispatch, m)
	return nil
}
