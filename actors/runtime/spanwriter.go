package runtime

import (
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/tracing"
)

const (
	// maxWaitingRecords bounds the records, of 128 bytes each, whose spans are not made yet.
	maxWaitingRecords = 1 << 18
	// maxWaitingSteps bounds the number of their steps.
	maxWaitingSteps = 1 << 12
)

// spanWriter makes the spans of steps, in a goroutine of its own: span processors are the caller's.
// One that does not answer, or panics, costs spans and nothing else.
type spanWriter struct {
	log      *slog.Logger
	replayer *tracing.Replayer

	steps   chan *gathered
	done    chan struct{} // closed when all spans are made
	waiting atomic.Int64  // records

	made, lost, recordsLost             atomic.Int64 // see stages.TracingStats
	toldSlow, toldPanicked, toldRecords atomic.Bool
}

func newSpanWriter(log *slog.Logger, replayer *tracing.Replayer) *spanWriter {
	w := &spanWriter{
		log: log, replayer: replayer, steps: make(chan *gathered, maxWaitingSteps), done: make(chan struct{}),
	}
	go w.run()
	return w
}

// offer takes a step, or drops and counts it if too many wait. Only the tracer calls it.
func (w *spanWriter) offer(g *gathered) {
	if len(g.records) == 0 {
		return
	}
	w.recordsLost.Add(g.lost)
	if g.lost > 0 && w.toldRecords.CompareAndSwap(false, true) {
		w.log.Warn("a step has more records than the trace keeps: its spans are incomplete", "step", g.ended.Step.ID, "records_lost", g.lost)
	}
	n := int64(len(g.records))
	if waiting := w.waiting.Load(); waiting == 0 || waiting+n <= maxWaitingRecords {
		w.waiting.Add(n)
		select {
		case w.steps <- g:
			return
		default:
			w.waiting.Add(-n)
		}
	}
	w.lost.Add(1)
	if w.toldSlow.CompareAndSwap(false, true) {
		w.log.Warn("the exporter of spans does not keep up: spans of whole steps are dropped", "step", g.ended.Step.ID)
	}
}

func (w *spanWriter) run() {
	defer close(w.done)
	for g := range w.steps {
		n := int64(len(g.records))
		w.write(g)
		w.waiting.Add(-n)
	}
}

// write makes one tree of spans for each caller of the step that traces.
func (w *spanWriter) write(g *gathered) {
	defer func() {
		r := recover()
		if r == nil {
			w.made.Add(1)
			return
		}
		w.lost.Add(1)
		if w.toldPanicked.CompareAndSwap(false, true) {
			w.log.Error("a span processor panicked: spans are lost", "step", g.ended.Step.ID, "reason", fmt.Sprint(r))
		}
	}()
	b := g.ended.Step.Batch
	records, counts := gatherParts(g.records, len(b.Segments))
	c := tracing.Chunk{Step: g.ended.Step.ID, StepRows: len(b.Rows), RecordsLost: g.lost, Err: g.ended.Err, BeganNS: records[0].BeganNS}
	for i := range records {
		r := &records[i]
		if r.QueuedNS > 0 {
			c.BeganNS = min(c.BeganNS, r.QueuedNS)
		}
		c.EndedNS = max(c.EndedNS, r.EndedNS)
		if r.Kind == stages.KindPrefetchExperts {
			c.BytesAhead += r.Bytes
		}
	}
	for i, s := range b.Segments {
		if tc := b.Traces[i]; tc.Sampled() {
			c.Trace, c.Seq, c.Pos, c.Rows = tc, s.Seq, s.Pos, s.Rows
			c.Hits, c.Misses, c.BytesRead = counts[i].hits, counts[i].misses, counts[i].bytes
			w.replayer.Emit(c, records)
		}
	}
}

// close waits until the spans of all steps are made, and ends the writer. w may be nil.
func (w *spanWriter) close() {
	if w == nil {
		return
	}
	close(w.steps)
	<-w.done
}

// addTo writes the writer's counts into s. w may be nil.
func (w *spanWriter) addTo(s *stages.Stats) {
	if w != nil {
		s.Tracing = stages.TracingStats{Steps: w.made.Load(), StepsLost: w.lost.Load(), RecordsLost: w.recordsLost.Load()}
	}
}
