package tracing

import (
	"context"

	"go.opentelemetry.io/otel/attribute"

	"github.com/moeflux/moeflux-actor/tracing/record"
)

// emitLayer makes the spans of a layer. ctx holds the step's span.
func (e *Emitter) emitLayer(ctx context.Context, p *parts, layer int32) {
	l := &p.layers[layer]
	parent := ctx
	if b := l.begun; b != nil && l.retired != nil {
		e.emitLayers(ctx, p, b, l.retired)
		parent = p.within(ctx, layer)
	}
	if b, s := l.begun, l.picked; b != nil && s != nil {
		e.span(parent, SpanMix, b.BeganNS, s.SentNS, onDevice(e.of(b), l.mix))
	}
	if s := l.picked; s != nil {
		e.span(parent, SpanRoute, s.BeganNS, s.EndedNS, append(e.of(s), KeyExperts.Int(l.hits+l.misses), KeyWaves.Int(len(l.residents))))
	}
	if r := l.routed; r != nil && len(l.residents) > 0 && p.whole() {
		attrs := append(e.of(r), KeyHits.Int(l.hits), KeyMisses.Int(l.misses), KeyBytesRead.Int64(l.bytes))
		in := e.span(parent, SpanExpertIO, r.BeganNS, l.residents[len(l.residents)-1].SentNS, attrs)
		e.fetched(in, l)
	} else {
		e.fetched(parent, l)
	}
	if l.paired() {
		for i := range l.residents {
			e.emitWave(parent, l, i)
		}
	}
}

// fetched makes the spans of what was read for a layer, and of what hosts computed.
func (e *Emitter) fetched(ctx context.Context, l *layerParts) {
	for _, r := range l.reads {
		e.read(ctx, r)
	}
	for _, a := range l.answers {
		e.away(ctx, a)
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
		attrs := e.of(b)
		if b.More > 0 {
			attrs = append(attrs, KeyMoreLayers.Int(int(b.More)))
		}
		e.layerSpan(ctx, p, b.Layer, span{b.SentNS, retired.BeganNS}, attrs)
		return
	}
	for i, l := range timed {
		at, attrs := span{l.whole.BeganNS, l.whole.EndedNS}, append(e.attrs[:0], KeyLayer.Int(int(l.whole.Layer)))
		if i == 0 {
			at.began, attrs = b.SentNS, e.of(b)
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
	if int(layer) < len(e.about.LayerKinds) {
		attrs = append(attrs, KeyLayerKind.String(e.about.LayerKinds[layer]))
	}
	if l.whole != nil {
		attrs = append(attrs, KeyDeviceNS.Int64(l.whole.DeviceNS))
	}
	l.ctx = e.span(ctx, SpanLayer, at.began, at.ended, l.times.attributes(attrs))
}

// emitWave makes the spans of a wave. ctx holds its layer's span.
func (e *Emitter) emitWave(ctx context.Context, l *layerParts, i int) {
	w, done := l.residents[i], l.computed[i]
	attrs := append(e.of(w), KeyWave.Int(int(w.Wave)))
	if s := l.waves[w.Wave]; s != nil {
		attrs = onDevice(append(attrs, KeyExperts.Int(int(s.Uses))), s)
	}
	e.span(ctx, SpanExperts, w.EndedNS, done.BeganNS, attrs)
	ended := done.EndedNS
	if home := l.released[w.Wave]; home != nil {
		ended = home.SentNS
	}
	e.span(ctx, SpanRetire, done.BeganNS, ended, append(e.attrs[:0], queue(done), KeyLayer.Int(int(w.Layer)), KeyWave.Int(int(w.Wave))))
}
