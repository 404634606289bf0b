package expertio

import "fmt"

// AtRest reports, as an error, what the stage still holds although no step is in flight and no read under way: waves, credits,
// pins, slots that neither hold an expert nor can be taken. Tests ask it.
func (c *Core) AtRest() error {
	if len(c.queue) != 0 || c.inUse != 0 {
		return fmt.Errorf("expertio: %d waves wait, %d ring credits never came back", len(c.queue), c.inUse)
	}
	return c.slots.atRest()
}

func (p *slots) atRest() error {
	for i := range p.all {
		s := &p.all[i]
		switch {
		case s.pins != 0 || len(s.waiting) != 0:
			return fmt.Errorf("expertio: slot %d has %d pins and %d waves that wait for it", i, s.pins, len(s.waiting))
		case s.state == filling || s.speculative:
			return fmt.Errorf("expertio: slot %d is being read", i)
		case (s.state == free) != (s.key < 0) || s.key >= 0 && p.byKey[s.key] != int32(i)+1:
			return fmt.Errorf("expertio: slot %d in state %d holds key %d, which is not found there", i, s.state, s.key)
		}
	}
	if n := p.spare(); p.order != nil && n != len(p.all) {
		return fmt.Errorf("expertio: %d slots can be taken, want all %d", n, len(p.all))
	}
	return nil
}
