package sequencer

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/stages"
)

// AtRest reports, as an error, what the stage still holds although nothing is in flight: steps,
// credits, requests, pages that no sequence has. Tests ask it once no message is under way.
func (c *Core) AtRest() error {
	for lane, s := range c.lanes {
		if s != nil {
			return fmt.Errorf("sequencer: lane %d is still held by %v: %d layers begun, %d submitted, %d retired", lane, &s.head, s.begun, s.submitted, s.retired)
		}
	}
	if c.ringUsed != 0 {
		return fmt.Errorf("sequencer: %d ring credits never came back", c.ringUsed)
	}
	if n := c.schedule.Ready(); n != 0 {
		return fmt.Errorf("sequencer: %d requests are ready and in no step", n)
	}
	if len(c.ops) != 0 {
		return fmt.Errorf("sequencer: %d operations were never ended", len(c.ops))
	}
	expected := 0
	want := make(map[stages.PageID]holders)
	for _, f := range c.exchanged {
		hold(want, live, f.pages)
	}
	recurrent := 0
	for _, f := range c.kept {
		hold(want, kept, f.pages)
		if f.id != 0 {
			recurrent++
		}
	}
	for id, s := range c.seqs {
		switch {
		case s.req != nil:
			return fmt.Errorf("sequencer: the request of sequence %d was never answered", id)
		case s.closing != nil:
			return fmt.Errorf("sequencer: sequence %d was never closed", id)
		case s.poison == nil && (len(s.pages) != c.pages.count(s.len) || len(s.tokens) != s.len):
			return fmt.Errorf("sequencer: sequence %d has %d pages and %d tokens for %d positions", id, len(s.pages), len(s.tokens), s.len)
		}
		hold(want, live, s.pages)
		if c.schedule.Expects(uint64(id)) {
			expected++
		}
	}
	lent := 0
	for _, f := range c.exchanged {
		if f.inPlace {
			lent++
		}
	}
	if used := c.stateBytes(c.pages.used(), c.states()); lent != c.lent || used > c.cfg.StateBytes {
		return fmt.Errorf("sequencer: states take %d of %d bytes; %d drafts in place are counted, there are %d", used, c.cfg.StateBytes, c.lent, lent)
	}
	if expected != c.schedule.Expected() || recurrent != c.recurrent {
		return fmt.Errorf("sequencer: %d sequences expected back and %d kept recurrent states are counted, there are %d and %d",
			c.schedule.Expected(), c.recurrent, expected, recurrent)
	}
	return c.pages.check(want)
}

// hold counts a holder of pages.
func hold(count map[stages.PageID]holders, by holder, pages []stages.PageID) {
	for _, id := range pages {
		h := count[id]
		if by == kept {
			h.kept++
		} else {
			h.live++
		}
		count[id] = h
	}
}
