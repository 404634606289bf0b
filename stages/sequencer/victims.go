package sequencer

import (
	"cmp"
	"errors"
	"slices"

	"github.com/moeflux/moeflux-actor/stages"
)

// makeRoom has states parked so that a request gets the memory that it lacks, if that can help. It
// reports whether any are on their way out, or will be when somebody's stint is over.
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
	victims, end := c.victims(a), int64(0)
	over := make([]*sequence, 0, len(victims)) // whose stint is over
	for _, s := range victims {
		if until := c.keeps(s, a); until <= c.accounts.now {
			over = append(over, s)
		} else if end == 0 || until < end {
			end = until
		}
	}
	going := over[:c.enough(over, full)]
	if len(going) == 0 {
		going = victims[:c.enough(victims, full)]
		switch {
		case len(going) == 0:
			return false
		case !a.grows():
			c.awaitStint(end, out)
			return true
		}
	}
	for _, s := range going {
		c.park(s, nil, out)
		s.away.forced = true
	}
	return true
}

// grows reports whether a request is that of a text that has memory and needs more. It waits for
// nobody's stint to end, since its own memory rests meanwhile.
func (a *ask) grows() bool { return a.chunk != nil && a.seq.grant.holds }

// tryAgain is makeRoom with the states that could not be parked before the request came: there may
// be a place for them by now.
func (c *Core) tryAgain(a *ask, lack error, out *stages.Outbox) bool {
	again := false
	for _, s := range c.seqs {
		if s.stays > 0 && s.tried < a.number {
			s.stays, again = 0, true
		}
	}
	return again && c.makeRoom(a, lack, out)
}

// enough returns how many of some sequences, from the first one on, have to go to make room for
// what is lacking; 0 if all of them do not.
func (c *Core) enough(victims []*sequence, lack *stages.StateMemoryError) int {
	gain := int64(0)
	for i, s := range victims {
		gain += c.book.Gain(&s.Text)
		if lack.Sequences > 0 || gain >= lack.Need+lack.Used-lack.Max {
			return i + 1
		}
	}
	return 0
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
