package sequencer

import "github.com/moeflux/moeflux-actor/stages"

// Where more texts go on than have room, they go on in turns: one is parked and another comes back
// in its place. Until it is back the place is of no use, so a stint lasts a multiple of that time.
// Who rests within its stint loses its place after as long as such a change takes, which is what it
// costs to have been wrong about it.
const (
	stintChanges = 16             // a stint lasts as long as so many changes
	longestStint = 10_000_000_000 // ns: a disk that was slow once must not stop everybody
	leastWait    = 100_000        // ns, for the end of a stint
)

// stints is what a change of places takes, and the end of a stint that somebody waits for.
type stints struct {
	out, back float64 // ns for each byte of a state; 0 before one was parked, or brought back
	due       int64   // when StintOver comes; 0: none was asked for
}

// changed notes how long it took to move a sequence's state, where a place waits for it.
func (c *Core) changed(perByte *float64, s *sequence, began int64) {
	took := float64(c.accounts.now-began) / float64(c.stateBytes(s))
	if *perByte == 0 {
		*perByte = took
	}
	*perByte += (took - *perByte) / 4
}

// stateBytes returns what the state of a sequence takes of the memory for states.
func (c *Core) stateBytes(s *sequence) int64 {
	return c.cfg.RecurrentBytes + int64(c.book.Count(s.Len))*c.cfg.PageBytes
}

// keeps returns until when a sequence to which nothing is being done keeps its place before a
// request: not at all if that is of a higher class, and as long as it goes on if it is of a lower
// one.
func (c *Core) keeps(s *sequence, a *ask) int64 {
	class := s.grant.share.Class()
	if class < a.class() {
		return 0
	}
	change := min(int64((c.stints.out+c.stints.back)*float64(c.stateBytes(s))), longestStint/stintChanges)
	rests := s.used + change
	if class > a.class() {
		return rests
	}
	return min(rests, s.since+stintChanges*change)
}

// awaitStint asks to be told when a stint is over.
func (c *Core) awaitStint(end int64, out *stages.Outbox) {
	if now := c.accounts.now; c.stints.due == 0 || end < c.stints.due {
		out.Stint = max(end-now, leastWait)
		c.stints.due = now + out.Stint
	}
}
