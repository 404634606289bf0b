package combine

import "fmt"

// AtRest reports, as an error, what the stage still holds although nothing is in flight. Tests ask
// it.
func (c *Core) AtRest() error {
	if len(c.ring) != 0 || len(c.drains) != 0 {
		return fmt.Errorf("combine: %d waves never retired, %d drains never ended", len(c.ring), len(c.drains))
	}
	return nil
}
