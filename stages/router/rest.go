package router

import "fmt"

// AtRest returns an error if the stage still holds anything of steps although none is in flight. It
// is for tests.
func (c *Core) AtRest() error {
	if n := len(c.open); n != 0 {
		return fmt.Errorf("router: %d predictions for steps that are over", n)
	}
	for e, marked := range c.mark {
		if marked {
			return fmt.Errorf("router: expert %d is still marked", e)
		}
	}
	for e, miss := range c.union.miss {
		if miss != 1 || len(c.union.list) != 0 {
			return fmt.Errorf("router: expert %d still has a chance", e)
		}
	}
	return nil
}
