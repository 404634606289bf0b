package tier

import (
	"errors"
	"fmt"

	"github.com/moeflux/moeflux-actor/stages"
)

// Config is what a Core needs. All fields are required.
type Config struct {
	Layers, Experts int // experts of a layer
	Slots           int
	BlockRecords    int // of a block; of the last one at most
	Limit           int // the most records, see Limit
}

// Core is the tier. New makes it; the zero value is of no use.
type Core struct {
	cfg     Config
	at      []*record // [layer·experts + expert]; nil if not here
	reads   []read    // [slots]
	waiting []stages.SlotID
	order   recency
	memory  memory
	hits    int64 // reads that did not need a fill of their own
}

// read is the read under way into one slot.
type read struct {
	state  readState
	rank   stages.Rank
	from   Source
	gen    uint32
	key    int
	record *record
	next   stages.SlotID // of those that wait for the record, or none
}

type readState uint8

const (
	absent    readState = iota
	waits               // for a record
	fills               // its record, or follows the read that does
	uploading           // its record
)

// none ends a list of slots.
const none stages.SlotID = -1

// New returns a core whose first block, number 0, is pinned and empty.
func New(cfg Config) *Core {
	c := &Core{cfg: cfg, at: make([]*record, cfg.Layers*cfg.Experts), reads: make([]read, cfg.Slots)}
	c.order.init()
	c.memory = newMemory(cfg.BlockRecords, cfg.Limit)
	return c
}

// Hits returns how many reads found their record here or on its way.
func (c *Core) Hits() int64 { return c.hits }

// Held returns the records in memory that is pinned.
func (c *Core) Held() int { return c.memory.held }

// Step handles an event and adds to out what must happen next. The event stays the caller's.
// An error means that the caller has broken the protocol; nothing has changed then.
func (c *Core) Step(in Event, out *Effects) error {
	var err error
	switch e := in.(type) {
	case *Ask:
		err = c.ask(e, out)
	case *Hurry:
		c.hurry(e, out)
	case *Filled:
		err = c.filled(e, out)
	case *Overdue:
		c.overdue(e, out)
	case *Uploaded:
		err = c.uploaded(e, out)
	case *Limit:
		c.memory.limit = e.Records
	case *Pinned:
		err = c.memory.pinned(e.Err)
	case *Freed:
		err = c.memory.freed()
	case *Forget:
		c.order.unused(c.empty)
	default:
		err = errors.New("tier: no event")
	}
	if err != nil {
		return err
	}
	c.shrink()
	c.serve(out)
	c.memory.next(out)
	return nil
}

func (c *Core) ask(e *Ask, out *Effects) error {
	r := &e.Read
	if r.Layer < 0 || r.Layer >= c.cfg.Layers || r.Expert < 0 || r.Expert >= c.cfg.Experts || r.Slot < 0 || int(r.Slot) >= c.cfg.Slots {
		return fmt.Errorf("tier: layer %d expert %d into slot %d is asked for, there are %d layers, %d experts, %d slots",
			r.Layer, r.Expert, r.Slot, c.cfg.Layers, c.cfg.Experts, c.cfg.Slots)
	}
	t := &c.reads[r.Slot]
	if t.state != absent {
		return fmt.Errorf("tier: slot %d is read into twice at once", r.Slot)
	}
	*t = read{state: waits, rank: e.Rank, gen: r.Gen, key: r.Layer*c.cfg.Experts + r.Expert, next: none}
	if !c.place(r.Slot, out) {
		c.wait(r.Slot)
	}
	return nil
}

// place finds the record of a read, or room for it. It reports false if there is neither.
func (c *Core) place(slot stages.SlotID, out *Effects) bool {
	t := &c.reads[slot]
	switch r := c.at[t.key]; {
	case r == nil:
		return c.fill(slot, out)
	case r.there:
		c.hits++
		t.from = FromHost
		c.use(r, t)
		c.upload(slot, out)
	default:
		c.hits++
		t.from, t.state = FromOthers, fills
		c.use(r, t)
		c.reads[r.last].next, r.last = slot, slot
		c.urge(r, t.rank, out)
	}
	return true
}

// fill has a read's expert read from the disk, if there is room for it.
func (c *Core) fill(slot stages.SlotID, out *Effects) bool {
	r := c.room()
	if r == nil {
		return false
	}
	t := &c.reads[slot]
	t.from, t.state = FromDisk, fills
	r.key, c.at[t.key] = t.key, r
	r.first, r.last, r.rank, r.late = slot, slot, t.rank, false
	c.use(r, t)
	out.Fills = append(out.Fills, Fill{Slot: slot, Record: r.id, Rank: t.rank})
	return true
}

// room returns a record without an expert, or nil.
func (c *Core) room() *record {
	if r := c.memory.takeFree(); r != nil {
		return r
	}
	if c.memory.unused == 0 {
		return nil
	}
	c.empty(c.order.victim())
	return c.memory.takeFree()
}

// empty takes the expert out of a record that nobody uses.
func (c *Core) empty(r *record) {
	c.at[r.key] = nil
	c.order.drop(r)
	r.there = false
	c.memory.unused--
	c.memory.putFree(r)
}

// use notes that a read uses a record.
func (c *Core) use(r *record, t *read) {
	if r.users == 0 && r.there {
		c.memory.unused--
	}
	t.record = r
	r.users++
	r.block.users++
	c.order.touch(r)
}

func (c *Core) upload(slot stages.SlotID, out *Effects) {
	t := &c.reads[slot]
	t.state = uploading
	out.Uploads = append(out.Uploads, Upload{Slot: slot, Record: t.record.id})
}

// filled goes on with everybody who waits for a record.
func (c *Core) filled(e *Filled, out *Effects) error {
	t := c.read(e.Slot)
	if t == nil || t.state != fills || t.from != FromDisk {
		return fmt.Errorf("tier: a read into slot %d has filled a record, but was not asked to", e.Slot)
	}
	r := t.record
	first := r.first
	r.first, r.last, r.late, r.there = none, none, false, e.Err == nil
	if e.Err != nil { // nobody else must find it
		c.at[r.key] = nil
		c.order.drop(r)
	}
	for slot := first; slot != none; {
		next := c.reads[slot].next
		if e.Err != nil {
			c.end(slot, e.Err, out)
		} else {
			c.upload(slot, out)
		}
		slot = next
	}
	return nil
}

func (c *Core) uploaded(e *Uploaded, out *Effects) error {
	if t := c.read(e.Slot); t == nil || t.state != uploading {
		return fmt.Errorf("tier: slot %d is uploaded to, but was not asked to be", e.Slot)
	}
	c.end(e.Slot, e.Err, out)
	return nil
}

// end ends a read, and its use of a record.
func (c *Core) end(slot stages.SlotID, err error, out *Effects) {
	t := &c.reads[slot]
	r := t.record
	out.Ended = append(out.Ended, Ended{Slot: slot, From: t.from, Err: err})
	*t = read{}
	r.users--
	r.block.users--
	switch {
	case r.users > 0:
	case !r.there:
		c.memory.putFree(r)
	default:
		c.memory.unused++
		if r.block.leaving {
			c.empty(r)
		}
	}
}

// read returns the read into a slot, or nil if there is no such slot.
func (c *Core) read(slot stages.SlotID) *read {
	if slot < 0 || int(slot) >= len(c.reads) {
		return nil
	}
	return &c.reads[slot]
}
