package sequencer

import (
	"cmp"
	"errors"
	"slices"

	"github.com/moeflux/moeflux-actor/stages"
)

// makeRoom has states parked so that a request gets the memory that it lacks, if that can help. It
// reports whether any are on their way out.
func (c *Core) makeRoom(a *ask, lack error, out *stages.Outbox) bool {
	full, ok := errors.AsType[*stages.StateMemoryError](lack)
	if !c.cfg.Parks || !ok {
		return false
	}
	for _, w := range c.parking.away {
		if w.at == leaving || w.at == written {
			return true
		}
	}
	victims, gain := c.victims(a), int64(0)
	for i, s := range victims {
		gain += c.book.Gain(&s.Text)
		if full.Sequences == 0 && gain < full.Need+full.Used-full.Max {
			continue
		}
		for _, s := range victims[:i+1] {
			c.park(s, nil, out)
			s.away.forced = true
		}
		return true
	}
	return false
}

// victims returns whose states may be parked for a request, in order: those of idle sequences, then
// those of sequences that are likely to go on, between two chunks; the lower class first, and then
// what is cheapest to bring back. Who has a right to memory for a declared end keeps it before
// others of its class.
func (c *Core) victims(a *ask) (list []*sequence) {
	running := make(map[*sequence]int)
	for _, s := range c.inOrder() {
		if s.grant.until > 0 || c.schedule.Expects(uint64(s.id)) {
			running[s] = 1
		}
		preempted := s.grant.until == 0 || s.grant.share.Class() < a.class()
		if s != a.seq && s != a.copied && c.parkable(s) && !s.busy() && preempted {
			list = append(list, s)
		}
	}
	slices.SortStableFunc(list, func(x, y *sequence) int {
		return cmp.Or(cmp.Compare(running[x], running[y]), cmp.Compare(x.grant.share.Class(), y.grant.share.Class()), cmp.Compare(x.Len, y.Len))
	})
	return list
}

// parkable reports whether a sequence has a state that it makes sense to park.
func (c *Core) parkable(s *sequence) bool {
	return c.cfg.Parks && s.grant.holds && s.Len > 0 && s.stays != s.Len && s.copies == 0 && s.poison == nil && s.closing == nil
}

// preempt parks the state of a sequence whose chunk waits for memory. The chunk waits for the state
// from now on.
func (c *Core) preempt(a *ask, out *stages.Outbox) {
	s, m := a.seq, a.chunk.msg
	c.unqueue(a, out)
	m.Spare = nil // was taken when the chunk came
	s.req = nil
	c.spare.keepRequest(a.chunk)
	c.park(s, nil, out)
	s.away.forced = true
	s.waits = append(s.waits, m)
}
