package sequencer

import "fmt"

// AtRest reports, as an error, what the stage still holds although nothing is in flight: steps, credits, requests, pages
// that no sequence has. Tests ask it once no message is under way.
func (c *Core) AtRest() error {
	for lane, s := range c.lanes {
		if s != nil {
			return fmt.Errorf("sequencer: lane %d is still held by %v: %d layers begun, %d submitted, %d retired", lane, &s.head, s.begun, s.submitted, s.retired)
		}
	}
	if c.ringUsed != 0 {
		return fmt.Errorf("sequencer: %d ring credits never came back", c.ringUsed)
	}
	if len(c.ready) != 0 {
		return fmt.Errorf("sequencer: %d requests are ready and in no step", len(c.ready))
	}
	pages, expected := 0, 0
	for id, s := range c.seqs {
		switch {
		case s.req != nil:
			return fmt.Errorf("sequencer: the request of sequence %d was never answered", id)
		case s.closing != nil:
			return fmt.Errorf("sequencer: sequence %d was never closed", id)
		case s.poison == nil && s.pages != c.pagesFor(s.len):
			return fmt.Errorf("sequencer: sequence %d has %d pages for %d positions", id, s.pages, s.len)
		}
		pages += s.pages
		if s.expected {
			expected++
		}
	}
	if pages != c.pagesUsed || expected != c.expected {
		return fmt.Errorf("sequencer: %d pages and %d sequences expected back are counted, the sequences have %d and %d",
			c.pagesUsed, c.expected, pages, expected)
	}
	return nil
}
