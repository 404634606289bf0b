package stagetest

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// evicted takes an expert out of its slot.
func (w *watchedRecords) evicted(e record.Eviction, now int64) error {
	s := w.slots[stages.SlotID(e.Slot)]
	if s == nil || s.filling {
		return fmt.Errorf("%+v is recorded of a slot without an expert", e)
	}
	want := record.Eviction{AtNS: now, Layer: s.read.Layer, Expert: s.read.Expert, Slot: e.Slot}
	l := w.layer(want.Layer)
	if s.unused != 0 {
		want.Unused = 1
		l.PrefetchWasted++
	}
	l.Evictions++
	if e != want {
		return fmt.Errorf("an eviction is recorded as %+v, want %+v", e, want)
	}
	delete(w.slots, stages.SlotID(e.Slot))
	return nil
}

// asked notes the reads that a message has made expert-IO ask for. The slots must be empty. It
// returns the slots of those on demand, and whether a use must have asked: a second try of a guess
// that somebody waits for has none of its own.
func (w *watchedRecords) asked(out *stages.Outbox) (demand map[int32]bool, err error) {
	demand = make(map[int32]bool)
	for _, g := range out.Reads {
		for _, r := range g.Reads {
			if w.slots[r.Slot] != nil {
				return nil, fmt.Errorf("slot %d is read into, and it is not recorded that layer %d expert %d leaves it", r.Slot, w.slots[r.Slot].read.Layer, w.slots[r.Slot].read.Expert)
			}
			s := &watchedSlot{filling: true, rank: g.Rank, read: record.Read{
				Step: uint64(g.Step.ID), AskedNS: out.NowNS, Layer: int32(r.Layer), Expert: int32(r.Expert), Slot: int32(r.Slot),
			}}
			switch {
			case !g.Rank.Speculative():
				s.read.WantedNS, s.wanted = out.NowNS, true
				f := w.failed[r.Slot]
				demand[int32(r.Slot)] = f == nil || f.read.Layer != s.read.Layer || f.read.Expert != s.read.Expert
			case g.Step.ID != 0:
				s.read.Hint, s.unused = w.hints, w.hints
			}
			w.slots[r.Slot] = s
		}
	}
	for _, id := range out.Frees {
		if w.slots[id] != nil {
			return nil, fmt.Errorf("slot %d is given up, and it is not recorded that its expert leaves it", id)
		}
	}
	for _, h := range out.Hurries {
		if s := w.slots[h.Slot]; s != nil && s.filling {
			s.rank = h.Rank
		}
	}
	return demand, nil
}

// guesses compares the records of a hint with the hint, and with what was asked for because of it.
func (w *watchedRecords) guesses(m stages.Message, out *stages.Outbox) error {
	hint, ok := m.(*stages.PrefetchExperts)
	if !ok {
		if n := len(w.fresh.guesses); n > 0 {
			return fmt.Errorf("%d guesses are recorded of no hint", n)
		}
		return nil
	}
	l, at, issued := w.layer(int32(hint.Layer)), 0, 0
	for _, g := range w.fresh.guesses {
		for at < len(hint.Experts) && hint.Experts[at] != g.Expert {
			at++
		}
		if at == len(hint.Experts) {
			return fmt.Errorf("%+v is recorded of a hint of the experts %v", g, hint.Experts)
		}
		want := record.Guess{
			Hint: w.hints, Step: uint64(hint.ID), AtNS: out.NowNS, Layer: int32(hint.Layer), Ahead: int32(hint.Ahead), Expert: g.Expert, Chance: hint.Chances[at], Verdict: g.Verdict,
		}
		if g != want {
			return fmt.Errorf("a guess is recorded as %+v, want %+v", g, want)
		}
		switch g.Verdict {
		case record.Issued:
			issued++
			l.PrefetchIssued++
			if !slices.ContainsFunc(slices.Collect(maps.Values(w.slots)), func(s *watchedSlot) bool {
				return s.filling && s.read.Hint == w.hints && s.read.Layer == g.Layer && s.read.Expert == g.Expert
			}) {
				return fmt.Errorf("%+v is recorded, and not asked for", g)
			}
		case record.Dropped:
			l.PrefetchDropped++
		case record.Declined:
			l.PrefetchDeclined++
		case record.Skipped:
			l.PrefetchSkipped++
		}
	}
	for _, s := range w.slots {
		if s.read.Hint == w.hints {
			issued--
		}
	}
	if issued != 0 {
		return fmt.Errorf("of hint %d reads are recorded as issued that were not asked for, or are missing: %d", w.hints, issued)
	}
	return nil
}

// used checks where a use found its expert. demand is the reads that uses have asked for; it is
// removed from there.
func (w *watchedRecords) used(u record.Use, now int64, demand map[int32]bool) error {
	load := w.loads[waveID{stages.StepID(u.Step), int(u.Layer), 0}]
	if load == nil {
		return fmt.Errorf("%+v is recorded of a layer that is not routed", u)
	}
	want := record.Use{Step: u.Step, AtNS: now, Layer: u.Layer, Expert: u.Expert, Slot: u.Slot, Rows: -1}
	for _, x := range load.uses {
		if x.Expert == u.Expert && load.given[u.Expert] == nil {
			want.Rows = int32(len(x.Pairs))
		}
	}
	l, given := w.layer(u.Layer), &givenUse{slot: u.Slot}
	s := w.slots[stages.SlotID(u.Slot)]
	must, asked := demand[u.Slot]
	switch {
	case u.Slot < 0 && u.Found == record.Away:
		if want.Found = record.Away; !load.away {
			return fmt.Errorf("%+v is recorded of a layer for which no host is asked", u)
		}
		given.ready, given.readyNS = true, now
	case u.Slot < 0: // mapped
		given.ready, given.readyNS = true, now
	case s == nil || s.read.Layer != u.Layer || s.read.Expert != u.Expert:
		return fmt.Errorf("%+v is recorded of a slot with something else", u)
	case must || asked && u.Found == record.Missing:
		want.Found = record.Missing
		delete(demand, u.Slot)
	default:
		want.Hint = s.unused
		switch {
		case !s.filling:
			given.ready, given.readyNS = true, now
		case s.wanted:
			want.Found = record.Shared
		default:
			want.Found = record.Late
			s.wanted, s.read.WantedNS = true, now
		}
		if s.unused != 0 && s.filling {
			l.PrefetchLate++
		} else if s.unused != 0 {
			l.PrefetchHit++
		}
		s.unused = 0
	}
	if u != want {
		return fmt.Errorf("a use is recorded as %+v, want %+v", u, want)
	}
	switch u.Found {
	case record.Away:
		l.Away++
		l.Misses++
	case record.Missing:
		l.Misses++
	default:
		l.Hits++
	}
	load.given[u.Expert] = given
	return nil
}

// figures compares what records add up to with what expert-IO counts.
func (w *watchedRecords) figures(s *stages.Stats) error {
	for i := range s.Layers {
		l := &s.Layers[i]
		want := stages.LayerStats{
			Hits: l.Hits - w.routed[s][i], Misses: l.Misses, Away: l.Away, BytesRead: l.BytesRead, BytesAhead: l.BytesAhead, BytesWarm: l.BytesWarm, Evictions: l.Evictions,
			PrefetchIssued: l.PrefetchIssued, PrefetchHit: l.PrefetchHit, PrefetchLate: l.PrefetchLate, PrefetchWasted: l.PrefetchWasted,
			PrefetchDropped: l.PrefetchDropped, PrefetchDeclined: l.PrefetchDeclined, PrefetchSkipped: l.PrefetchSkipped,
		}
		if got := w.layer(int32(i)); !reflect.DeepEqual(*got, want) {
			return fmt.Errorf("layer %d: records add up to %+v, expert-IO counts %+v", i, *got, want)
		}
	}
	delete(w.routed, s)
	return nil
}
