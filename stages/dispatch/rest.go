package dispatch

import "fmt"

// PagesUsed returns how many key-value pages sequences hold. Tests compare it with the sequencer's count.
func (c *Core) PagesUsed() int { return c.states.made - len(c.states.freePages) }

// AtRest reports, as an error, what the stage still waits for although nothing is in flight, or pages that neither a sequence
// has nor the pool. Tests ask it.
func (c *Core) AtRest() error {
	if n := len(c.awaited); n != 0 {
		return fmt.Errorf("dispatch: %d tickets are still awaited", n)
	}
	for i, l := range c.lanes {
		if l.outstanding != 0 {
			return fmt.Errorf("dispatch: lane %d counts %d tickets", i, l.outstanding)
		}
	}
	pages := 0
	for _, st := range c.states.seqs {
		pages += len(st.pages)
	}
	if pages != c.PagesUsed() || c.states.made > c.cfg.MaxPages {
		return fmt.Errorf("dispatch: sequences have %d pages, %d are not free, %d of at most %d were made", pages, c.PagesUsed(), c.states.made, c.cfg.MaxPages)
	}
	return nil
}
