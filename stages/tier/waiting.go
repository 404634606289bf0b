package tier

import (
	"slices"

	"github.com/moeflux/moeflux-actor/stages"
)

// wait makes a read wait for a record: after the demand reads that wait, and a guess after all.
func (c *Core) wait(slot stages.SlotID) {
	i := len(c.waiting)
	for !c.reads[slot].speculative && i > 0 && c.reads[c.waiting[i-1]].speculative {
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

// hurry makes a demand read of a guess.
func (c *Core) hurry(e *Hurry, out *Effects) {
	t := c.read(e.Slot)
	if t == nil || t.gen != e.Gen || !t.speculative {
		return
	}
	switch t.state {
	case waits:
		c.waiting = slices.DeleteFunc(c.waiting, func(s stages.SlotID) bool { return s == e.Slot })
		t.speculative = false
		c.wait(e.Slot)
	case fills:
		t.speculative = false
		c.urge(t.record, out)
	}
}

// urge hurries the fill of a record that somebody waits for.
func (c *Core) urge(r *record, out *Effects) {
	if r.speculative {
		r.speculative = false
		out.Hurries = append(out.Hurries, stages.Hurry{Slot: r.first, Gen: c.reads[r.first].gen})
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
		case t.state == uploading, t.state == fills && !t.record.late && !t.record.speculative:
			return false
		}
	}
	return true
}
