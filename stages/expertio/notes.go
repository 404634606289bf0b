package expertio

import (
	"errors"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// notes writes down what the stage does with experts (package tracing/record).
type notes struct {
	log   *record.Log
	now   int64  // when the stage took the present message, on the engine's clock
	hints uint64 // so far
}

// request says who asked for what a slot holds.
type request struct {
	step     stages.StepID // 0: a warm start
	hint     uint64        // of the guess; 0: on demand, or a warm start
	atNS     int64
	next     bool // for the next step of the step's sequences
	wanted   bool // somebody has come to need it while it was being read, or asked for it on demand
	wantedNS int64
}

// message begins the notes of a message.
func (n *notes) message(out *stages.Outbox) { n.log, n.now = out.Records(), out.NowNS }

// demand returns the request of a load of a step, guess that of a hint, and warm that of a warm
// start.
func (n *notes) demand(step stages.StepID) request {
	return request{step: step, atNS: n.now, wanted: true, wantedNS: n.now}
}

func (n *notes) guess(step stages.StepID, next bool) request {
	return request{step: step, hint: n.hints, next: next, atNS: n.now}
}

func (n *notes) warm() request { return request{atNS: n.now} }

// noteUse notes that a use of a load is given its slot, or is computed by a host and has none.
func (c *Core) noteUse(l *load, use int, id stages.SlotID, found record.Found) {
	u := &l.plan.Uses[use]
	r := record.Use{
		Step: uint64(l.step.ID), AtNS: c.notes.now, Layer: int32(l.step.Layer), Expert: u.Expert, Slot: int32(id), Rows: int32(len(u.Pairs)), Found: found,
	}
	if c.cfg.Mapped {
		r.Slot = -1
	}
	if id != none && c.slots.at(id).predicted {
		r.Hint = c.slots.at(id).request.hint
	}
	c.notes.log.Uses.Add(r)
}

// found says where a use finds its expert, which has a slot, and notes that it is wanted.
func (c *Core) found(s *slot) record.Found {
	switch {
	case s.state != filling:
		return record.Resident
	case s.request.wanted:
		return record.Shared
	}
	s.request.wanted, s.request.wantedNS = true, c.notes.now
	return record.Late
}

// noteAnswer notes what a host has said to an ask.
func (c *Core) noteAnswer(a *ask, m *stages.ExpertsAnswered) {
	r := record.Answer{
		Step: uint64(a.step), Ask: m.Ask, AskedNS: a.askedNS, EndedNS: m.Stamped(), WaitedNS: m.WaitedNS, ReadNS: m.ReadNS, ComputedNS: m.ComputedNS,
		Layer: int32(a.layer), Host: int32(a.host), Uses: int32(len(m.Uses)),
	}
	if m.Err != nil {
		r.Uses, r.Failed = int32(len(a.uses)), 1
	}
	c.notes.log.Answers.Add(r)
}

// noteRead notes the end of a read into a slot.
func (c *Core) noteRead(s *slot, r *stages.ReadResult) {
	q := &s.request
	n := record.Read{
		Step: uint64(q.step), Hint: q.hint, AskedNS: q.atNS, BeganNS: r.BeganNS, EndedNS: r.EndedNS, PlacedNS: r.PlacedNS, WantedNS: q.wantedNS,
		Layer: int32(s.key / c.cfg.Experts), Expert: int32(s.key % c.cfg.Experts), Slot: int32(r.Slot),
	}
	if r.Err != nil {
		n.Failed = 1
		if errors.Is(r.Err, stages.ErrRecalled) {
			n.Recalled = 1
		}
	} else {
		n.Bytes = int64(c.cfg.ExpertBytes)
	}
	if r.FromHost {
		n.Tier = record.FromHost
	}
	if s.rank.Urgent() {
		n.Urgent = 1
	}
	c.notes.log.Reads.Add(n)
}

// noteGuess notes what became of an expert of a hint that was not in memory.
func (c *Core) noteGuess(m *stages.PrefetchExperts, i int, v record.Verdict) {
	c.notes.log.Guesses.Add(record.Guess{
		Hint: c.notes.hints, Step: uint64(m.ID), AtNS: c.notes.now, Layer: int32(m.Layer), Ahead: int32(m.Ahead), Expert: m.Experts[i], Chance: m.Chances[i], Verdict: v,
	})
}

// evicted notes that a slot's expert leaves it.
func (p *slots) evicted(id stages.SlotID) {
	s := p.at(id)
	layer := s.key / p.experts
	p.evictions[layer]++
	r := record.Eviction{AtNS: p.notes.now, Layer: int32(layer), Expert: int32(s.key % p.experts), Slot: int32(id)}
	if s.predicted {
		r.Unused = 1
	}
	p.notes.log.Evictions.Add(r)
}
