package expertio

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/expertio/policy"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// prefetch handles a hint. Experts that are in memory are kept; others are read if that is worth
// it.
//
// It asks for reads in the order of the hint, the likeliest first. A read needs a spare slot beyond
// those of one wave, which are left to demand reads, and it never evicts an expert that is likelier
// itself. Each read is weighed, in units of one read's time:
//
//	chance · saved > (1 - chance) · cost
//
// saved is the share of the read that the disk can do before the layer is due, at most 1: the time
// left, by experience, less what the disk has to do first (guesses under way, what the layers until
// then usually miss, and the reads of this hint so far). So a read that could not even begin in
// time is not made. Reads on demand that are under way do not count: they put off the layer by as
// much as this read. So where a step misses many experts its guesses keep the disk busy while it
// computes. cost is what a useless read takes from others: the share of time in which the disk is
// busy with reads that a load waits for, plus slotCost for the slot that it takes. Without
// experience, prefetch assumes that there is enough time.
func (c *Core) prefetch(m *stages.PrefetchExperts, out *stages.Outbox) error {
	if err := c.checkHint(m); err != nil {
		return err
	}
	pool := c.slots.of(m.Layer)
	st, due, of := &c.layers[m.Layer], c.pace.predicted(m), side(&m.Step)
	rank := stages.RankOf(of == policy.Urgent, true)
	room, cost := c.pace.room(m, due, c.reading.guessed(rank)), c.pace.cost()
	first := len(c.reads)
	c.notes.hints++
	for i, e := range m.Experts {
		key, chance := m.Layer*c.cfg.Experts+int(e), float64(m.Chances[i])
		c.slots.predict(of, key, m.Chances[i])
		if _, ok := c.slots.find(key); ok || c.elsewhere(key) {
			continue
		}
		saved := min(1, max(0, room-float64(len(c.reads)-first)))
		verdict := record.Issued
		switch _, held := c.heldBack(m.Layer, rank); {
		case c.pauses[m.Layer][of].on():
			verdict = record.Skipped
		case held || pool.spare() <= c.cfg.WaveSlots || !pool.spareFor(chance):
			verdict = record.Dropped
		case chance*saved <= (1-chance)*cost:
			verdict = record.Declined
		case !c.guess(m, key, rank):
			verdict = record.Dropped
		}
		c.noteGuess(m, i, verdict)
		countGuess(verdict, st)
	}
	c.group(out, m.Step, first, rank)
	return nil
}

// guess asks for an expert that may be wanted, and reports whether there was a slot for it.
func (c *Core) guess(m *stages.PrefetchExperts, key int, rank stages.Rank) bool {
	id, wasted, ok := c.slots.take(key)
	if !ok {
		return false
	}
	c.countWasted(wasted)
	s := c.slots.at(id)
	s.predicted, s.guessed, s.speculative = true, side(&m.Step), true
	c.reads = append(c.reads, c.readInto(id, rank, c.notes.guess(m.ID, m.Ahead > m.Layer)))
	return true
}

// countGuess counts what became of a guess.
func countGuess(v record.Verdict, st *stages.LayerStats) {
	switch v {
	case record.Issued:
		st.PrefetchIssued++
	case record.Dropped:
		st.PrefetchDropped++
	case record.Declined:
		st.PrefetchDeclined++
	case record.Skipped:
		st.PrefetchSkipped++
	}
}

// checkHint reports a hint about a layer or an expert that does not exist.
func (c *Core) checkHint(m *stages.PrefetchExperts) error {
	if m.Layer < 0 || m.Layer >= c.cfg.Layers || m.Ahead < 0 {
		return fmt.Errorf("expertio: experts are predicted for %v, %d layers ahead, of a model with %d layers", &m.Step, m.Ahead, c.cfg.Layers)
	}
	if len(m.Chances) != len(m.Experts) {
		return fmt.Errorf("expertio: %d experts are predicted for %v with %d chances", len(m.Experts), &m.Step, len(m.Chances))
	}
	for i, e := range m.Experts {
		if e < 0 || int(e) >= c.cfg.Experts {
			return fmt.Errorf("expertio: expert %d of %d is predicted for %v", e, c.cfg.Experts, &m.Step)
		}
		if chance := m.Chances[i]; !(chance > 0 && chance <= 1) {
			return fmt.Errorf("expertio: expert %d is predicted for %v with a chance of %v", e, &m.Step, chance)
		}
	}
	return nil
}

// countUsed counts the first use of an expert that was read for a prediction.
func (c *Core) countUsed(id stages.SlotID, st *stages.LayerStats) {
	s := c.slots.at(id)
	if !s.predicted {
		return
	}
	p := &c.pauses[s.key/c.cfg.Experts][s.guessed]
	s.predicted = false
	if s.state == filling {
		st.PrefetchLate++
		p.saved[0] += lateSaves
	} else {
		st.PrefetchHit++
		p.saved[0]++
	}
}

// countUnused counts a slot's expert as wasted if it was read for a prediction and never used.
func (c *Core) countUnused(id stages.SlotID) {
	c.countWasted(c.slots.at(id).waste())
}

// waste is an expert, by key, that was read for a prediction and never used, and for which side.
type waste struct {
	key int
	of  policy.Side
}

// noWaste is none.
var noWaste = waste{key: -1}

// waste returns what goes to waste if the slot's expert leaves now.
func (s *slot) waste() waste {
	if !s.predicted {
		return noWaste
	}
	return waste{s.key, s.guessed}
}

// countWasted counts a speculative read that was of no use.
func (c *Core) countWasted(w waste) {
	if w != noWaste {
		layer := w.key / c.cfg.Experts
		c.layers[layer].PrefetchWasted++
		c.pauses[layer][w.of].wasted[0]++
	}
}
