package tracing

import (
	"cmp"
	"slices"
	"sort"

	"go.opentelemetry.io/otel/trace"

	"github.com/moeflux/moeflux-actor/stages"
)

// maxLayers bounds the layer of a record. A record beyond it is ignored.
const maxLayers = 1 << 12

// stepRecords is the records of one step, sorted by what they tell. It points into the records.
type stepRecords struct {
	layers []layerRecords
	n      int // layers in use

	readLogits, logitsReady *Record
	dispatchDone            []*Record // dispatch's TicketDone, by time
	released                []*Record // expert-IO's SlotsReleased, by time
	hints                   []*Record // expert-IO's PrefetchExperts, by time
	hintReads               []*Record // the ends of the hints' reads, one record a hint
}

// layerRecords is the records of one layer. A missing record is nil.
type layerRecords struct {
	begin   *Record // dispatch's BeginLayer
	scores  *Record // the router's PicksReady
	routed  *Record // expert-IO's LayerRouted
	retired *Record // the sequencer's LayerRetired

	span      trace.SpanContext // of the layer, when it is made
	residents []*Record         // dispatch's WaveResident, by time, which is by wave
	tickets   []*Record         // combine's TicketDone, by time
}

// collect sorts the records of a step. It ignores records of other steps, and kinds that neither
// begin nor end a span.
func (s *stepRecords) collect(step stages.StepID, records []Record) {
	for i := range records {
		rec := &records[i]
		if rec.Step != step {
			continue
		}
		switch rec.Kind {
		case stages.KindReadLogits:
			s.readLogits = rec
		case stages.KindLogitsReady:
			s.logitsReady = rec
		default:
			if rec.Layer >= 0 && rec.Layer < maxLayers {
				s.add(rec)
			}
		}
	}
	byTime(s.dispatchDone)
	byTime(s.released)
	byTime(s.hints)
	for i := range s.layers[:s.n] {
		l := &s.layers[i]
		byTime(l.residents)
		byTime(l.tickets)
	}
}

// add files a record of a layer.
func (s *stepRecords) add(rec *Record) {
	for len(s.layers) <= int(rec.Layer) {
		s.layers = append(s.layers, layerRecords{})
	}
	s.n = max(s.n, int(rec.Layer)+1)
	l := &s.layers[rec.Layer]
	switch {
	case rec.Kind == stages.KindBeginLayer && rec.Stage == stages.Dispatch:
		l.begin = rec
	case rec.Kind == stages.KindPicksReady:
		l.scores = rec
	case rec.Kind == stages.KindPrefetchExperts:
		s.hints = append(s.hints, rec)
	case rec.Kind == stages.KindLayerRouted:
		l.routed = rec
	case rec.Kind == stages.KindLayerRetired:
		l.retired = rec
	case rec.Kind == stages.KindExpertsRead && rec.Hint != 0:
		s.hintReads = append(s.hintReads, rec)
	case rec.Kind == stages.KindWaveResident:
		l.residents = append(l.residents, rec)
	case rec.Kind == stages.KindTicketDone && rec.Stage == stages.Combine:
		l.tickets = append(l.tickets, rec)
	case rec.Kind == stages.KindTicketDone && rec.Stage == stages.Dispatch:
		s.dispatchDone = append(s.dispatchDone, rec)
	case rec.Kind == stages.KindSlotsReleased && rec.Stage == stages.ExpertIO:
		s.released = append(s.released, rec)
	}
}

// reset drops all records and keeps the memory.
func (s *stepRecords) reset() {
	for i := range s.layers[:s.n] {
		l := &s.layers[i]
		clear(l.residents)
		clear(l.tickets)
		*l = layerRecords{residents: l.residents[:0], tickets: l.tickets[:0]}
	}
	s.n, s.readLogits, s.logitsReady = 0, nil, nil
	clear(s.dispatchDone)
	clear(s.released)
	clear(s.hints)
	clear(s.hintReads)
	s.dispatchDone, s.released, s.hints, s.hintReads = s.dispatchDone[:0], s.released[:0], s.hints[:0], s.hintReads[:0]
}

// times returns the sum of the times of all layers and of the head, or false if a record of one of
// them is missing.
func (s *stepRecords) times() (t stages.Times, ok bool) {
	for i := 0; i < s.n; i++ {
		l := &s.layers[i]
		if s.readLogits != nil && i == int(s.readLogits.Layer) { // not a layer, but the head
			continue
		}
		if l.begin == nil || l.retired == nil || l.begin.Count != l.retired.Count {
			return t, false
		}
		t.Add(l.retired.Times.Since(l.begin.Times))
		i += int(max(0, l.begin.Count)) // layers that began and retired with it
	}
	switch {
	case s.readLogits != nil && s.logitsReady != nil:
		t.Add(s.logitsReady.Times.Since(s.readLogits.Times))
	case s.readLogits != nil || s.logitsReady != nil:
		return t, false
	}
	return t, true
}

// waves reports whether the k-th ticket of the layer belongs to its k-th wave. A queue ends its
// work in order, so it does if no record of either kind is missing.
func (l *layerRecords) waves() bool {
	if len(l.residents) != len(l.tickets) || l.scores != nil && int(l.scores.Miss) != len(l.tickets) {
		return false
	}
	for i, w := range l.residents {
		if int(w.Wave) != i || l.tickets[i].BeganNS < w.BeganNS {
			return false
		}
	}
	return true
}

// lastWave returns the record of the layer's last wave, or nil if that may be missing. Only the
// router's record says how many waves there are.
func (l *layerRecords) lastWave() *Record {
	n := len(l.residents)
	if n == 0 || l.scores == nil || l.residents[n-1].Wave != l.scores.Miss-1 {
		return nil
	}
	return l.residents[n-1]
}

// readOf returns the end of a hint's reads, or nil if none has ended.
func (s *stepRecords) readOf(hint *Record) *Record {
	for _, rec := range s.hintReads {
		if rec.Hint == hint.Hint {
			return rec
		}
	}
	return nil
}

// waited returns how many of a layer's waves expert-IO sent while it handled slots that came home.
func (s *stepRecords) waited(l *layerRecords) int {
	n := 0
	for _, w := range l.residents {
		if rec := lastBegun(s.released, w.QueuedNS); rec != nil && w.QueuedNS <= rec.EndedNS {
			n++
		}
	}
	return n
}

// releasedOf returns the record of a wave's slots coming home, or nil.
func (s *stepRecords) releasedOf(layer, wave int32) *Record {
	for _, rec := range s.released {
		if rec.Layer == layer && rec.Wave == wave {
			return rec
		}
	}
	return nil
}

// dispatched returns the last ticket that dispatch handled between two times, or nil. It is the one
// after which dispatch sent its answer, at the second time.
func (s *stepRecords) dispatched(beganNS, sentNS int64) *Record {
	if rec := lastBegun(s.dispatchDone, sentNS); rec != nil && rec.BeganNS >= beganNS {
		return rec
	}
	return nil
}

// lastBegun returns the last of recs that began at ns or before, or nil. recs are sorted by time.
func lastBegun(recs []*Record, ns int64) *Record {
	i := sort.Search(len(recs), func(i int) bool { return recs[i].BeganNS > ns })
	if i == 0 {
		return nil
	}
	return recs[i-1]
}

func byTime(recs []*Record) {
	slices.SortStableFunc(recs, func(a, b *Record) int { return cmp.Compare(a.BeganNS, b.BeganNS) })
}
