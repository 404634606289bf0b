package router

import "fmt"

// AtRest reports, as an error, what the stage still holds of steps although none is in flight.
// Tests ask it.
func (c *Core) AtRest() error {
	if n := len(c.open); n != 0 {
		return fmt.Errorf("router: %d predictions of steps that are over", n)
	}
	for e, marked := range c.mark {
		if marked {
			return fmt.Errorf("router: the mark of expert %d was not taken back", e)
		}
	}
	for e, miss := range c.union.miss {
		if miss != 1 || len(c.union.list) != 0 {
			return fmt.Errorf("router: the chance of expert %d was not taken back", e)
		}
	}
	return nil
}
