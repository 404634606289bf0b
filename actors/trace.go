package actors

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/combine"
	"github.com/moeflux/moeflux-actor/tracing"
)

// flushRecords asks a shell for its records of a step that is over. The sequencer's shell sends it
// to all five; records that a stage adds later (slots that come home after the last layer) are left
// out.
type flushRecords struct{ ended stages.Ended }

// recordsFlushed carries one stage's records to the tracer.
type recordsFlushed struct {
	ended   stages.Ended
	records []tracing.Record
}

// barrier runs behind all records to the tracer, through each stage, and closes done when the last
// has come. Close waits for it, so that the spans of the last step are made.
type barrier struct{ done chan struct{} }

// record notes what the core made of a message. The outbox is still full.
func (s *shell) record(m stages.Message, head *stages.Step, began int64) tracing.Record {
	r := tracing.Record{
		Step: head.ID, Layer: int32(head.Layer), Stage: s.id, Kind: tracing.KindOf(m), QueuedNS: head.SentNS, BeganNS: began,
	}
	switch m := m.(type) {
	case *stages.BeginLayer:
		if s.id == stages.Dispatch {
			r.Times = s.e.meter.of(head.Layer)
		}
	case *stages.LayerRetired, *stages.ReadLogits, *stages.LogitsReady:
		r.Times = s.e.meter.of(head.Layer)
	case *stages.PrefetchExperts:
		r.Count = int32(s.reads(head.ID, true))
		r.Miss = int32(len(m.Experts)) - r.Count
	case *stages.PicksReady:
		for _, send := range s.out.Sends {
			if routed, ok := send.Msg.(*stages.LayerRouted); ok {
				r.Count = int32(len(routed.Plan.Uses))
			}
		}
	case *stages.StepRouted:
		r.Count = int32(routedHits(m, s.e.info.TopK))
	case *stages.LayerRouted:
		missed := s.reads(head.ID, false)
		r.Count, r.Miss = int32(len(m.Plan.Uses)-missed), int32(missed)
		r.Bytes = int64(missed) * int64(s.e.info.SlotBytes)
	case *stages.ExpertsRead:
		r.Count = int32(len(m.Results))
		if m.Speculative {
			r.Wave = aheadReads
		}
		for _, res := range m.Results {
			if res.Err != nil {
				r.Miss++
			} else {
				r.Bytes += int64(s.e.info.SlotBytes)
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

// routedHits counts the different experts of each layer of what the device has routed by itself.
func routedHits(m *stages.StepRouted, topK int) int {
	type use struct{ layer, expert int32 }
	uses := make(map[use]bool)
	for i, e := range m.Picks {
		if e >= 0 {
			uses[use{int32(i / (topK * len(m.Batch.Rows))), e}] = true
		}
	}
	return len(uses)
}

// reads counts the reads that the outbox asks for on behalf of a step.
func (s *shell) reads(step stages.StepID, speculative bool) int {
	n := 0
	for _, g := range s.out.Reads {
		if g.Step.ID == step && g.Speculative == speculative {
			n += len(g.Reads)
		}
	}
	return n
}

// endTraced asks all stages for the records of steps that ended with this message.
func (s *shell) endTraced() {
	if s.ring == nil {
		return
	}
	for _, ended := range s.out.Ended {
		for _, pid := range s.e.pids {
			s.e.system.Root.Send(pid, &flushRecords{ended})
		}
	}
}

func (s *shell) flush(m *flushRecords) {
	s.e.system.Root.Send(s.e.tracer, &recordsFlushed{m.ended, s.ring.Take(m.ended.Step.ID, nil)})
}

// tracer is the actor that makes spans of the records of ended steps.
type tracer struct {
	e        *Engine
	replayer *tracing.Replayer
	steps    map[stages.StepID]*gathered
	barriers int // stages whose barrier has come
}

// gathered is what the stages have sent of one step.
type gathered struct {
	records []tracing.Record
	stages  int
}

// Receive handles one message of the mailbox.
func (t *tracer) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *recordsFlushed:
		t.gather(m)
	case *barrier:
		if t.barriers++; t.barriers == stages.NumStages {
			close(m.done)
		}
	}
}

// gather emits a step's spans when all stages have sent their records.
func (t *tracer) gather(m *recordsFlushed) {
	id := m.ended.Step.ID
	g := t.steps[id]
	if g == nil {
		g = new(gathered)
		t.steps[id] = g
	}
	g.records = append(g.records, m.records...)
	if g.stages++; g.stages < stages.NumStages {
		return
	}
	delete(t.steps, id)
	t.emit(m.ended, g.records)
}

// emit makes one tree of spans for each caller of the step that traces.
func (t *tracer) emit(ended stages.Ended, records []tracing.Record) {
	if len(records) == 0 {
		return
	}
	records = gatherParts(records)
	c := tracing.Chunk{Step: ended.Step.ID, Err: ended.Err, BeganNS: records[0].BeganNS}
	for i := range records {
		r := &records[i]
		if r.QueuedNS > 0 {
			c.BeganNS = min(c.BeganNS, r.QueuedNS)
		}
		c.EndedNS = max(c.EndedNS, r.EndedNS)
		if r.Kind == tracing.KindLayerRouted || r.Kind == tracing.KindStepRouted {
			c.Hits += int64(r.Count)
			c.Misses += int64(r.Miss)
			c.BytesRead += r.Bytes
		}
	}
	for i, g := range ended.Step.Batch.Segments {
		if tc := ended.Step.Batch.Traces[i]; tc.Sampled() {
			c.Trace, c.Seq, c.Pos, c.Rows = tc, g.Seq, g.Pos, g.Rows
			t.replayer.Emit(c, records)
		}
	}
}
