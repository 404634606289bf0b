package tracing

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// tree is a step with sampled requests, and what is known of it.
type tree struct {
	rec      record.Step
	segments []record.Segment
	rows     int32 // of the segments
	decided  bool  // the segments are complete, and evals are those that are recorded
	evals    []*evaluation

	over    bool
	endedNS int64
	failed  bool
	lost    int // records that are missing
	records int

	handled     []record.Handled
	waits       []record.Wait
	uses        []record.Use
	guesses     []record.Guess
	reads       []record.Read
	submissions []record.Submission
}

// ended returns when the step ended, or what was known of it last if nothing tells.
func (t *tree) ended() int64 {
	ended := max(t.endedNS, t.rec.BeganNS)
	for i := range t.handled {
		if !t.over {
			ended = max(ended, t.handled[i].EndedNS)
		}
	}
	return ended
}

// never reports whether the step was given up before its first layer began.
func (t *tree) never() bool { return t.failed && len(t.handled) == 0 && t.lost == 0 }

// messageKey names what a stage handles.
type messageKey struct{ stage, message uint8 }

func message(stage stages.StageID, kind stages.Kind) messageKey {
	return messageKey{uint8(stage), uint8(kind)}
}

var (
	begun     = message(stages.Dispatch, stages.KindBeginLayer)
	picked    = message(stages.Router, stages.KindPicksReady)
	routed    = message(stages.ExpertIO, stages.KindLayerRouted)
	resident  = message(stages.Dispatch, stages.KindWaveResident)
	computed  = message(stages.Combine, stages.KindTicketDone)
	released  = message(stages.ExpertIO, stages.KindSlotsReleased)
	retired   = message(stages.Sequencer, stages.KindLayerRetired)
	asked     = message(stages.Dispatch, stages.KindReadLogits)
	delivered = message(stages.Sequencer, stages.KindLogitsReady)
)

// shown are the messages that begin or end a span.
var shown = map[messageKey]bool{
	begun: true, picked: true, routed: true, resident: true, computed: true, released: true, retired: true, asked: true, delivered: true,
}

// times is where time went.
type times struct{ compute, overlap, diskWait int64 }

func (t *times) add(s *record.Submission) {
	t.compute += s.EndedNS - s.BeganNS - s.PausedNS
	t.overlap += s.OverlapNS
	t.diskWait += s.StarvedNS
}

func (t *times) attributes() []attribute.KeyValue {
	return []attribute.KeyValue{KeyComputeNS.Int64(t.compute), KeyOverlapNS.Int64(t.overlap), KeyDiskWaitNS.Int64(t.diskWait)}
}

// emit makes the spans of a step.
func (e *Emitter) emit(t *tree) {
	p := e.parts(t)
	var links []trace.Link
	for _, v := range t.evals[1:] {
		links = append(links, trace.Link{SpanContext: v.span.SpanContext()})
	}
	attrs := []attribute.KeyValue{
		KeyStep.Int64(int64(t.rec.Step)), KeyRows.Int(int(t.rec.Rows)), KeyDecodeRows.Int(int(t.rec.Decode)), KeyRequests.Int(len(t.segments)),
		KeyUrgent.Bool(t.rec.Urgent != 0), KeyHits.Int(p.hits), KeyMisses.Int(p.misses), KeyBytesRead.Int64(p.bytes), KeyBytesAhead.Int64(p.issued * e.about.SlotBytes),
	}
	attrs = append(attrs, p.times.attributes()...)
	if t.lost > 0 {
		attrs = append(attrs, KeyRecordsLost.Int(t.lost))
	}
	ctx, span := e.tracer.Start(t.evals[0].ctx, SpanStep, trace.WithTimestamp(e.time(t.rec.BeganNS)), trace.WithAttributes(attrs...), trace.WithLinks(links...))
	ended := t.ended()
	defer span.End(trace.WithTimestamp(e.time(ended)))
	if len(t.evals) > 1 {
		for _, v := range t.evals[1:] {
			v.links = append(v.links, trace.Link{SpanContext: span.SpanContext()})
		}
	}
	if t.failed || !t.over {
		span.SetStatus(codes.Error, "the step was given up")
	}
	for i := range p.layers {
		e.emitLayer(ctx, p, int32(i))
	}
	for i := range t.waits {
		e.wait(p.within(ctx, t.waits[i].Layer), &t.waits[i])
	}
	e.emitHead(ctx, p)
	e.beginHints(ctx, t, p)
}

// emitLayer makes the spans of a layer. ctx holds the step's span.
func (e *Emitter) emitLayer(ctx context.Context, p *parts, layer int32) {
	l := &p.layers[layer]
	parent := ctx
	at := KeyLayer.Int(int(layer))
	if b := l.begun; b != nil && l.retired != nil {
		e.emitLayers(ctx, p, b, l.retired)
		parent = p.within(ctx, layer)
	}
	if b, s := l.begun, l.picked; b != nil && s != nil {
		e.span(parent, SpanMix, b.BeganNS, s.SentNS, append(append(queue(b), at), onDevice(l.mix)...))
	}
	if s := l.picked; s != nil {
		e.span(parent, SpanRoute, s.BeganNS, s.EndedNS, append(queue(s), at, KeyExperts.Int(l.hits+l.misses), KeyWaves.Int(len(l.residents))))
	}
	if r := l.routed; r != nil && len(l.residents) > 0 && p.whole() {
		attrs := append(queue(r), at, KeyHits.Int(l.hits), KeyMisses.Int(l.misses), KeyBytesRead.Int64(l.bytes))
		in := e.span(parent, SpanExpertIO, r.BeganNS, l.residents[len(l.residents)-1].SentNS, attrs)
		for _, r := range l.reads {
			e.read(in, r)
		}
	} else {
		for _, r := range l.reads {
			e.read(parent, r)
		}
	}
	if l.paired() {
		for i := range l.residents {
			e.emitWave(parent, l, i)
		}
	}
}

// emitLayers makes the span of a layer, or of the layers that began together: one for each where
// the device has told of each, else one for all.
func (e *Emitter) emitLayers(ctx context.Context, p *parts, b, retired *record.Handled) {
	var timed []*layerParts
	for i := b.Layer; i <= b.Layer+b.More; i++ {
		if l := p.layer(i); b.More > 0 && l != nil && l.whole != nil {
			timed = append(timed, l)
		}
	}
	if len(timed) == 0 {
		attrs := queue(b)
		if b.More > 0 {
			attrs = append(attrs, KeyMoreLayers.Int(int(b.More)))
		}
		e.layerSpan(ctx, p, b.Layer, span{b.SentNS, retired.BeganNS}, attrs)
		return
	}
	for i, l := range timed {
		at, attrs := span{l.whole.BeganNS, l.whole.EndedNS}, []attribute.KeyValue(nil)
		if i == 0 {
			at.began, attrs = b.SentNS, queue(b)
		}
		if i == len(timed)-1 {
			at.ended = retired.BeganNS
		}
		e.layerSpan(ctx, p, l.whole.Layer, at, attrs)
	}
}

// span is from when to when something was.
type span struct{ began, ended int64 }

// layerSpan makes the span of a layer. ctx holds the step's span.
func (e *Emitter) layerSpan(ctx context.Context, p *parts, layer int32, at span, attrs []attribute.KeyValue) {
	l := &p.layers[layer]
	attrs = append(attrs, KeyLayer.Int(int(layer)))
	if int(layer) < len(e.about.LayerKinds) {
		attrs = append(attrs, KeyLayerKind.String(e.about.LayerKinds[layer]))
	}
	if l.whole != nil {
		attrs = append(attrs, KeyDeviceNS.Int64(l.whole.DeviceNS))
	}
	l.ctx = e.span(ctx, SpanLayer, at.began, at.ended, append(attrs, l.times.attributes()...))
}

// emitWave makes the spans of a wave. ctx holds its layer's span.
func (e *Emitter) emitWave(ctx context.Context, l *layerParts, i int) {
	w, done := l.residents[i], l.computed[i]
	at := []attribute.KeyValue{KeyLayer.Int(int(w.Layer)), KeyWave.Int(int(w.Wave))}
	attrs := append(queue(w), at...)
	if s := l.waves[w.Wave]; s != nil {
		attrs = append(append(attrs, KeyExperts.Int(int(s.Uses))), onDevice(s)...)
	}
	e.span(ctx, SpanExperts, w.EndedNS, done.BeganNS, attrs)
	ended := done.EndedNS
	if home := l.released[w.Wave]; home != nil {
		ended = home.SentNS
	}
	e.span(ctx, SpanRetire, done.BeganNS, ended, append(queue(done), at...))
}

// emitHead makes the span of the step's end. ctx holds the step's span.
func (e *Emitter) emitHead(ctx context.Context, p *parts) {
	b, d := p.asked, p.delivered
	if b == nil || d == nil {
		return
	}
	attrs := append(append(queue(b), p.head.attributes()...), onDevice(p.headWork)...)
	e.span(ctx, SpanHead, b.BeganNS, d.SentNS, attrs)
}

// read makes the span of a read.
func (e *Emitter) read(ctx context.Context, r *record.Read) {
	attrs := []attribute.KeyValue{
		KeyLayer.Int(int(r.Layer)), KeyExpert.Int(int(r.Expert)), KeySlot.Int(int(r.Slot)), KeyBytes.Int64(r.Bytes), KeyTier.String(tiers[r.Tier]),
		KeyUrgent.Bool(r.Urgent != 0),
	}
	if r.BeganNS != 0 {
		attrs = append(attrs, KeyQueueNS.Int64(r.BeganNS-r.AskedNS))
	}
	if r.WantedNS != 0 {
		attrs = append(attrs, KeyWanted.Int64(r.WantedNS-r.AskedNS))
	}
	_, span := e.tracer.Start(ctx, SpanRead, trace.WithTimestamp(e.time(r.AskedNS)), trace.WithAttributes(attrs...))
	if r.Failed != 0 {
		span.SetStatus(codes.Error, "the read failed")
	}
	span.End(trace.WithTimestamp(e.time(readEnd(r))))
}

// readEnd is when the record of an expert lay in its slot, or the read failed.
func readEnd(r *record.Read) int64 { return max(r.AskedNS, r.EndedNS, r.PlacedNS) }

var tiers = [...]string{record.FromDisk: "disk", record.FromHost: "host"}

// wait makes the span of a wait.
func (e *Emitter) wait(ctx context.Context, w *record.Wait) {
	attrs := []attribute.KeyValue{KeyReason.String(reasons[w.Reason])}
	if w.Layer >= 0 {
		attrs = append(attrs, KeyLayer.Int(int(w.Layer)))
	}
	if w.Wave >= 0 {
		attrs = append(attrs, KeyWave.Int(int(w.Wave)))
	}
	if w.For != 0 {
		attrs = append(attrs, KeyForStep.Int64(int64(w.For)))
	}
	e.span(ctx, SpanWait, w.BeganNS, w.EndedNS, attrs)
}

// queue says how long a message was in line.
func queue(h *record.Handled) []attribute.KeyValue {
	return []attribute.KeyValue{KeyQueueNS.Int64(max(0, h.BeganNS-h.SentNS))}
}

// onDevice says what a submission took, if it is known.
func onDevice(s *record.Submission) []attribute.KeyValue {
	if s == nil {
		return nil
	}
	return []attribute.KeyValue{KeyDeviceNS.Int64(s.DeviceNS), KeyDeviceQueueNS.Int64(s.BeganNS - s.SubmittedNS)}
}

// span makes a span and returns a context with it. Two stages stamp their records independently: a
// span whose end was recorded before its beginning, because a message was answered while its sender
// still worked, has no length and is placed at its end.
func (e *Emitter) span(ctx context.Context, name string, beganNS, endedNS int64, attrs []attribute.KeyValue, links ...trace.Link) context.Context {
	ctx, span := e.tracer.Start(ctx, name, trace.WithTimestamp(e.time(min(beganNS, endedNS))), trace.WithAttributes(attrs...), trace.WithLinks(links...))
	span.End(trace.WithTimestamp(e.time(endedNS)))
	return ctx
}

// reasons name what was waited for.
var reasons = [record.NumReasons]string{
	record.LayerCredit: "layer_credit", record.WaveCredit: "wave_credit", record.Room: "room", record.Lane: "lane", record.Turn: "turn",
	record.Company: "company", record.Memory: "memory", record.ReadCredit: "read_credit", record.StateReady: "state",
}
