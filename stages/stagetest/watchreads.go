package stagetest

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/stages"
)

// watchedReads checks what expert-IO asks for beside steps that decode: nothing on a guess, and one
// read on demand at a time; and no more on demand than there may be otherwise. What an urgent step
// needs is not bounded. A read that has failed and is asked for again takes its own place, and what
// a warm start reads is no guess.
type watchedReads struct {
	most   int                           // Config.Reads
	last   int                           // the last layer
	urgent map[stages.StepID]bool        // under way: routed, and its last wave not sent
	ranks  map[stages.SlotID]stages.Rank // of reads under way that are not late
	again  map[stages.SlotID]bool        // reads that have failed by the present message
	count  map[stages.Rank]int           // of ranks
}

func newWatchedReads(most, layers int) watchedReads {
	return watchedReads{
		most: most, last: layers - 1, urgent: make(map[stages.StepID]bool), ranks: make(map[stages.SlotID]stages.Rank),
		again: make(map[stages.SlotID]bool), count: make(map[stages.Rank]int),
	}
}

// received notes what expert-IO learns.
func (w *watchedReads) received(to stages.StageID, in stages.Message) {
	clear(w.again)
	if to != stages.ExpertIO {
		return
	}
	switch m := in.(type) {
	case *stages.LayerRouted:
		if m.Batch.Urgent {
			w.urgent[m.ID] = true
		}
	case *stages.DrainStep:
		delete(w.urgent, m.ID)
	case *stages.ReadOverdue:
		w.over(m.Slot)
	case *stages.ExpertsRead:
		for _, r := range m.Results {
			w.over(r.Slot)
			w.again[r.Slot] = r.Err != nil
		}
	}
}

// over notes that a read has ended or is late.
func (w *watchedReads) over(slot stages.SlotID) {
	if r, ok := w.ranks[slot]; ok {
		w.count[r]--
		delete(w.ranks, slot)
	}
}

// sent notes the ends of steps for expert-IO.
func (w *watchedReads) sent(sends []stages.Send) {
	for _, s := range sends {
		if m, ok := s.Msg.(*stages.WaveResident); ok && m.Last && m.Layer == w.last {
			delete(w.urgent, m.ID)
		}
	}
}

// asked checks a read that is asked for.
func (w *watchedReads) asked(g *stages.ReadGroup, r stages.Read) error {
	most, beside := w.most, len(w.urgent) > 0
	if beside {
		most = 1
	}
	switch n := w.count[g.Rank]; {
	case w.most == 0 || w.again[r.Slot] || g.Step.Batch == nil:
	case g.Rank == stages.GuessRead && beside:
		return fmt.Errorf("layer %d expert %d is read on a guess for others beside %d urgent steps", r.Layer, r.Expert, len(w.urgent))
	case g.Rank == stages.DemandRead && n >= most:
		return fmt.Errorf("layer %d expert %d is read on demand beside %d such reads and %d urgent steps, want %d at once", r.Layer, r.Expert, n, len(w.urgent), most)
	}
	w.set(r.Slot, g.Rank)
	return nil
}

// set notes the rank of a read under way.
func (w *watchedReads) set(slot stages.SlotID, r stages.Rank) {
	w.over(slot)
	w.ranks[slot] = r
	w.count[r]++
}

// hurried notes that reads have come to have a higher rank: an urgent one, or that of others. Reads
// that are late are not counted.
func (w *watchedReads) hurried(all []stages.Hurry, urgent bool) {
	for _, h := range all {
		if _, ok := w.ranks[h.Slot]; ok && h.Rank.Urgent() == urgent {
			w.set(h.Slot, h.Rank)
		}
	}
}
