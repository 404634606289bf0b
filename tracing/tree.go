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
	answers     []record.Answer
}

// reset empties the tree for another step, whose records use its memory.
func (t *tree) reset() {
	clear(t.evals)
	*t = tree{
		segments: t.segments[:0], evals: t.evals[:0], handled: t.handled[:0], waits: t.waits[:0], uses: t.uses[:0], guesses: t.guesses[:0],
		reads: t.reads[:0], submissions: t.submissions[:0], answers: t.answers[:0],
	}
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

// picks returns how many picks of a layer are known.
func (t *tree) picks(layer int) (n int) {
	for i := range t.uses {
		if u := &t.uses[i]; int(u.Layer) == layer {
			n += int(u.Rows)
		}
	}
	return n
}

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

func (t *times) attributes(to []attribute.KeyValue) []attribute.KeyValue {
	return append(to, KeyComputeNS.Int64(t.compute), KeyOverlapNS.Int64(t.overlap), KeyDiskWaitNS.Int64(t.diskWait))
}

// emit makes the spans of a step.
func (e *Emitter) emit(t *tree) {
	p := e.parts(t)
	var links []trace.Link
	for _, v := range t.evals[1:] {
		links = append(links, trace.Link{SpanContext: v.span.SpanContext()})
	}
	attrs := append(
		e.attrs[:0], KeyStep.Int64(int64(t.rec.Step)), KeyRows.Int(int(t.rec.Rows)), KeyDecodeRows.Int(int(t.rec.Decode)), KeyRequests.Int(len(t.segments)),
		KeyUrgent.Bool(t.rec.Urgent != 0), KeyHits.Int(p.hits), KeyMisses.Int(p.misses), KeyBytesRead.Int64(p.bytes), KeyBytesAhead.Int64(p.issued*e.about.SlotBytes),
	)
	attrs = p.times.attributes(attrs)
	if t.lost > 0 {
		attrs = append(attrs, KeyRecordsLost.Int(t.lost))
	}
	ctx, span := e.start(t.evals[0].ctx, SpanStep, t.rec.BeganNS, attrs, links...)
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
		e.Yield()
	}
	for i := range t.waits {
		e.wait(p.within(ctx, t.waits[i].Layer), &t.waits[i])
	}
	e.emitHead(ctx, p)
	e.beginHints(ctx, t, p)
}

// emitHead makes the span of the step's end. ctx holds the step's span.
func (e *Emitter) emitHead(ctx context.Context, p *parts) {
	b, d := p.asked, p.delivered
	if b == nil || d == nil {
		return
	}
	attrs := p.head.attributes(append(e.attrs[:0], queue(b)))
	e.span(ctx, SpanHead, b.BeganNS, d.SentNS, onDevice(attrs, p.headWork))
}

// read makes the span of a read.
func (e *Emitter) read(ctx context.Context, r *record.Read) {
	attrs := append(
		e.attrs[:0], KeyLayer.Int(int(r.Layer)), KeyExpert.Int(int(r.Expert)), KeySlot.Int(int(r.Slot)), KeyBytes.Int64(r.Bytes), KeyTier.String(tiers[r.Tier]),
		KeyUrgent.Bool(r.Urgent != 0),
	)
	if r.BeganNS != 0 {
		attrs = append(attrs, KeyQueueNS.Int64(r.BeganNS-r.AskedNS))
	}
	if r.WantedNS != 0 {
		attrs = append(attrs, KeyWanted.Int64(r.WantedNS-r.AskedNS))
	}
	_, span := e.start(ctx, SpanRead, r.AskedNS, attrs)
	if r.Failed != 0 && r.Recalled == 0 {
		span.SetStatus(codes.Error, "the read failed")
	}
	span.End(trace.WithTimestamp(e.time(readEnd(r))))
}

// away makes the span of what an expert host has computed, or has not.
func (e *Emitter) away(ctx context.Context, a *record.Answer) {
	attrs := append(e.attrs[:0], KeyLayer.Int(int(a.Layer)), KeyExperts.Int(int(a.Uses)))
	if e.about.Host != nil {
		if addr := e.about.Host(int(a.Host)); addr != "" {
			attrs = append(attrs, KeyHost.String(addr))
		}
	}
	if a.Failed == 0 {
		attrs = append(
			attrs, KeyNetworkNS.Int64(a.NetworkNS()), KeyHostWaitNS.Int64(a.WaitedNS), KeyHostReadNS.Int64(a.ReadNS), KeyHostComputeNS.Int64(a.ComputedNS),
		)
	}
	_, span := e.start(ctx, SpanAway, a.AskedNS, attrs)
	if a.Failed != 0 {
		span.SetStatus(codes.Error, "the expert host did not answer")
	}
	span.End(trace.WithTimestamp(e.time(a.EndedNS)))
}

// readEnd is when the record of an expert lay in its slot, or the read failed or was recalled.
func readEnd(r *record.Read) int64 { return max(r.AskedNS, r.EndedNS, r.PlacedNS) }

var tiers = [...]string{record.FromDisk: "disk", record.FromHost: "host"}

// wait makes the span of a wait.
func (e *Emitter) wait(ctx context.Context, w *record.Wait) {
	attrs := append(e.attrs[:0], KeyReason.String(reasons[w.Reason]))
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
func queue(h *record.Handled) attribute.KeyValue {
	return KeyQueueNS.Int64(max(0, h.BeganNS-h.SentNS))
}

// of begins the attributes of a span that begins with a message about a layer. They are good until
// the next span's.
func (e *Emitter) of(h *record.Handled) []attribute.KeyValue {
	return append(e.attrs[:0], queue(h), KeyLayer.Int(int(h.Layer)))
}

// onDevice adds what a submission took, if it is known.
func onDevice(to []attribute.KeyValue, s *record.Submission) []attribute.KeyValue {
	if s == nil {
		return to
	}
	return append(to, KeyDeviceNS.Int64(s.DeviceNS), KeyDeviceQueueNS.Int64(s.BeganNS-s.SubmittedNS))
}

// start begins a span. The provider copies the attributes, whose memory is the next span's.
func (e *Emitter) start(ctx context.Context, name string, beganNS int64, attrs []attribute.KeyValue, links ...trace.Link) (_ context.Context, span trace.Span) {
	at := trace.WithTimestamp(e.time(beganNS))
	if len(links) > 0 {
		ctx, span = e.tracer.Start(ctx, name, at, trace.WithLinks(links...))
	} else {
		ctx, span = e.tracer.Start(ctx, name, at)
	}
	span.SetAttributes(attrs...)
	e.attrs = attrs
	return ctx, span
}

// span makes a span and returns a context with it. Two stages stamp their records independently: a
// span whose end was recorded before its beginning, because a message was answered while its sender
// still worked, has no length and is placed at its end.
func (e *Emitter) span(ctx context.Context, name string, beganNS, endedNS int64, attrs []attribute.KeyValue, links ...trace.Link) context.Context {
	ctx, span := e.start(ctx, name, min(beganNS, endedNS), attrs, links...)
	span.End(trace.WithTimestamp(e.time(endedNS)))
	return ctx
}

// reasons name what was waited for.
var reasons = [record.NumReasons]string{
	record.LayerCredit: "layer_credit", record.WaveCredit: "wave_credit", record.Room: "room", record.Lane: "lane", record.Turn: "turn",
	record.Company: "company", record.Memory: "memory", record.ReadCredit: "read_credit", record.StateReady: "state",
}
