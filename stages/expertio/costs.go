package expertio

import "github.com/moeflux/moeflux-actor/stages"

// Who pays for an expert's record: the requests whose rows picked it, by picks. A record that was
// read for a prediction is nobody's until somebody picks its expert, who pays for it then. What a
// warm start has read stays nobody's, and so does what is read when those who asked for it are
// gone.

// owed says what nobody has paid for yet of a slot's expert.
type owed uint8

const (
	nothing owed = iota
	fromDisk
	fromHost
)

// picked counts the picks of a use that finds its expert in memory, finds it being read, or has it
// read.
type picked uint8

const (
	hit picked = iota
	late
	missed
)

// charge counts the picks of one use of a load, and lets it pay for what is in memory.
func (c *Core) charge(l *load, use int, how picked, s *slot) {
	n := int64(len(l.plan.Uses[use].Pairs))
	switch how {
	case hit:
		c.total.Hit += n
	case late:
		c.total.Late += n
	case missed:
		c.total.Missed += n
	}
	for sh := l.share(use); sh.next(); {
		switch n := int64(sh.after - sh.before); how {
		case hit:
			sh.cost.Hit += n
		case late:
			sh.cost.Late += n
		case missed:
			sh.cost.Missed += n
		}
	}
	if how != hit {
		return // whoever waits pays when the read has ended
	}
	bytes := int64(c.cfg.ExpertBytes)
	if s.owed == nothing {
		c.total.SlotBytes += bytes
		for sh := l.share(use); sh.next(); {
			sh.cost.SlotBytes += sh.of(bytes)
		}
		return
	}
	pay(&c.nobody, s.owed, -bytes, -bytes)
	for sh := l.share(use); sh.next(); {
		pay(sh.cost, s.owed, sh.of(bytes), sh.of(bytes))
	}
	s.owed = nothing
}

// pay adds a record's bytes to where they came from.
func pay(to *stages.Cost, from owed, bytes, ahead int64) {
	if from == fromHost {
		to.HostBytes += bytes
	} else {
		to.DiskBytes += bytes
	}
	to.AheadBytes += ahead
}

// payRead lets those who wait for a read that has ended pay for it.
func (c *Core) payRead(s *slot, fromTheHost bool) {
	from, bytes, ahead := fromDisk, int64(c.cfg.ExpertBytes), int64(0)
	if fromTheHost {
		from = fromHost
	}
	if s.speculative && !s.warm {
		ahead = bytes
	}
	pay(&c.total, from, bytes, ahead)
	total := 0
	for _, w := range s.waiting {
		total += len(w.load.plan.Uses[w.use].Pairs)
	}
	if total == 0 {
		pay(&c.nobody, from, bytes, ahead)
		if ahead > 0 {
			s.owed = from
		}
		return
	}
	before := 0
	for _, w := range s.waiting {
		for sh := w.load.share(w.use); sh.next(); {
			from1, to1 := before+sh.before, before+sh.after
			pay(sh.cost, from, stages.Share(bytes, from1, to1, total), stages.Share(ahead, from1, to1, total))
		}
		before += len(w.load.plan.Uses[w.use].Pairs)
	}
}

// share goes through the segments of a step that picked a use's expert.
type share struct {
	load          *load
	pairs         []int32
	before, after int          // picks of the use that the segment has: from before to after
	cost          *stages.Cost // the segment's
}

func (l *load) share(use int) share { return share{load: l, pairs: l.plan.Uses[use].Pairs} }

// next goes to the next segment, if there is one.
func (s *share) next() bool {
	if s.after == len(s.pairs) {
		return false
	}
	b, k := s.load.step.Batch, s.load.plan.TopK
	g := 0
	if len(b.Segments) > 1 {
		g = b.SegmentOf(int(s.pairs[s.after]) / k)
	}
	end := (b.Segments[g].Row + b.Segments[g].Rows) * k
	s.before = s.after
	if len(b.Segments) == 1 {
		s.after = len(s.pairs)
	}
	for s.after < len(s.pairs) && int(s.pairs[s.after]) < end {
		s.after++
	}
	s.cost = &b.Costs[g]
	return true
}

// of returns the segment's share of an amount.
func (s *share) of(amount int64) int64 {
	return stages.Share(amount, s.before, s.after, len(s.pairs))
}

// Costs returns what reads and picks have cost since the stage was made, as counted where they end,
// and what of it nobody pays for. The shares of steps are in their batches.
func (c *Core) Costs() (total, nobody stages.Cost) { return c.total, c.nobody }
