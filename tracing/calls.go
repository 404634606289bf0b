package tracing

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/moeflux/moeflux-actor/stages"
)

// mostEvents bounds what callers have told and the emitter has not taken.
const mostEvents = 1 << 14

// Calls is where callers tell of calls that make several requests. Its methods may be called from
// many goroutines, and never block. A nil *Calls takes nothing.
type Calls struct {
	// Wake, if not nil, is called when there is something to read. It must not block.
	Wake func()

	mu     sync.Mutex
	events []callEvent
	lost   int64
}

// Call is a call under way. A nil *Call is of a trace that is not sampled.
type Call struct {
	calls *Calls
	key   spanKey
}

// CallStart says what is called. What is nil, 0 or empty is left out.
type CallStart struct {
	Operation, Model  string
	MaxTokens, TopK   int
	Temperature, TopP *float64
	Seed              *uint64
	Stops             []string
	ArrivedNS         int64 // on the engine's clock
}

// CallEnd says what became of it.
type CallEnd struct {
	EndedNS                                 int64 // on the engine's clock
	InputTokens, CachedTokens, OutputTokens int
	FirstToken                              time.Duration // since the arrival; 0 if there was none
	Finish                                  string        // empty if the text did not end
	Account                                 stages.Account
	Err                                     error
}

// spanKey names a span as messages carry it.
type spanKey struct {
	trace [16]byte
	span  [8]byte
}

// callEvent is the start or the end of a call.
type callEvent struct {
	key   spanKey
	under trace.SpanContext // the caller's span, at the start
	start *CallStart
	end   *CallEnd
}

// Begin tells that a call begins, and returns the context for its requests: with it they are told
// to belong to the call. If ctx has a span, the call is recorded if that is. If it has none, the
// provider's sampler decides.
func (c *Calls) Begin(ctx context.Context, s CallStart) (context.Context, *Call) {
	under := trace.SpanContextFromContext(ctx)
	if c == nil || under.IsValid() && !under.IsSampled() {
		return ctx, nil
	}
	key := spanKey{trace: under.TraceID()}
	_, _ = rand.Read(key.span[:]) // never fails
	if !under.IsValid() {
		_, _ = rand.Read(key.trace[:])
	}
	if !c.tell(callEvent{key: key, under: under, start: &s}) {
		return ctx, nil
	}
	own := trace.NewSpanContext(trace.SpanContextConfig{TraceID: key.trace, SpanID: key.span, TraceFlags: trace.FlagsSampled, Remote: true})
	return trace.ContextWithSpanContext(ctx, own), &Call{c, key}
}

// End tells that a call is over. It is called once.
func (c *Call) End(end CallEnd) {
	if c != nil {
		c.calls.tell(callEvent{key: c.key, end: &end})
	}
}

// tell keeps an event, unless the emitter is so far behind that too many wait. An end is kept
// anyway: its start was.
func (c *Calls) tell(v callEvent) bool {
	if c.Wake != nil {
		defer c.Wake()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if v.start != nil && len(c.events) >= mostEvents {
		c.lost++
		return false
	}
	c.events = append(c.events, v)
	return true
}

// take returns what was told, and how many calls were not taken so far.
func (c *Calls) take() (events []callEvent, lost int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	events, c.events = c.events, nil
	return events, c.lost
}

// callSpan is the span of a call.
type callSpan struct {
	span  trace.Span
	ctx   context.Context
	evals int // that are open
	end   *CallEnd
	// when it ends if nobody tells of its end; 0: when everything is emitted
	untilNS int64
}

// readCalls starts the spans of calls, and notes those that are over.
func (e *Emitter) readCalls() {
	events, lost := e.Calls.take()
	e.Stats.CallsLost = lost
	for _, v := range events {
		if v.end != nil {
			if c := e.calls[v.key]; c != nil {
				c.end = v.end
			}
			continue
		}
		c := new(callSpan)
		if e.guard(func() { e.startCall(c, &v) }) {
			e.calls[v.key] = c
		}
	}
}

func (e *Emitter) startCall(c *callSpan, v *callEvent) {
	s := v.start
	ctx := context.Background()
	if v.under.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, v.under)
	}
	attrs := []attribute.KeyValue{KeyOperation.String(s.Operation), KeyProvider.String("moeflux"), KeyModel.String(s.Model), KeyExactness.String(e.about.Exactness)}
	if s.MaxTokens > 0 {
		attrs = append(attrs, KeyMaxTokens.Int(s.MaxTokens))
	}
	if s.Temperature != nil {
		attrs = append(attrs, KeyTemperature.Float64(*s.Temperature))
	}
	if s.TopK > 0 {
		attrs = append(attrs, KeyTopK.Float64(float64(s.TopK)))
	}
	if s.TopP != nil {
		attrs = append(attrs, KeyTopP.Float64(*s.TopP))
	}
	if s.Seed != nil {
		attrs = append(attrs, KeySeed.Int64(int64(*s.Seed)))
	}
	if len(s.Stops) > 0 {
		attrs = append(attrs, KeyStops.StringSlice(s.Stops))
	}
	c.ctx, c.span = e.tracer.Start(ctx, s.Operation+" "+s.Model, trace.WithTimestamp(e.time(s.ArrivedNS)), trace.WithAttributes(attrs...))
}

// endCalls ends the spans of calls that are over and whose requests are.
func (e *Emitter) endCalls(last bool) {
	for key, c := range e.calls {
		if !last && (c.end == nil || c.evals > 0) {
			continue
		}
		delete(e.calls, key)
		if c.end == nil { // the engine is closed under it
			e.guard(func() { e.abandonCall(c) })
			continue
		}
		e.guard(func() { e.endCall(c) })
	}
}

// abandonCall ends the span of a call of whose end nothing is known.
func (e *Emitter) abandonCall(c *callSpan) {
	if c.untilNS == 0 {
		c.span.End()
		return
	}
	c.span.End(trace.WithTimestamp(e.time(c.untilNS)))
}

func (e *Emitter) endCall(c *callSpan) {
	end, a := c.end, &c.end.Account
	attrs := append(account{
		hit: a.Hit, late: a.Late, missed: a.Missed, slot: a.SlotBytes, host: a.HostBytes, disk: a.DiskBytes, ahead: a.AheadBytes,
		device: a.DeviceNS, diskWait: a.DiskWaitNS,
	}.attributes(), KeyInputTokens.Int(end.InputTokens), KeyCachedTokens.Int(end.CachedTokens), KeyOutputTokens.Int(end.OutputTokens), KeyQueueNS.Int64(a.QueueNS))
	if end.FirstToken > 0 {
		attrs = append(attrs, KeyFirstToken.Float64(end.FirstToken.Seconds()))
	}
	if end.Finish != "" {
		attrs = append(attrs, KeyFinish.StringSlice([]string{end.Finish}))
	}
	if end.Err != nil {
		e.failed(c.span, end.Err, end.EndedNS)
	}
	c.span.SetAttributes(attrs...)
	c.span.End(trace.WithTimestamp(e.time(end.EndedNS)))
}

// errorType names the kind of an error.
func errorType(err error) string {
	switch {
	case errors.Is(err, context.Canceled):
		return "cancelled"
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	}
	return fmt.Sprintf("%T", err)
}
