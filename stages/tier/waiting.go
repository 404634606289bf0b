package tier

import (
	"slices"

	"github.com/moeflux/moeflux-actor/stages"
)

// wait makes a read wait for a record, after those of its rank that wait.
func (c *Core) wait(slot stages.SlotID) {
	i := len(c.waiting)
	for i > 0 && c.reads[c.waiting[i-1]].rank < c.reads[slot].rank {
		i--
	}
	c.waiting = slices.Insert(c.waiting, i, slot)
}

// serve goes on with reads that wait. If nothing has room none of them can: the expert of a read
// that waits is in no record, or it would not wait.
func (c *Core) serve(out *Effects) {
	if len(c.waiting) == 0 || !c.memory.hasRoom() {
		return
	}
	left := c.waiting[:0]
	for _, slot := range c.waiting {
		if !c.place(slot, out) {
			left = append(left, slot)
		}
	}
	c.waiting = left
}

// hurry gives a read a higher rank.
func (c *Core) hurry(e *Hurry, out *Effects) {
	t := c.read(e.Slot)
	if t == nil || t.gen != e.Gen || t.rank >= e.Rank {
		return
	}
	switch t.state {
	case waits:
		c.waiting = slices.DeleteFunc(c.waiting, func(s stages.SlotID) bool { return s == e.Slot })
		t.rank = e.Rank
		c.wait(e.Slot)
	case fills:
		t.rank = e.Rank
		c.urge(t.record, e.Rank, out)
	}
}

// urge hurries the fill of a record, if a read of a higher rank has come to need it.
func (c *Core) urge(r *record, rank stages.Rank, out *Effects) {
	if r.rank < rank {
		r.rank = rank
		out.Hurries = append(out.Hurries, stages.Hurry{Slot: r.first, Gen: c.reads[r.first].gen, Rank: rank})
	}
}

// overdue tells of each read that waits for a fill that does not end. Reads that wait for a record
// are late too, when all they could get is held by such fills: nothing else reports them, for they
// have not reached the disk.
func (c *Core) overdue(e *Overdue, out *Effects) {
	t := c.read(e.Slot)
	if t == nil || t.state != fills || t.from != FromDisk || t.gen != e.Gen {
		return // it has ended after all
	}
	r := t.record
	r.late = true
	for slot := r.first; slot != none; slot = c.reads[slot].next {
		c.late(slot, e.Err, out)
	}
	if len(c.waiting) == 0 || !c.stuck() {
		return
	}
	for _, slot := range c.waiting {
		c.late(slot, e.Err, out)
	}
}

func (c *Core) late(slot stages.SlotID, err error, out *Effects) {
	out.Overdue = append(out.Overdue, stages.ReadOverdue{Slot: slot, Gen: c.reads[slot].gen, Err: err})
}

// stuck reports whether every record in use is held by a fill that is late, or by a guess, which
// nobody calls late while it waits for the disk.
func (c *Core) stuck() bool {
	for slot := range c.reads {
		switch t := &c.reads[slot]; {
		case t.state == uploading, t.state == fills && !t.record.late && !t.record.rank.Speculative():
			return false
		}
	}
	return true
}
