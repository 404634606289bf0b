package expertio

import (
	"slices"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/expertio/policy"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// Steps that decode are urgent (Batch.Urgent): somebody waits for their tokens, and a layer of a
// prompt reads for longer than such a step takes. So what an urgent step needs goes before all
// else, for slots and at the disk, and so do the guesses for it. What has begun is not taken back:
// while an urgent step is under way, others begin no guesses and no reads on demand. And they
// always leave it the slots of a layer.
//
// Others do not starve: an urgent step ends, and between two of them others have the disk and the
// slots to themselves. The schedule sees to it that there is such a time (package schedule). After
// urgent steps that follow each other too closely for that, others have some reads beside the next.

const (
	// besideReads is how many reads on demand others have under way beside an urgent step before
	// which they had the disk for too short a time: an urgent read waits for no more than these.
	besideReads = 1
	// restShare is the part of the time of an urgent step that others must have had after it, if
	// they are to read nothing beside the next.
	restShare = 4
)

// urgent is what is known of urgent steps. All times are in nanoseconds on the clock of pace.
type urgent struct {
	steps  []stages.StepID // under way: from the first plan to the last wave
	uses   int             // of the last plan
	began  int64           // since when there are some, or when there were last
	ended  int64           // when the last one ended
	beside int             // reads on demand that others have beside those under way
}

func (u *urgent) end(id stages.StepID, now int64) {
	if i := slices.Index(u.steps, id); i >= 0 {
		u.steps = slices.Delete(u.steps, i, i+1)
		u.ended = now
	}
}

func (u *urgent) routed(m *stages.LayerRouted, now int64) {
	if len(u.steps) == 0 {
		u.beside = besideReads
		if took, rest := u.ended-u.began, now-u.ended; restShare*rest > took {
			u.beside = 0
		}
		u.began = now
	}
	if !slices.Contains(u.steps, m.ID) {
		u.steps = append(u.steps, m.ID)
	}
	u.uses = len(m.Plan.Uses)
}

func (u *urgent) underWay() bool { return len(u.steps) > 0 }

// side returns which side of the order of experts a step is on.
func side(s *stages.Step) policy.Side {
	if s.Batch != nil && s.Batch.Urgent {
		return policy.Urgent
	}
	return policy.Ordinary
}

// under counts reads under way: those that are late, and the others by rank.
type under struct {
	ranks [stages.UrgentRead - stages.GuessRead + 1]int
	late  int
}

func (u *under) begun(r stages.Rank)  { u.ranks[r-stages.GuessRead]++ }
func (u *under) ended(r stages.Rank)  { u.ranks[r-stages.GuessRead]-- }
func (u *under) of(r stages.Rank) int { return u.ranks[r-stages.GuessRead] }

// all returns how many there are.
func (u *under) all() (n int) {
	for _, k := range u.ranks {
		n += k
	}
	return n + u.late
}

// guessed returns how many guesses go before a new one of a rank.
func (u *under) guessed(r stages.Rank) (n int) {
	for ; r <= stages.UrgentRead; r++ {
		if r.Speculative() {
			n += u.of(r)
		}
	}
	return n
}

// firstOrdinary returns where in the queue the loads begin that are not urgent.
func (c *Core) firstOrdinary() int {
	i := slices.IndexFunc(c.queue, func(l *load) bool { return !l.step.Batch.Urgent })
	if i < 0 {
		return len(c.queue)
	}
	return i
}

// heldBack reports whether a layer may ask for no further read of a rank now, and what it would
// have to wait for.
func (c *Core) heldBack(layer int, r stages.Rank) (waits record.Reason, held bool) {
	most := c.cfg.Reads
	switch {
	case r.Urgent():
		return waits, false
	case r.Speculative():
		return record.ReadCredit, most != 0 && c.urgent.underWay()
	case c.slots.of(layer).spare() <= c.keptBack(layer):
		return record.Room, true
	case most == 0:
		return waits, false
	case c.urgent.underWay():
		most = c.urgent.beside
	}
	return record.ReadCredit, c.reading.of(r) >= most
}

// keptBack is how many slots others leave to urgent steps: those of a layer, but never so many that
// others have none, and none while the disk hangs, so that everybody is told of that.
func (c *Core) keptBack(layer int) int {
	if c.reading.late > 0 {
		return 0
	}
	return min(c.urgent.uses, c.slots.of(layer).live()/4)
}

// hurry gives a read that a load has come to wait for the load's rank. It tells of each rank once,
// even if the load is drained and another one comes.
func (c *Core) hurry(id stages.SlotID, l *load, out *stages.Outbox) {
	s, rank := c.slots.at(id), stages.RankOf(l.step.Batch.Urgent, false)
	if s.state != filling || s.rank >= rank {
		return
	}
	if s.rank.Speculative() {
		c.pace.urged()
	}
	if !s.late {
		c.reading.ended(s.rank)
		c.reading.begun(rank)
	}
	s.rank = rank
	out.Hurries = append(out.Hurries, stages.Hurry{Slot: id, Gen: s.gen, Rank: rank})
}
