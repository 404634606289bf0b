package tracing

import (
	"context"
	"runtime"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/moeflux/moeflux-actor/tracing/record"
)

const (
	// mostRecords bounds the records of steps that are in flight, some 64 bytes each.
	mostRecords = 1 << 19
	// settleNS is how long after every step's end its last records are waited for: of slots that go
	// home, and of the message that ended it, which a busy machine may write late.
	settleNS = 50e6
	// countedNS limits how long after a step's end the spans wait for the picks of its last layer.
	// What a device has routed by itself is counted layer by layer after the step, when there is
	// nothing more urgent to do. Some never come: those of a probe that ends before that layer.
	countedNS = 2e9
	// hintNS is how long after a step's end the reads of its hints are waited for.
	hintNS = 2e9
	// staleSteps is more than the steps that can be in flight at once: the end of a step so much
	// older than the newest one was forgotten.
	staleSteps = 64
	// mostSpare bounds the trees whose memory is kept for the next steps.
	mostSpare = 4
)

// About is what an emitter must know of the engine.
type About struct {
	Epoch      time.Time        // what the times of records count from
	LayerKinds []string         // [layers] by mixer
	SlotBytes  int64            // of one expert's record
	TopK       int              // experts that a row picks in the last layer; 0: picks are not waited for
	Host       func(int) string // the address of an expert host, "" if it is not known; nil without any
	Exactness  string           // the settings that change results
}

// Stats counts what became of steps and records.
type Stats struct {
	Steps       int64 // whose spans are made
	StepsLost   int64 // whose spans a processor did not take
	StepsLeft   int64 // that the provider's sampler did not want
	RecordsLost int64 // forgotten, or too many, while sampled steps were in flight
	CallsLost   int64 // that found too many waiting
}

// Emitter makes the spans of an engine. It belongs to one goroutine, but for Calls and Failures.
type Emitter struct {
	Calls    *Calls
	Failures *Failures
	Stats    Stats
	// Panicked is called when a span processor panics. The emitter goes on with the next span.
	Panicked func(reason any)
	// Yield is called often while spans are made. By default it is runtime.Gosched: spans give way
	// to goroutines that compute.
	Yield func()

	about  About
	log    *record.Log
	tracer trace.Tracer
	at     cursors

	newest  uint64 // step that is known
	steps   map[uint64]*tree
	order   []*tree // those of steps, by number
	records int     // of all of them
	spare   []*tree // that are forgotten
	sorted  parts   // of the step whose spans are made
	evals   map[requestKey]*evaluation
	calls   map[spanKey]*callSpan
	ends    []requestEnd  // of evals whose steps are not all emitted
	waits   []record.Wait // of requests, outside of their steps
	hints   map[uint64]*hint
	gaps    []gap                // of the present poll
	attrs   []attribute.KeyValue // memory for those of one span
}

// cursors say how far the emitter has come in each table.
type cursors struct {
	steps, ended, segments, requests, handled, waits, uses, reads, guesses, submissions, answers record.Cursor
}

// requestKey names a request. Callers that send messages themselves may use a number twice.
type requestKey struct{ request, seq uint64 }

// NewEmitter makes an emitter of what is in the log. Its spans are made with a tracer of tp.
func NewEmitter(tp trace.TracerProvider, log *record.Log, about About) *Emitter {
	about.Epoch = about.Epoch.Round(0)
	return &Emitter{
		Calls: new(Calls), Failures: new(Failures), Panicked: func(any) {}, Yield: runtime.Gosched, about: about, log: log, tracer: tp.Tracer(ScopeName),
		steps: make(map[uint64]*tree), evals: make(map[requestKey]*evaluation), calls: make(map[spanKey]*callSpan), hints: make(map[uint64]*hint),
	}
}

// Poll reads what is new, and emits what is complete at a time on the engine's clock. With last, no
// more will come, and everything is emitted as it is.
func (e *Emitter) Poll(nowNS int64, last bool) {
	e.gaps = e.gaps[:0]
	e.readCalls()
	over := e.readEnds() // first: what was written before a step's end is read below
	e.readSteps()
	e.readParts()
	for _, s := range over {
		if t := e.known(s.Step); t != nil {
			t.over, t.endedNS, t.failed = true, s.EndedNS, s.Failed != 0
		}
	}
	e.fillGaps()
	e.emitSteps(nowNS, last)
	e.emitHints(nowNS, last)
	e.endEvals(nowNS, last)
	e.endCalls(last)
}

// Idle reports whether there is nothing to poll for until the next sampled step begins, or a call
// ends.
func (e *Emitter) Idle() bool {
	for _, c := range e.calls {
		if c.end != nil {
			return false
		}
	}
	return len(e.order)+len(e.hints)+len(e.ends) == 0
}

// guard runs what calls span processors, which are the caller's, and reports whether none panicked.
func (e *Emitter) guard(f func()) (ok bool) {
	defer func() {
		if r := recover(); r != nil {
			ok = false
			e.Panicked(r)
		}
	}()
	f()
	return true
}

func (e *Emitter) time(ns int64) time.Time { return e.about.Epoch.Add(time.Duration(ns)) }

// readEnds returns the steps that have ended, and keeps the requests that have.
func (e *Emitter) readEnds() (over []record.StepEnded) {
	drain(e, &e.log.StepsEnded, &e.at.ended, func(r *record.StepEnded) int64 { return r.EndedNS }, func(r *record.StepEnded) {
		over = append(over, *r)
	})
	drain(e, &e.log.Requests, &e.at.requests, func(r *record.Request) int64 { return r.EndedNS }, func(r *record.Request) {
		if r.TraceID != [16]byte{} {
			e.ends = append(e.ends, requestEnd{Request: *r})
		} else if r.Outcome != record.Answered {
			e.Failures.take(requestKey{r.Request, r.Seq})
		}
	})
	return over
}

// readNew notes the steps that were formed.
func (e *Emitter) readNew() {
	drain(e, &e.log.Steps, &e.at.steps, func(r *record.Step) int64 { return r.BeganNS }, func(r *record.Step) {
		e.newest = r.Step
		t := e.newTree()
		t.rec = *r
		e.steps[r.Step] = t
		e.order = append(e.order, t)
	})
}

// readSteps notes the steps that were formed, and of what. Only those with sampled requests stay. A
// step's own record is written before its segments: one that is not known yet came meanwhile.
func (e *Emitter) readSteps() {
	e.readNew()
	drain(e, &e.log.Segments, &e.at.segments, func(*record.Segment) int64 { return 0 }, func(r *record.Segment) {
		if r.Step > e.newest {
			e.readNew()
		}
		if t := e.steps[r.Step]; t != nil {
			t.segments = append(t.segments, *r)
			t.rows += r.Rows
		}
	})
	kept := e.order[:0]
	for _, t := range e.order {
		if !t.decided && t.rows == t.rec.Rows { // else the rest of its segments is being written
			t.decided = true
			e.join(t)
		}
		if t.decided && len(t.evals) == 0 {
			e.forget(t)
			continue
		}
		kept = append(kept, t)
	}
	clear(e.order[len(kept):])
	e.order = kept
}

// forget drops a step. The caller takes it out of the order.
func (e *Emitter) forget(t *tree) {
	delete(e.steps, t.rec.Step)
	e.records -= t.records
	for _, v := range t.evals {
		v.open--
		v.endedNS = max(v.endedNS, t.endedNS)
	}
	if len(e.spare) < mostSpare {
		t.reset()
		e.spare = append(e.spare, t)
	}
}

// newTree returns an empty tree, in the memory of one that is forgotten if there is one.
func (e *Emitter) newTree() *tree {
	n := len(e.spare) - 1
	if n < 0 {
		return new(tree)
	}
	t := e.spare[n]
	e.spare = e.spare[:n]
	return t
}

// known returns a step that stays, or nil. A step's own record is written before all others of it.
func (e *Emitter) known(step uint64) *tree {
	if step > e.newest {
		e.readSteps()
	}
	return e.steps[step]
}

// keep adds a record to those of its step, if there is room.
func keep[T any](e *Emitter, step uint64, to func(*tree) *[]T, r *T) {
	if step == 0 {
		return
	}
	t := e.known(step)
	switch {
	case t == nil:
	case e.records >= mostRecords:
		t.lost++
		e.Stats.RecordsLost++
	default:
		e.records++
		t.records++
		all := to(t)
		*all = append(*all, *r)
	}
}

// readParts reads what was done for steps.
func (e *Emitter) readParts() {
	drain(e, &e.log.Handled, &e.at.handled, func(r *record.Handled) int64 { return r.BeganNS }, func(r *record.Handled) {
		if shown[messageKey{r.Stage, r.Message}] {
			keep(e, r.Step, func(t *tree) *[]record.Handled { return &t.handled }, r)
		}
	})
	drain(e, &e.log.Waits, &e.at.waits, func(r *record.Wait) int64 { return r.EndedNS }, func(r *record.Wait) {
		e.requestWaited(r)
		keep(e, r.Step, func(t *tree) *[]record.Wait { return &t.waits }, r)
	})
	drain(e, &e.log.Uses, &e.at.uses, func(r *record.Use) int64 { return r.AtNS }, func(r *record.Use) {
		keep(e, r.Step, func(t *tree) *[]record.Use { return &t.uses }, r)
	})
	drain(e, &e.log.Guesses, &e.at.guesses, func(r *record.Guess) int64 { return r.AtNS }, func(r *record.Guess) {
		keep(e, r.Step, func(t *tree) *[]record.Guess { return &t.guesses }, r)
	})
	drain(e, &e.log.Reads, &e.at.reads, readEnd, func(r *record.Read) {
		if h := e.hints[r.Hint]; h != nil {
			h.reads = append(h.reads, *r)
			return
		}
		keep(e, r.Step, func(t *tree) *[]record.Read { return &t.reads }, r)
	})
	drain(e, &e.log.Answers, &e.at.answers, func(r *record.Answer) int64 { return r.EndedNS }, func(r *record.Answer) {
		keep(e, r.Step, func(t *tree) *[]record.Answer { return &t.answers }, r)
	})
	drain(e, &e.log.Submissions, &e.at.submissions, func(r *record.Submission) int64 { return r.EndedNS }, func(r *record.Submission) {
		keep(e, r.Step, func(t *tree) *[]record.Submission { return &t.submissions }, r)
	})
}

// emitSteps emits the steps that are over and settled.
func (e *Emitter) emitSteps(nowNS int64, last bool) {
	kept := e.order[:0]
	for _, t := range e.order {
		if stale := t.rec.Step+staleSteps < e.newest; !last && !stale && !e.settled(t, nowNS) {
			kept = append(kept, t)
			continue
		}
		switch {
		case len(t.evals) == 0 || t.never():
		case e.guard(func() { e.emit(t) }):
			e.Stats.Steps++
		default:
			e.Stats.StepsLost++
		}
		e.forget(t)
	}
	clear(e.order[len(kept):])
	e.order = kept
}

// settled reports whether nothing more is to come of a step, as far as can be told.
func (e *Emitter) settled(t *tree, nowNS int64) bool {
	if !t.over || nowNS-t.endedNS < settleNS {
		return false
	}
	if t.failed || t.lost > 0 || nowNS-t.endedNS >= countedNS {
		return true
	}
	return t.picks(len(e.about.LayerKinds)-1) >= int(t.rec.Rows)*e.about.TopK
}

// parentContext returns a context with a caller's span.
func parentContext(traceID [16]byte, spanID [8]byte) context.Context {
	return trace.ContextWithRemoteSpanContext(context.Background(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: traceID, SpanID: spanID, TraceFlags: trace.FlagsSampled, Remote: true,
	}))
}
