package tier

import "fmt"

// AtRest returns an error if the core still has reads or an order under way, or holds more than it
// may, although nothing is left to happen. It is for tests.
func (c *Core) AtRest() error {
	for slot := range c.reads {
		if s := c.reads[slot].state; s != absent {
			return fmt.Errorf("tier: the read into slot %d never ended, it is in state %d", slot, s)
		}
	}
	m := &c.memory
	if most := max(m.limit, m.perBlock); m.held > most || m.order.Kind != NoOrder {
		return fmt.Errorf("tier: %d records are held of %d, and order %+v is under way", m.held, most, m.order)
	}
	return c.Check()
}

// Check returns an error if the core's books contradict each other. It looks at everything, so it
// is for tests.
func (c *Core) Check() error {
	m := &c.memory
	held, unused, free := 0, 0, 0
	for number, b := range m.blocks {
		if b == nil {
			continue
		}
		held += len(b.records)
		users := 0
		for i := range b.records {
			r := &b.records[i]
			users += r.users
			if err := c.checkRecord(r); err != nil {
				return fmt.Errorf("tier: record %d of block %d, leaving %v: %w", i, number, b.leaving, err)
			}
			switch has := r.there || r.first != none; {
			case has && r.users == 0:
				unused++
			case !has && !b.leaving:
				free++
			}
		}
		if users != b.users {
			return fmt.Errorf("tier: block %d has %d users by its count, %d by its records", number, b.users, users)
		}
	}
	if held != m.held || unused != m.unused || free != len(m.free) {
		return fmt.Errorf("tier: %d records are held, %d of them unused, %d free; by the counts %d, %d, %d", held, unused, free, m.held, m.unused, len(m.free))
	}
	if len(c.waiting) > 0 && m.hasRoom() {
		return fmt.Errorf("tier: %d reads wait although %d records are free and %d unused", len(c.waiting), len(m.free), m.unused)
	}
	for _, slot := range c.waiting {
		if t := &c.reads[slot]; t.state != waits || c.at[t.key] != nil {
			return fmt.Errorf("tier: the read into slot %d waits in state %d, its expert is found: %v", slot, t.state, c.at[t.key] != nil)
		}
	}
	return nil
}

// checkRecord looks at one record. That each record with an expert is the one that is found for it
// also means that no two hold the same.
func (c *Core) checkRecord(r *record) error {
	has := r.there || r.first != none
	if has != (r.next != nil) || has && c.at[r.key] != r {
		return fmt.Errorf("holds key %d: %v, in order: %v, but another record, or none, is found for it", r.key, has, r.next != nil)
	}
	users := 0
	for slot := range c.reads {
		if c.reads[slot].record == r {
			users++
		}
	}
	if users != r.users || !has && users > 0 || r.block.leaving && has && users == 0 {
		return fmt.Errorf("has %d users by its count, %d by the reads, an expert: %v", r.users, users, has)
	}
	return nil
}
