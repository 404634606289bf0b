package tracing

import (
	"context"
	"time"

	"github.com/moeflux/moeflux-actor/stages"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// ScopeName is the instrumentation scope of all spans.
const ScopeName = "github.com/moeflux/moeflux-actor/tracing"

// The names of spans. The package comment says when each begins and ends.
const (
	SpanEval     = "moeflux.eval"
	SpanLayer    = "moeflux.layer"
	SpanMix      = "moeflux.mix"
	SpanRoute    = "moeflux.route"
	SpanExpertIO = "moeflux.expert_io"
	SpanExperts  = "moeflux.experts"
	SpanRetire   = "moeflux.retire"
	SpanPrefetch = "moeflux.prefetch"
	SpanHead     = "moeflux.head"
)

// Chunk describes the part of a chunk that one step has evaluated. Times are on the clock of the
// records.
type Chunk struct {
	Trace stages.TraceContext // the caller's span; the zero value makes a tree of its own
	Step  stages.StepID       // the step whose records are used
	Seq   stages.SeqID
	Pos   int // of the first row
	Rows  int

	StepRows                int   // of all callers
	BeganNS, EndedNS        int64 // request and answer
	Hits, Misses, BytesRead int64 // for the caller's rows, see KeyHits
	BytesAhead              int64
	RecordsLost             int64
	Err                     error // nil if it went well
}

// Replayer turns records into spans. It belongs to one goroutine.
type Replayer struct {
	// LayerKinds names the mixer of each layer ("full_attention") for the spans of layers. nil
	// leaves the attribute out.
	LayerKinds []string

	tracer trace.Tracer
	epoch  time.Time
	recs   stepRecords // empty between calls
	attrs  []attribute.KeyValue
}

// NewReplayer returns a Replayer that makes spans with a tracer of tp. The times of records count
// from epoch.
func NewReplayer(tp trace.TracerProvider, epoch time.Time) *Replayer {
	return &Replayer{tracer: tp.Tracer(ScopeName), epoch: epoch.Round(0)}
}

// Emit makes the spans of one chunk from its step's records, which may be in any order. It ignores
// records of other steps, and does next to nothing if the provider does not record the chunk. It
// leaves out spans whose records are missing; the spans inside a missing layer are then children of
// the chunk's span.
//
// Two stages stamp their records independently. If the end of a span was recorded before its
// beginning, because a message was answered while its sender still worked, the span has no length
// and is placed at its end.
func (r *Replayer) Emit(c Chunk, records []Record) {
	ctx := context.Background()
	if parent := spanContext(c.Trace); parent.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, parent)
	}
	ctx, root := r.tracer.Start(ctx, SpanEval, trace.WithTimestamp(r.at(c.BeganNS)), trace.WithAttributes(
		KeyStep.Int64(int64(c.Step)), KeySeq.Int64(int64(c.Seq)), KeyPos.Int(c.Pos), KeyRows.Int(c.Rows),
		KeyStepRows.Int(c.StepRows), KeyHits.Int64(c.Hits), KeyMisses.Int64(c.Misses), KeyBytesRead.Int64(c.BytesRead), KeyBytesAhead.Int64(c.BytesAhead)))
	end := trace.WithTimestamp(r.at(c.EndedNS))
	defer root.End(end)
	if !root.IsRecording() {
		return
	}
	if c.Err != nil {
		root.RecordError(c.Err, trace.WithTimestamp(r.at(c.EndedNS)))
		root.SetStatus(codes.Error, c.Err.Error())
	}
	if c.RecordsLost > 0 {
		root.SetAttributes(KeyRecordsLost.Int64(c.RecordsLost))
	}
	r.recs.collect(c.Step, records)
	defer r.recs.reset()
	if t, ok := r.recs.times(); ok {
		root.SetAttributes(timesOf(t)...)
	}
	for i := range r.recs.layers[:r.recs.n] {
		r.layer(ctx, int32(i))
	}
	for _, h := range r.recs.hints {
		r.prefetch(ctx, h, &c)
	}
	r.head(ctx)
}

// layer emits the spans of one layer. ctx holds the chunk's span.
func (r *Replayer) layer(ctx context.Context, layer int32) {
	l := &r.recs.layers[layer]
	parent := ctx
	if b := l.begin; b != nil && b.QueuedNS != 0 && l.retired != nil {
		attrs := r.start(b, KeyLayer.Int(int(layer)))
		if int(layer) < len(r.LayerKinds) {
			attrs = append(attrs, KeyLayerKind.String(r.LayerKinds[layer]))
		}
		if b.Count > 0 {
			attrs = append(attrs, KeyMoreLayers.Int(int(b.Count)))
		}
		attrs = append(attrs, timesOf(l.retired.Times.Since(b.Times))...)
		began, ended := r.times(b.QueuedNS, l.retired.BeganNS)
		var span trace.Span
		parent, span = r.tracer.Start(ctx, SpanLayer, trace.WithTimestamp(began), trace.WithAttributes(attrs...))
		defer span.End(trace.WithTimestamp(ended))
		l.span = span.SpanContext()
	}
	at := KeyLayer.Int(int(layer))
	if b, s := l.begin, l.scores; b != nil && s != nil && s.QueuedNS != 0 {
		attrs := r.start(b, at)
		if t := r.recs.dispatched(b.BeganNS, s.QueuedNS); t != nil {
			attrs = append(attrs, KeyDeviceNS.Int64(t.DeviceNS))
		}
		r.span(parent, SpanMix, b.BeganNS, s.QueuedNS, attrs)
	}
	if s := l.scores; s != nil {
		r.span(parent, SpanRoute, s.BeganNS, s.EndedNS,
			r.start(s, at, KeyExperts.Int(int(s.Count)), KeyWaves.Int(int(s.Miss))))
	}
	if e, w := l.routed, l.lastWave(); e != nil && w != nil && w.QueuedNS != 0 {
		r.span(parent, SpanExpertIO, e.BeganNS, w.QueuedNS,
			r.start(e, at, KeyHits.Int(int(e.Count)), KeyMisses.Int(int(e.Miss)), KeyBytesRead.Int64(e.Bytes),
				KeyWavesWaited.Int(r.recs.waited(l))))
	}
	if l.waves() {
		for i := range l.residents {
			r.wave(parent, l.residents[i], l.tickets[i])
		}
	}
}

// wave emits the spans of one wave. ctx holds its layer's span.
func (r *Replayer) wave(ctx context.Context, w, done *Record) {
	layer, wave := KeyLayer.Int(int(w.Layer)), KeyWave.Int(int(w.Wave))
	r.span(ctx, SpanExperts, w.EndedNS, done.BeganNS,
		r.start(w, layer, wave, KeyExperts.Int(int(w.Count)), KeyDeviceNS.Int64(done.DeviceNS)))

	attrs := r.start(done, layer, wave)
	if done.Count > 0 { // the ring includes the wave itself
		attrs = append(attrs, KeyRingLength.Int(int(done.Count)))
	}
	ended := done.EndedNS
	if home := r.recs.releasedOf(w.Layer, w.Wave); home != nil && home.QueuedNS != 0 {
		ended = home.QueuedNS
	}
	r.span(ctx, SpanRetire, done.BeganNS, ended, attrs)
}

// prefetch emits the span of a hint. It hangs under the chunk, since it may begin before its layer
// does, and is linked to the layer if the hint is for this step.
func (r *Replayer) prefetch(ctx context.Context, p *Record, c *Chunk) {
	attrs := r.start(p, KeyLayer.Int(int(p.Layer)), KeyLayersAhead.Int(int(p.Wave)), KeyPrefetchIssued.Int(int(p.Count)),
		KeyPrefetchDropped.Int(int(p.Miss)), KeyPrefetchDeclined.Int(int(p.Declined)), KeyPrefetchSkipped.Int(int(p.Skipped)))
	ended, pending := p.EndedNS, p.Count
	if read := r.recs.readOf(p); read != nil {
		ended, pending = read.BeganNS, p.Count-read.Count
	}
	if pending > 0 {
		if c.RecordsLost > 0 {
			return // perhaps the ends are lost
		}
		ended = c.EndedNS
		attrs = append(attrs, KeyPrefetchPending.Int(int(pending)))
	}
	var links []trace.Link
	if l := &r.recs.layers[p.Layer]; p.Wave <= p.Layer {
		if l.span.IsValid() {
			links = []trace.Link{{SpanContext: l.span}}
		}
		if l.routed != nil && p.Count > 0 {
			attrs = append(attrs, KeyPrefetchLate.Bool(ended > l.routed.BeganNS))
		}
	}
	r.span(ctx, SpanPrefetch, p.BeganNS, ended, attrs, links...)
}

// head emits the span of the step's end. ctx holds the chunk's span.
func (r *Replayer) head(ctx context.Context) {
	b, e := r.recs.readLogits, r.recs.logitsReady
	if b == nil || e == nil || e.QueuedNS == 0 {
		return
	}
	attrs := append(r.start(b), timesOf(e.Times.Since(b.Times))...)
	if t := r.recs.dispatched(b.BeganNS, e.QueuedNS); t != nil {
		attrs = append(attrs, KeyDeviceNS.Int64(t.DeviceNS))
	}
	r.span(ctx, SpanHead, b.BeganNS, e.QueuedNS, attrs)
}

// start returns the first attributes of a span that rec begins. They are valid until the next
// start.
func (r *Replayer) start(rec *Record, attrs ...attribute.KeyValue) []attribute.KeyValue {
	r.attrs = append(r.attrs[:0], attrs...)
	if rec.QueuedNS != 0 {
		r.attrs = append(r.attrs, KeyQueueNS.Int64(max(0, rec.BeganNS-rec.QueuedNS)))
	}
	return r.attrs
}

// timesOf returns the attributes of where time went.
func timesOf(t stages.Times) []attribute.KeyValue {
	return []attribute.KeyValue{KeyComputeNS.Int64(t.ComputeNS), KeyOverlapNS.Int64(t.OverlapNS), KeyDiskWaitNS.Int64(t.DiskWaitNS)}
}

// span emits one span; attrs are copied.
func (r *Replayer) span(ctx context.Context, name string, beganNS, endedNS int64, attrs []attribute.KeyValue, links ...trace.Link) {
	began, ended := r.times(beganNS, endedNS)
	_, span := r.tracer.Start(ctx, name, trace.WithTimestamp(began), trace.WithAttributes(attrs...), trace.WithLinks(links...))
	span.End(trace.WithTimestamp(ended))
}

// times returns a span's beginning and end. The end is never before the beginning.
func (r *Replayer) times(beganNS, endedNS int64) (began, ended time.Time) {
	return r.at(min(beganNS, endedNS)), r.at(endedNS)
}

func (r *Replayer) at(ns int64) time.Time { return r.epoch.Add(time.Duration(ns)) }

// spanContext returns the caller's span in the API's form.
func spanContext(t stages.TraceContext) trace.SpanContext {
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: t.TraceID, SpanID: t.SpanID, TraceFlags: trace.TraceFlags(t.Flags), Remote: true,
	})
}
