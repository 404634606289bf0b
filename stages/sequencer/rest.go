package sequencer

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/schedule"
)

// Bounded reports, as an error, memory that is used or promised beyond what there is. Tests ask it
// after every message.
func (c *Core) Bounded() error { return c.book.Bounded() }

// AtRest reports, as an error, what the stage still holds although nothing is in flight: steps,
// credits, requests, pages that no sequence has. Tests ask it once no message is under way.
func (c *Core) AtRest() error {
	for lane, s := range c.flight.lanes {
		if s != nil {
			return fmt.Errorf("sequencer: lane %d is still held by %v: %d layers begun, %d submitted, %d retired", lane, &s.head, s.begun, s.submitted, s.retired)
		}
	}
	for part, r := range c.flight.ring {
		if r != [schedule.Kinds]int{} {
			return fmt.Errorf("sequencer: %d ring credits of part %d never came back", r, part)
		}
	}
	if n := c.schedule.Ready(); n != 0 {
		return fmt.Errorf("sequencer: %d requests are ready and in no step", n)
	}
	if n := len(c.ops.under); n != 0 {
		return fmt.Errorf("sequencer: %d operations were never ended", n)
	}
	if list := c.book.Gone(); len(list) > 0 {
		return fmt.Errorf("sequencer: dispatch was never told that states %v are gone", list)
	}
	expected, states, promised := 0, 0, 0
	var holding [][]stages.PageID
	for id, s := range c.seqs {
		switch {
		case s.req != nil:
			return fmt.Errorf("sequencer: the request of sequence %d was never answered", id)
		case s.ask != nil || s.copies > 0:
			return fmt.Errorf("sequencer: sequence %d waits for memory, and nobody will give any back", id)
		case !s.grant.holds && len(s.Pages) > 0 || s.grant.until == 0 && s.grant.promised > 0 || s.grant.until > 0 && s.grant.until <= s.Len:
			return fmt.Errorf("sequencer: sequence %d has %d pages for %d positions, and a grant of %+v", id, len(s.Pages), s.Len, s.grant)
		case s.moving() || len(s.waits) > 0:
			return fmt.Errorf("sequencer: the state of sequence %d is still on its way, or waited for", id)
		case s.closing != nil:
			return fmt.Errorf("sequencer: sequence %d was never closed", id)
		case s.poison == nil && s.away == nil && (len(s.Pages) != c.book.Count(s.Len) || len(s.Tokens) != s.Len):
			return fmt.Errorf("sequencer: sequence %d has %d pages and %d tokens for %d positions", id, len(s.Pages), len(s.Tokens), s.Len)
		}
		holding = append(holding, s.Pages)
		if s.grant.holds {
			states++
		}
		promised += s.grant.promised
		if c.schedule.Expects(uint64(id)) {
			expected++
		}
	}
	if n := c.schedule.Expected(); n != expected {
		return fmt.Errorf("sequencer: %d sequences are expected back, there are %d", n, expected)
	}
	for _, f := range c.exchange.open {
		holding = append(holding, f.Pages)
		states++
	}
	if err := c.search.check(c.seqs); err != nil {
		return err
	}
	return c.book.Check(holding, states, promised)
}
