package runtime

import (
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/combine"
	"github.com/moeflux/moeflux-actor/tracing"
)

// readName names a read under way: a slot, and its generation.
type readName struct {
	slot stages.SlotID
	gen  uint32
}

// flushRecords asks a shell for its records of a step that is over. The sequencer's shell sends it
// to all five. Records that a stage adds later, such as of reads for the next step, are left out.
type flushRecords struct{ ended stages.Ended }

// recordsFlushed carries one stage's records to the tracer.
type recordsFlushed struct {
	ended   stages.Ended
	records []tracing.Record
	lost    int64 // that did not fit into the stage's ring
}

// barrier follows all records to the tracer, through each stage, and closes done when the last has
// come. Close waits for it, so that the spans of the last step are made.
type barrier struct{ done chan struct{} }

// record notes what the core made of a message. The outbox is still full. head is a copy, made
// before the core had the message: a core may have taken back a message's memory.
func (s *shell) record(m stages.Message, head *stages.Step, began int64) tracing.Record {
	r := tracing.Record{
		Step: head.ID, Layer: int32(head.Layer), Stage: s.id, Kind: m.MessageKind(), QueuedNS: head.SentNS, BeganNS: began,
	}
	switch m := m.(type) {
	case *stages.BeginLayer:
		if s.id == stages.Dispatch {
			r.Times, r.Count = s.r.meter.Of(head.Layer, m.More), int32(m.More)
		}
	case *stages.LayerRetired:
		r.Times, r.Count = s.r.meter.Of(head.Layer, m.More), int32(m.More)
	case *stages.ReadLogits, *stages.LogitsReady:
		r.Times = s.r.meter.Of(head.Layer, 0)
	case *stages.PrefetchExperts:
		h := &s.out.Hint
		r.Count, r.Miss, r.Declined, r.Skipped = int32(h.Issued), int32(h.Dropped), int32(h.Declined), int32(h.Skipped)
		r.Wave, r.Bytes, r.Hint = int32(m.Ahead), int64(h.Issued)*int64(s.r.tracing.SlotBytes), s.hint(head.ID)
	case *stages.PicksReady:
		for _, send := range s.out.Sends {
			if routed, ok := send.Msg.(*stages.LayerRouted); ok {
				r.Count = int32(len(routed.Plan.Uses))
			}
		}
	case *stages.ExpertsRead:
		r.Count = int32(len(m.Results))
		for _, res := range m.Results {
			r.Hint = max(r.Hint, s.hintOf[readName{res.Slot, res.Gen}])
			if res.Err != nil {
				r.Miss++
			} else {
				r.Bytes += int64(s.r.tracing.SlotBytes)
			}
		}
	case *stages.WaveResident:
		r.Wave, r.Count = int32(m.Wave), int32(len(m.Slots))
		if m.Last {
			r.Miss = lastOfLayer
		}
	case *stages.WaveSubmitted:
		r.Wave = int32(m.Wave)
	case *stages.SlotsReleased:
		r.Wave = int32(m.Wave)
	case *stages.TicketDone:
		r.DeviceNS = m.DeviceNS
		if c, ok := s.core.(*combine.Core); ok {
			r.Count = int32(c.Waves())
		}
	}
	return r
}

// hint numbers a hint, and notes which reads it has started for a step.
func (s *shell) hint(step stages.StepID) int32 {
	s.hints++
	for _, g := range s.out.Reads {
		if g.Step.ID != step || !g.Rank.Speculative() {
			continue
		}
		for _, r := range g.Reads {
			s.hintOf[readName{r.Slot, r.Gen}] = s.hints
		}
	}
	return s.hints
}

// endHint forgets which hints the reads belonged to that have ended, of whatever step.
func (s *shell) endHint(m stages.Message) {
	if m, ok := m.(*stages.ExpertsRead); ok {
		for _, res := range m.Results {
			delete(s.hintOf, readName{res.Slot, res.Gen})
		}
	}
}

// recordMatched notes the uses that were given slots, of whatever steps. On a device that routes by
// itself all uses are hits.
func (s *shell) recordMatched(m stages.Message, now int64) {
	for _, t := range s.out.Matched {
		s.addMatched(&t.Step, t.Segment, t.Hits, t.Misses, now)
	}
	r, ok := m.(*stages.StepRouted)
	if !ok || r.Batch == nil || !r.Batch.Traced {
		return
	}
	k := s.r.tracing.TopK
	for segment, g := range r.Batch.Segments {
		hits := 0
		for at := 0; at < len(r.Picks); at += k * len(r.Batch.Rows) {
			hits += countDistinct(r.Picks[at+k*g.Row : at+k*(g.Row+g.Rows)])
		}
		s.addMatched(&r.Step, segment, hits, 0, now)
	}
}

func (s *shell) addMatched(step *stages.Step, segment, hits, misses int, now int64) {
	s.ring.Add(tracing.Record{
		Step: step.ID, Layer: int32(step.Layer), Wave: int32(segment), Stage: s.id, Kind: tracing.KindMatched, BeganNS: now, EndedNS: now,
		Count: int32(hits), Miss: int32(misses), Bytes: int64(misses) * int64(s.r.tracing.SlotBytes),
	})
}

// countDistinct counts the different experts among picks. Negative ones are none.
func countDistinct(picks []int32) int {
	seen := make(map[int32]bool)
	for _, e := range picks {
		if e >= 0 {
			seen[e] = true
		}
	}
	return len(seen)
}

// endTraced asks all stages for the records of steps that ended with this message.
func (s *shell) endTraced() {
	if s.ring == nil {
		return
	}
	for _, ended := range s.out.Ended {
		for _, pid := range s.r.pids {
			s.r.system.Root.Send(pid, &flushRecords{ended})
		}
	}
}

func (s *shell) flush(m *flushRecords) {
	step := m.ended.Step.ID
	s.r.system.Root.Send(s.r.tracer, &recordsFlushed{m.ended, s.ring.Take(step, nil), s.ring.TakeLost(step)})
}
