package dispatch

import "fmt"

// AtRest reports, as an error, what the stage still waits for although nothing is in flight. Tests
// ask it.
func (c *Core) AtRest() error {
	if n := len(c.awaited); n != 0 {
		return fmt.Errorf("dispatch: %d tickets are still awaited", n)
	}
	for i, l := range c.lanes {
		if l.outstanding != 0 || l.aheads != 0 {
			return fmt.Errorf("dispatch: lane %d counts %d tickets and %d of predictions", i, l.outstanding, l.aheads)
		}
	}
	return nil
}

// Recorded returns how many recordings are not taken back: in a resident engine none when all steps
// have gone well, else perhaps those of the last waves. Tests ask it.
func (c *Core) Recorded() (n int) {
	for _, orders := range c.recorded {
		n += len(orders[0]) + len(orders[1])
	}
	return n
}

// States returns how many states have memory. Tests ask it.
func (c *Core) States() int { return len(c.parts[0].states.all) }
