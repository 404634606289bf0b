package expertio

import "fmt"

// AtRest returns an error if the stage still holds anything although no step is in flight and no
// read is under way: waves, credits, pins, or slots that neither hold an expert nor can be taken.
// It is for tests.
func (c *Core) AtRest() error {
	for i := range c.rings {
		if r := &c.rings[i]; len(c.queue) != 0 || len(r[0])+len(r[1]) != 0 {
			return fmt.Errorf("expertio: %d loads wait, ring credits of the steps %d never came back", len(c.queue), *r)
		}
	}
	if c.reading.all() != 0 || c.warm.reading != 0 {
		return fmt.Errorf("expertio: %d reads are counted as under way, %d of them warm", c.reading.all(), c.warm.reading)
	}
	if c.pace.reads != 0 || c.pace.demand != 0 {
		return fmt.Errorf("expertio: %d reads are timed as under way, %d of them on demand", c.pace.reads, c.pace.demand)
	}
	if n := c.slots.live(); n != c.resize.limit() || len(c.resize.waiting) != 0 {
		return fmt.Errorf("expertio: there are %d slots, want %d, and %d callers wait for that", n, c.resize.limit(), len(c.resize.waiting))
	}
	if n := len(c.urgent.steps); n != 0 {
		return fmt.Errorf("expertio: %d urgent steps are counted as under way", n)
	}
	if n := len(c.forgets); n != 0 {
		return fmt.Errorf("expertio: %d callers wait for experts to be forgotten", n)
	}
	for i := range c.away.hosts {
		if n := c.away.hosts[i].asks; n != 0 {
			return fmt.Errorf("expertio: %d asks of host %d are counted as under way", n, i)
		}
	}
	if n := len(c.away.pins); n != 0 {
		return fmt.Errorf("expertio: %d steps are counted as going by a placement", n)
	}
	return c.slots.atRest()
}

func (p *slots) atRest() error {
	for i := range p.all {
		s := &p.all[i]
		switch {
		case s.pins != 0 || len(s.waiting) != 0:
			return fmt.Errorf("expertio: slot %d has %d pins and %d uses that wait for it", i, s.pins, len(s.waiting))
		case s.state == filling || s.speculative || s.doomed:
			return fmt.Errorf("expertio: slot %d is being read", i)
		case (s.state == free || s.state == gone) != (s.key < 0) || s.key >= 0 && p.byKey[s.key] != int32(i)+1:
			return fmt.Errorf("expertio: slot %d in state %d holds key %d, which is not found there", i, s.state, s.key)
		}
	}
	for i := range p.pools {
		o := &p.pools[i]
		if n := o.spare(); o.order != nil && n != o.live() {
			return fmt.Errorf("expertio: %d slots of part %d can be taken, want all %d", n, i, o.live())
		}
	}
	return nil
}
