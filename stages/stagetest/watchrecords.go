package stagetest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// watchedRecords compares what sequencer, router and expert-IO record with what they are told and
// ask for.
type watchedRecords struct {
	log     *record.Log
	steps   watchedSteps
	bytes   int64        // of an expert's record
	seen    seenRecords  // up to the present message
	fresh   freshRecords // of the present message
	hints   uint64
	topK    int                            // 0: not known yet
	slots   map[stages.SlotID]*watchedSlot // that hold an expert, or are being read into
	failed  map[stages.SlotID]*watchedSlot // guesses that somebody waited for, at the present message
	loads   map[waveID]*watchedLoad        // of which wave 0 stands for all
	borders stages.Borders
	ring    map[ringID][]stages.StepID   // of waves that are out
	before  map[ringID][]stages.StepID   // likewise, before the present message
	layers  map[int32]*stages.LayerStats // what records of expert-IO add up to
	hits    map[int32]int64              // likewise, of layers that the device has routed
	routed  map[*stages.Stats][]int64    // those that figures on their way to expert-IO have
	counted []*countedStep               // in the order in which the router is told
	// routedBy is the layers with experts, if a device is to route by itself
	routedBy int
}

// seenRecords is how far each table is read.
type seenRecords struct{ uses, reads, guesses, evictions, waits, picks record.Cursor }

// freshRecords is what a message has added.
type freshRecords struct {
	uses      []record.Use
	reads     []record.Read
	guesses   []record.Guess
	evictions []record.Eviction
	waits     []record.Wait
	picks     []record.Picks
}

// watchedSlot is what a slot holds, or is to hold.
type watchedSlot struct {
	read    record.Read // as it is to be recorded
	rank    stages.Rank
	filling bool
	wanted  bool   // somebody came to need it before the read had ended
	unused  uint64 // the hint that brought it; 0 when somebody has used it
}

// watchedLoad is what was noted of a layer's plan.
type watchedLoad struct {
	uses     []stages.ExpertUse
	given    map[int32]*givenUse // by expert
	routedNS int64
	waits    int   // for room, or a credit to read
	waitedNS int64 // until when
	sentNS   int64 // the last wave
	lost     bool  // some uses are given up
	away     bool  // hosts were asked for some, which have neither slots nor wait for any
}

type givenUse struct {
	slot    int32
	readyNS int64
	ready   bool
	lost    bool // its read has failed, or does not end
}

// filled notes that the read into a slot has ended.
func (l *watchedLoad) filled(slot int32, now int64) {
	for _, u := range l.given {
		if u.slot == slot && !u.ready {
			u.ready, u.readyNS = true, now
		}
	}
}

func newWatchedRecords(log *record.Log, cfg *Config) watchedRecords {
	return watchedRecords{
		ring: make(map[ringID][]stages.StepID), before: make(map[ringID][]stages.StepID), borders: cfg.Borders, routedBy: cfg.ExpertLayers,
		log: log, steps: newWatchedSteps(log), bytes: int64(cfg.ExpertBytes), slots: make(map[stages.SlotID]*watchedSlot), failed: make(map[stages.SlotID]*watchedSlot), loads: make(map[waveID]*watchedLoad),
		layers: make(map[int32]*stages.LayerStats), hits: make(map[int32]int64), routed: make(map[*stages.Stats][]int64),
	}
}

// drain reads what the present message has added.
func (w *watchedRecords) drain() error {
	f, s := &w.fresh, &w.seen
	*f = freshRecords{uses: f.uses[:0], reads: f.reads[:0], guesses: f.guesses[:0], evictions: f.evictions[:0], waits: f.waits[:0], picks: f.picks[:0]}
	w.log.Uses.Read(&s.uses, func(r []record.Use) { f.uses = append(f.uses, r...) })
	w.log.Reads.Read(&s.reads, func(r []record.Read) { f.reads = append(f.reads, r...) })
	w.log.Guesses.Read(&s.guesses, func(r []record.Guess) { f.guesses = append(f.guesses, r...) })
	w.log.Evictions.Read(&s.evictions, func(r []record.Eviction) { f.evictions = append(f.evictions, r...) })
	w.log.Waits.Read(&s.waits, func(r []record.Wait) { f.waits = append(f.waits, r...) })
	w.log.Picks.Read(&s.picks, func(r []record.Picks) { f.picks = append(f.picks, r...) })
	if n := s.uses.Missed + s.reads.Missed + s.guesses.Missed + s.evictions.Missed + s.waits.Missed + s.picks.Missed; n > 0 {
		return fmt.Errorf("%d records were forgotten before they were looked at", n)
	}
	return nil
}

// layer returns the figures of a layer.
func (w *watchedRecords) layer(layer int32) *stages.LayerStats {
	l := w.layers[layer]
	if l == nil {
		l = new(stages.LayerStats)
		w.layers[layer] = l
	}
	return l
}

// handled looks at what a stage has recorded of a message. The outbox is still full.
func (w *watchedRecords) handled(to stages.StageID, m stages.Message, out *stages.Outbox) error {
	if err := w.drain(); err != nil {
		return err
	}
	switch to {
	case stages.ExpertIO:
		return w.expertIO(m, out)
	case stages.Router:
		return w.router(m, out)
	case stages.Sequencer:
		if err := w.steps.handled(m, w.fresh.waits, out); err != nil {
			return err
		}
	}
	if f := &w.fresh; len(f.uses)+len(f.reads)+len(f.guesses)+len(f.evictions)+len(f.picks) > 0 {
		return fmt.Errorf("%s records what is others': %+v", to, f)
	}
	return nil
}

// expertIO looks at what expert-IO makes of a message, in the order in which one thing can follow
// from another.
func (w *watchedRecords) expertIO(m stages.Message, out *stages.Outbox) error {
	for i := range w.ring {
		w.before[i] = append(w.before[i][:0], w.ring[i]...)
	}
	var results []stages.ReadResult
	switch m := m.(type) {
	case *stages.LayerRouted:
		l := &watchedLoad{uses: m.Plan.Uses, given: make(map[int32]*givenUse), routedNS: out.NowNS, waitedNS: out.NowNS}
		w.loads[waveID{m.ID, m.Layer, 0}] = l
	case *stages.PrefetchExperts:
		w.hints++
	case *stages.ExpertsRead:
		results = m.Results
	case *stages.SlotsReleased:
		ring := ringOf(w.borders, &m.Step)
		if i := slices.Index(w.ring[ring], m.ID); i >= 0 {
			w.ring[ring] = slices.Delete(w.ring[ring], i, i+1)
		}
	case *stages.CollectStats:
		return w.figures(m.Stats)
	}
	if len(w.fresh.reads) != len(results) {
		return fmt.Errorf("%d reads have ended, and %d are recorded", len(results), len(w.fresh.reads))
	}
	clear(w.failed)
	for i := range results {
		if err := w.readEnded(&results[i], w.fresh.reads[i], out.NowNS); err != nil {
			return err
		}
	}
	for _, e := range w.fresh.evictions {
		if err := w.evicted(e, out.NowNS); err != nil {
			return err
		}
	}
	for _, a := range out.Asks {
		w.loads[waveID{a.Step.ID, a.Step.Layer, 0}].away = true
	}
	demand, err := w.asked(out)
	if err == nil {
		err = w.guesses(m, out)
	}
	for i := 0; i < len(w.fresh.uses) && err == nil; i++ {
		err = w.used(w.fresh.uses[i], out.NowNS, demand)
	}
	for slot, must := range demand {
		if err == nil && must {
			err = fmt.Errorf("a read into slot %d is asked for on demand of no use", slot)
		}
	}
	if err == nil {
		err = w.standstills(m, out)
	}
	return err
}

// readEnded compares the record of a read with what was asked for and what came back.
func (w *watchedRecords) readEnded(r *stages.ReadResult, got record.Read, now int64) error {
	s := w.slots[r.Slot]
	if s == nil || !s.filling {
		return fmt.Errorf("a read into slot %d is recorded, which was not asked for", r.Slot)
	}
	want := s.read
	want.BeganNS, want.EndedNS, want.PlacedNS = r.BeganNS, r.EndedNS, r.PlacedNS
	if s.rank.Urgent() {
		want.Urgent = 1
	}
	if r.FromHost {
		want.Tier = record.FromHost
	}
	l := w.layer(want.Layer)
	if r.Err != nil {
		want.Failed = 1
		if errors.Is(r.Err, stages.ErrRecalled) {
			want.Recalled = 1
		}
		delete(w.slots, r.Slot)
		if s.wanted && (want.Hint != 0 || want.Step == 0) {
			w.failed[r.Slot] = s
		}
		if s.unused != 0 {
			l.PrefetchWasted++
		}
	} else {
		want.Bytes = w.bytes
		s.filling = false
		for _, l := range w.loads {
			l.filled(int32(r.Slot), now)
		}
	}
	if got != want {
		return fmt.Errorf("a read is recorded as\n%+v, want\n%+v", got, want)
	}
	begun := max(got.BeganNS, got.AskedNS) // no worker takes what is in the host's memory
	if begun > got.EndedNS || got.Failed == 0 && got.EndedNS > got.PlacedNS || got.BeganNS != 0 && got.BeganNS < got.AskedNS {
		return fmt.Errorf("the times of a read are out of order: %+v", got)
	}
	l.BytesRead += got.Bytes
	switch {
	case got.Hint != 0:
		l.BytesAhead += got.Bytes
	case got.Step == 0:
		l.BytesWarm += got.Bytes
	}
	return nil
}
