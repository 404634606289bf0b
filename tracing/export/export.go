package export

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// The modes.
const (
	Off    = "off"    // no spans; the default
	Stdout = "stdout" // one JSON object for each span, on a line of its own, to Config.Writer
)

// The sizes of the queue. A decoded token of a model with 61 layers makes about 430 spans, all at
// once when it ends. The queue holds the tokens of some seconds; the SDK's default of 2,048 spans
// would drop the fifth token of a burst.
const (
	DefaultQueueSpans = 1 << 15
	batchSpans        = 1 << 11
	flushMarkers      = 64 // room for the markers that Flush puts into the SDK's queue
	batchTimeout      = time.Second
)

// Config says what happens to spans. With the zero value there are none.
type Config struct {
	// Mode is Off, Stdout, or empty, which means Off.
	Mode string
	// Writer gets the spans of Stdout, from one goroutine at a time.
	Writer io.Writer
	// SampleRatio is the share, above 0 and at most 1, of chunks without a caller's span that are
	// recorded. 0 means 1, which records all. A chunk with a caller's span is recorded if that is.
	// A span costs about 2 us beside the engine's work.
	SampleRatio float64
	// ServiceName and ServiceVersion name the program in every span. An empty name means
	// "moeflux-actor".
	ServiceName, ServiceVersion string
	// QueueSpans is the number of spans that may wait to be written. 0 means DefaultQueueSpans. A
	// small queue drops spans of bursts; each span costs about 1.5 KiB while it waits.
	QueueSpans int
}

// ModeError reports a Config.Mode that does not exist.
type ModeError struct{ Mode string }

func (e *ModeError) Error() string {
	return fmt.Sprintf("export: Config.Mode is %q, but must be %q or %q", e.Mode, Off, Stdout)
}

// Validate reports every invalid field, in one error.
func (c Config) Validate() error {
	var errs []error
	switch c.Mode {
	case "", Off:
	case Stdout:
		if c.Writer == nil {
			errs = append(errs, fmt.Errorf("export: Config.Mode is %q, but Config.Writer is nil", Stdout))
		}
	default:
		errs = append(errs, &ModeError{c.Mode})
	}
	if !(c.SampleRatio >= 0 && c.SampleRatio <= 1) {
		errs = append(errs, fmt.Errorf("export: Config.SampleRatio is %v, but must be from 0 to 1", c.SampleRatio))
	}
	if c.QueueSpans < 0 {
		errs = append(errs, fmt.Errorf("export: Config.QueueSpans is %d, but must be 0 or more", c.QueueSpans))
	}
	return errors.Join(errs...)
}

// Stats counts spans since New.
type Stats struct {
	Ended    int64 // recorded spans that ended: the sum of the next four
	Written  int64
	Dropped  int64 // the queue was full, or the Exporter shut down
	Failed   int64 // in batches that the writer refused
	Waiting  int64 // in the queue now; after Shutdown, those that there was no time to write
	FirstErr error // the error of the first batch that failed
}

// Exporter owns a provider, its queue and its writer. Its methods may be called from any goroutine.
type Exporter struct {
	tp   *sdk.TracerProvider // nil when off
	gate *gate
}

// New returns an Exporter, which must be shut down.
func New(cfg Config) (*Exporter, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.Mode != Stdout {
		return &Exporter{}, nil
	}
	out, err := stdouttrace.New(stdouttrace.WithWriter(cfg.Writer))
	if err != nil {
		return nil, fmt.Errorf("export: making the JSON exporter: %w", err)
	}
	ratio, name, queue := cfg.SampleRatio, cfg.ServiceName, cfg.QueueSpans
	if ratio == 0 {
		ratio = 1
	}
	if name == "" {
		name = "moeflux-actor"
	}
	if queue == 0 {
		queue = DefaultQueueSpans
	}
	attrs := []attribute.KeyValue{attribute.String("service.name", name)}
	if cfg.ServiceVersion != "" {
		attrs = append(attrs, attribute.String("service.version", cfg.ServiceVersion))
	}
	g := newGate(out, queue)
	tp := sdk.NewTracerProvider(
		sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(ratio))),
		sdk.WithResource(resource.NewSchemaless(attrs...)),
		sdk.WithSpanProcessor(g),
	)
	return &Exporter{tp: tp, gate: g}, nil
}

// Provider returns the provider of tracers. If the mode is Off its spans are never recorded.
func (e *Exporter) Provider() trace.TracerProvider {
	if e.tp == nil {
		return noop.NewTracerProvider()
	}
	return e.tp
}

// Stats returns the present counts.
func (e *Exporter) Stats() Stats {
	if e.tp == nil {
		return Stats{}
	}
	return e.gate.stats()
}

// Flush writes the spans that wait. The error includes that of the first batch that ever failed.
func (e *Exporter) Flush(ctx context.Context) error {
	if e.tp == nil {
		return nil
	}
	return errors.Join(e.tp.ForceFlush(ctx), e.gate.firstErr())
}

// Shutdown writes the spans that wait, unless ctx ends first, and closes the Exporter. Spans that
// end later are dropped. The error includes that of the first batch that ever failed. A second
// Shutdown does nothing more.
func (e *Exporter) Shutdown(ctx context.Context) error {
	if e.tp == nil {
		return nil
	}
	return errors.Join(e.tp.Shutdown(ctx), e.gate.firstErr())
}

// gate wraps the SDK's batch processor, which does not say how many spans it drops. The gate lets a
// span pass only while fewer than limit are inside, so the processor's own queue is never full, and
// counts the rest.
type gate struct {
	sdk.SpanProcessor // the batch processor
	limit             int64
	down              atomic.Bool

	ended, waiting, written, dropped, failed atomic.Int64
	err                                      atomic.Pointer[error]
}

func newGate(out sdk.SpanExporter, queue int) *gate {
	g := &gate{limit: int64(queue)}
	g.SpanProcessor = sdk.NewBatchSpanProcessor(&counted{out, g},
		sdk.WithMaxQueueSize(queue+flushMarkers), sdk.WithMaxExportBatchSize(min(queue, batchSpans)), sdk.WithBatchTimeout(batchTimeout))
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
		return
	}
	g.SpanProcessor.OnEnd(s)
}

// Shutdown writes the spans that wait and ends the processor.
func (g *gate) Shutdown(ctx context.Context) error {
	g.down.Store(true)
	return g.SpanProcessor.Shutdown(ctx)
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
	err := c.SpanExporter.ExportSpans(ctx, spans)
	n := int64(len(spans))
	if err != nil {
		err = fmt.Errorf("export: writing %d spans: %w", n, err)
		c.gate.failed.Add(n)
		c.gate.err.CompareAndSwap(nil, &err)
	} else {
		c.gate.written.Add(n)
	}
	c.gate.waiting.Add(-n)
	return nil
}
