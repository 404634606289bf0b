package export

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// gate wraps the SDK's batch processor, which does not say how many spans it drops. The gate lets a
// span pass only while fewer than limit are inside, so the processor's own queue is never full, and
// counts the rest.
type gate struct {
	sdk.SpanProcessor // the batch processor
	limit             int64
	log               *slog.Logger // nil: nobody is told
	down              atomic.Bool
	over              context.Context // done when Shutdown has no more time
	giveUp            context.CancelFunc

	ended, waiting, written, dropped, failed atomic.Int64
	err                                      atomic.Pointer[error]
	toldDropped                              atomic.Bool
}

func newGate(out sdk.SpanExporter, queue int, log *slog.Logger) *gate {
	g := &gate{limit: int64(queue), log: log}
	g.over, g.giveUp = context.WithCancel(context.Background())
	g.SpanProcessor = sdk.NewBatchSpanProcessor(&counted{out, g}, sdk.WithMaxQueueSize(queue+flushMarkers),
		sdk.WithMaxExportBatchSize(min(queue, batchSpans)), sdk.WithBatchTimeout(batchTimeout), sdk.WithExportTimeout(exportTimeout))
	return g
}

var _ sdk.SpanProcessor = (*gate)(nil)

// OnEnd takes a span if there is room.
func (g *gate) OnEnd(s sdk.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return
	}
	g.ended.Add(1)
	if g.waiting.Add(1) > g.limit || g.down.Load() {
		g.waiting.Add(-1)
		g.dropped.Add(1)
		if g.log != nil && g.toldDropped.CompareAndSwap(false, true) {
			g.log.Warn("spans do not leave as fast as they are made: some are dropped", "queue", g.limit)
		}
		return
	}
	g.SpanProcessor.OnEnd(s)
}

// Shutdown writes the spans that wait and ends the processor.
func (g *gate) Shutdown(ctx context.Context) error {
	g.down.Store(true)
	defer g.giveUp()
	return g.SpanProcessor.Shutdown(ctx)
}

// fail notes an error and tells of the first.
func (g *gate) fail(err error) {
	if g.err.CompareAndSwap(nil, &err) && g.log != nil {
		g.log.Warn("spans cannot be written; the engine's work is not affected", "error", err)
	}
}

func (g *gate) firstErr() error {
	if p := g.err.Load(); p != nil {
		return *p
	}
	return nil
}

func (g *gate) stats() Stats {
	s := Stats{Written: g.written.Load(), Dropped: g.dropped.Load(), Failed: g.failed.Load(), FirstErr: g.firstErr()}
	s.Waiting = g.waiting.Load()
	s.Ended = g.ended.Load()
	return s
}

// counted is an exporter that tells the gate what became of each batch. It keeps the error for
// Flush and Shutdown and does not return it to the SDK, whose error handler is global and prints.
type counted struct {
	sdk.SpanExporter
	gate *gate
}

func (c *counted) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	if c.gate.over.Err() != nil {
		return nil // they are left waiting
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.gate.over, cancel)()
	err := c.SpanExporter.ExportSpans(ctx, spans)
	n := int64(len(spans))
	switch {
	case err == nil:
		c.gate.written.Add(n)
	case c.gate.over.Err() != nil && errors.Is(err, context.Canceled):
		return nil
	default:
		c.gate.failed.Add(n)
		c.gate.fail(fmt.Errorf("export: writing %d spans: %w", n, err))
	}
	c.gate.waiting.Add(-n)
	return nil
}
