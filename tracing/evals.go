package tracing

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/moeflux/moeflux-actor/tracing/record"
)

// evaluation is the span of a request for rows, from its first step on.
type evaluation struct {
	span  trace.Span
	ctx   context.Context
	call  *callSpan // nil: the caller's own span is above it
	open  int       // steps that are not emitted
	links []trace.Link

	endedNS int64 // of the last step that is emitted
}

// join finds the sampled requests of a step, whose evaluations begin with their first step.
func (e *Emitter) join(t *tree) {
	unwanted := false
	for i := range t.segments {
		s := &t.segments[i]
		if s.TraceID == [16]byte{} {
			continue
		}
		key := requestKey{s.Request, s.Seq}
		v := e.evals[key]
		if v == nil {
			if v = e.begin(s.TraceID, s.SpanID, s.ArrivedNS); v == nil {
				continue
			}
			e.evals[key] = v
		}
		if v.span.IsRecording() {
			v.open++
			t.evals = append(t.evals, v)
		} else {
			unwanted = true
		}
	}
	if unwanted && len(t.evals) == 0 {
		e.Stats.StepsLeft++
	}
}

// begin starts the span of a request, or returns nil if a span processor panics.
func (e *Emitter) begin(traceID [16]byte, spanID [8]byte, arrivedNS int64) *evaluation {
	v := &evaluation{call: e.calls[spanKey{traceID, spanID}]}
	parent := parentContext(traceID, spanID)
	if v.call != nil {
		parent = v.call.ctx
	}
	if !e.guard(func() { v.ctx, v.span = e.tracer.Start(parent, SpanEval, trace.WithTimestamp(e.time(arrivedNS))) }) {
		return nil
	}
	if v.call != nil {
		v.call.evals++
	}
	return v
}

// mostWaits bounds the waits of requests that have not ended, sampled or not.
const mostWaits = 1 << 12

// requestWaited keeps a wait of a request outside of its steps.
func (e *Emitter) requestWaited(w *record.Wait) {
	if w.Request == 0 || w.Step != 0 {
		return
	}
	if len(e.waits) == mostWaits {
		e.waits = append(e.waits[:0], e.waits[mostWaits/2:]...)
	}
	e.waits = append(e.waits, *w)
}

// requestEnd is the end of a request, and why it was not answered.
type requestEnd struct {
	record.Request
	err error // nil: it was, or nobody has told
}

// settled reports whether the end's error is known, or has not come in time.
func (r *requestEnd) settled(f *Failures, nowNS int64) bool {
	if r.Outcome != record.Answered && r.err == nil {
		r.err = f.take(requestKey{r.Request.Request, r.Seq})
	}
	return r.Outcome == record.Answered || r.err != nil || nowNS-r.EndedNS >= settleNS
}

// endEvals ends the spans of requests that are over and whose steps are emitted.
func (e *Emitter) endEvals(nowNS int64, last bool) {
	kept := e.ends[:0]
	for i := range e.ends {
		r := &e.ends[i]
		key := requestKey{r.Request.Request, r.Seq}
		v := e.evals[key]
		if !r.settled(e.Failures, nowNS) && !last || v != nil && v.open > 0 && !last {
			kept = append(kept, *r)
			continue
		}
		if v == nil { // it never came into a step
			v = e.begin(r.TraceID, r.SpanID, r.ArrivedNS)
		}
		delete(e.evals, key)
		if v != nil {
			e.guard(func() { e.end(v, r) })
			v.left()
		}
	}
	e.ends = kept
	if last {
		for key, v := range e.evals {
			delete(e.evals, key)
			e.guard(func() { v.giveUp(e) })
		}
	}
}

// left tells the call that a request of it is over.
func (v *evaluation) left() {
	if v.call != nil {
		v.call.evals--
	}
}

// giveUp ends the span of a request of whose end nothing is known.
func (v *evaluation) giveUp(e *Emitter) {
	defer v.left()
	v.span.SetAttributes(KeyRecordsLost.Int(1))
	for _, l := range v.links {
		v.span.AddLink(l)
	}
	v.span.End(trace.WithTimestamp(e.time(v.endedNS)))
}

// end emits what is known of a request at its end.
func (e *Emitter) end(v *evaluation, r *requestEnd) {
	began := r.BeganNS
	if began == 0 {
		began = r.EndedNS
	}
	attrs := []attribute.KeyValue{
		KeyExactness.String(e.about.Exactness), KeyRequest.Int64(int64(r.Request.Request)), KeySeq.Int64(int64(r.Seq)), KeyPos.Int(int(r.Pos)), KeyRows.Int(int(r.Rows)),
		KeyOutcome.String(outcomes[r.Outcome]), KeyQueueNS.Int64(began - r.ArrivedNS),
	}
	v.span.SetAttributes(append(attrs, account{
		hit: int64(r.Hit), late: int64(r.Late), missed: int64(r.Missed), slot: r.SlotBytes, host: r.HostBytes, disk: r.DiskBytes, ahead: r.AheadBytes,
		device: r.DeviceNS, diskWait: r.DiskWaitNS,
	}.attributes()...)...)
	switch {
	case r.err != nil:
		e.failed(v.span, r.err, r.EndedNS)
	case r.Outcome != record.Answered:
		v.span.SetAttributes(KeyError.String(outcomes[r.Outcome]))
		v.span.SetStatus(codes.Error, outcomes[r.Outcome])
	}
	for _, l := range v.links {
		v.span.AddLink(l)
	}
	rest := e.waits[:0]
	for i := range e.waits {
		if w := &e.waits[i]; w.Request == r.Request.Request {
			e.wait(v.ctx, w)
			continue
		}
		rest = append(rest, e.waits[i])
	}
	e.waits = rest
	v.span.End(trace.WithTimestamp(e.time(r.EndedNS)))
}

// failed says on a span what went wrong, and when.
func (e *Emitter) failed(span trace.Span, err error, atNS int64) {
	span.SetAttributes(KeyError.String(errorType(err)))
	span.RecordError(err, trace.WithTimestamp(e.time(atNS)))
	span.SetStatus(codes.Error, err.Error())
}

var outcomes = [...]string{record.Answered: "answered", record.Cancelled: "cancelled", record.Refused: "refused", record.Failed: "failed"}

// account is what a request cost.
type account struct{ hit, late, missed, slot, host, disk, ahead, device, diskWait int64 }

func (a account) attributes() []attribute.KeyValue {
	return []attribute.KeyValue{
		KeyPicksHit.Int64(a.hit), KeyPicksLate.Int64(a.late), KeyPicksMissed.Int64(a.missed), KeySlotBytes.Int64(a.slot), KeyHostBytes.Int64(a.host),
		KeyDiskBytes.Int64(a.disk), KeyBytesAhead.Int64(a.ahead), KeyDeviceNS.Int64(a.device), KeyDiskWaitNS.Int64(a.diskWait),
	}
}
