package combine

import "fmt"

// AtRest returns an error if the stage still holds anything although nothing is in flight. It is
// for tests.
func (c *Core) AtRest() error {
	if len(c.ring) != 0 || len(c.drains) != 0 {
		return fmt.Errorf("combine: %d waves never retired, %d drains never ended", len(c.ring), len(c.drains))
	}
	return nil
}
