package tracing

import (
	"context"

	"go.opentelemetry.io/otel/trace"

	"github.com/moeflux/moeflux-actor/tracing/record"
)

// hint is a hint whose step is emitted. Its span is made when its last read has ended.
type hint struct {
	ctx          context.Context // with the step's span
	link         trace.SpanContext
	layer, ahead int32
	atNS         int64
	overNS       int64 // the step's end
	verdicts     [4]int
	reads        []record.Read
}

// beginHints keeps the hints of a step that has just been emitted. A hint hangs below its step,
// since it may begin before its layer does, and is linked to the layer if it is for this step.
func (e *Emitter) beginHints(ctx context.Context, t *tree, p *parts) {
	for i := range t.guesses {
		g := &t.guesses[i]
		h := e.hints[g.Hint]
		if h == nil {
			h = &hint{ctx: ctx, layer: g.Layer, ahead: g.Ahead, atNS: g.AtNS, overNS: t.endedNS}
			if l := p.layer(g.Layer); g.Ahead <= g.Layer && l != nil && l.ctx != nil {
				h.link = trace.SpanContextFromContext(l.ctx)
			}
			e.hints[g.Hint] = h
		}
		h.verdicts[g.Verdict]++
	}
	for i := range t.reads {
		if h := e.hints[t.reads[i].Hint]; h != nil {
			h.reads = append(h.reads, t.reads[i])
		}
	}
}

// emitHints makes the spans of hints whose reads have ended, or have been waited for.
func (e *Emitter) emitHints(nowNS int64, last bool) {
	for id, h := range e.hints {
		if last || len(h.reads) >= h.verdicts[record.Issued] || nowNS-h.overNS > hintNS {
			delete(e.hints, id)
			e.guard(func() { e.emitHint(h) })
		}
	}
}

func (e *Emitter) emitHint(h *hint) {
	issued := h.verdicts[record.Issued]
	attrs := append(e.attrs[:0], KeyLayer.Int(int(h.layer)), KeyLayersAhead.Int(int(h.ahead)), KeyPrefetchIssued.Int(issued),
		KeyPrefetchDropped.Int(h.verdicts[record.Dropped]), KeyPrefetchDeclined.Int(h.verdicts[record.Declined]), KeyPrefetchSkipped.Int(h.verdicts[record.Skipped]))
	ended, late := h.atNS, false
	for i := range h.reads {
		ended = max(ended, readEnd(&h.reads[i]))
		late = late || h.reads[i].WantedNS != 0
	}
	if n := issued - len(h.reads); n > 0 {
		ended = max(ended, h.overNS)
		attrs = append(attrs, KeyPrefetchPending.Int(n))
	}
	if issued > 0 {
		attrs = append(attrs, KeyPrefetchLate.Bool(late))
	}
	var links []trace.Link
	if h.link.IsValid() {
		links = []trace.Link{{SpanContext: h.link}}
	}
	ctx := e.span(h.ctx, SpanPrefetch, h.atNS, ended, attrs, links...)
	for i := range h.reads {
		e.read(ctx, &h.reads[i])
	}
}
