package runtime

import (
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/tracing"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// Tracing says how records become spans. The zero value means no tracing.
type Tracing struct {
	Provider   oteltrace.TracerProvider
	LayerKinds []string         // of the model's layers, by mixer
	SlotBytes  int              // of one expert's record
	TopK       int              // experts that a row picks
	Host       func(int) string // the address of an expert host
	Exactness  string           // the settings that change results
}

const (
	// pollTime is how often records are read while something is under way that has spans.
	pollTime = 20 * time.Millisecond
	// hungTime is how long a span processor may take until the log says so.
	hungTime = 5 * time.Second
)

// spanWriter makes spans of the engine's records, in a goroutine of its own: span processors are
// the caller's. One that does not answer, or panics, costs spans and nothing else, since the log of
// records forgets what is not read in time.
//
// Half of its fields count what is missing, or remember that the log has said so.
type spanWriter struct {
	log     *slog.Logger
	now     func() int64
	emitter *tracing.Emitter

	wake    chan struct{}
	closing chan struct{}
	done    chan struct{} // closed when all spans are made
	polling atomic.Int64  // since when; 0: it waits
	begun   atomic.Int64  // sampled steps

	steps, stepsLost, recordsLost, callsLost       atomic.Int64 // see stages.TracingStats
	toldHung, toldPanicked, toldRecords, toldCalls atomic.Bool
}

func (r *Runtime) newSpanWriter(t Tracing, records *record.Log) *spanWriter {
	w := &spanWriter{
		log: r.log, now: r.Now, wake: make(chan struct{}, 1), closing: make(chan struct{}), done: make(chan struct{}),
		emitter: tracing.NewEmitter(t.Provider, records, tracing.About{
			Epoch: r.epoch, LayerKinds: t.LayerKinds, SlotBytes: int64(t.SlotBytes), TopK: t.TopK,
			Host: t.Host, Exactness: t.Exactness,
		}),
	}
	w.emitter.Panicked = w.panicked
	w.emitter.Calls.Wake = w.look
	go w.run()
	return w
}

// look makes the writer read what is new. It does not block.
func (w *spanWriter) look() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
	if since := w.polling.Load(); since != 0 && w.now()-since > int64(hungTime) && w.toldHung.CompareAndSwap(false, true) {
		w.log.Warn("a span processor does not return: spans are lost", "for", time.Duration(w.now()-since).Round(time.Second))
	}
}

// message looks when a message begins a sampled step, or answers a request that had none. w may be
// nil.
func (w *spanWriter) message(m stages.Message) {
	if w == nil {
		return
	}
	switch m := m.(type) {
	case *stages.BeginLayer:
		if m.Layer == 0 && m.Batch != nil && m.Batch.Traced {
			w.begun.Add(1)
			w.look()
		}
	case *stages.ChunkEvaluated:
		if m.Err != nil {
			w.emitter.Failures.Tell(m.Request, uint64(m.Seq), m.Err)
			w.look()
		}
	}
}

func (w *spanWriter) run() {
	defer close(w.done)
	ticker := time.NewTicker(pollTime)
	defer ticker.Stop()
	for last := false; !last; {
		tick := ticker.C
		if w.emitter.Idle() {
			tick = nil
		}
		select {
		case <-w.wake:
		case <-tick:
		case <-w.closing:
			last = true
		}
		w.polling.Store(max(1, w.now()))
		w.emitter.Poll(w.now(), last)
		w.polling.Store(0)
		w.count(last)
	}
}

// count publishes the emitter's counts, and tells once of what is lost. A step whose own record was
// forgotten is one that began and that the emitter knows nothing of when everything is emitted.
func (w *spanWriter) count(last bool) {
	s := &w.emitter.Stats
	lost := s.StepsLost
	if last {
		lost = max(lost, w.begun.Load()-s.Steps-s.StepsLeft)
	}
	w.steps.Store(s.Steps)
	w.stepsLost.Store(lost)
	w.recordsLost.Store(s.RecordsLost)
	w.callsLost.Store(s.CallsLost)
	if s.RecordsLost+lost-s.StepsLost > 0 && w.toldRecords.CompareAndSwap(false, true) {
		w.log.Warn("records were forgotten before they became spans: traces are incomplete; Config.RecordMemory is how much is kept", "records_lost", s.RecordsLost)
	}
	if s.CallsLost > 0 && w.toldCalls.CompareAndSwap(false, true) {
		w.log.Warn("spans are not made as fast as requests come: some have none", "requests", s.CallsLost)
	}
}

func (w *spanWriter) panicked(reason any) {
	if w.toldPanicked.CompareAndSwap(false, true) {
		w.log.Error("a span processor panicked: spans are lost", "reason", fmt.Sprint(reason))
	}
}

// close waits until all spans are made, and ends the writer. w may be nil.
func (w *spanWriter) close() {
	if w == nil {
		return
	}
	close(w.closing)
	<-w.done
}

// addTo writes the writer's counts into s. w may be nil.
func (w *spanWriter) addTo(s *stages.Stats) {
	if w != nil {
		s.Tracing = stages.TracingStats{
			Steps: w.steps.Load(), StepsLost: w.stepsLost.Load(), RecordsLost: w.recordsLost.Load(), CallsLost: w.callsLost.Load(),
		}
	}
}

// Calls returns where callers tell of calls that make several requests; nil without tracing.
func (r *Runtime) Calls() *tracing.Calls {
	if r.spans == nil {
		return nil
	}
	return r.spans.emitter.Calls
}
