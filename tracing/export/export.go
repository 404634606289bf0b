package export

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// The sizes of the queue. A decoded token of a model with 61 layers makes about 430 spans, all at
// once when it ends. The queue holds the tokens of some seconds; the SDK's default of 2,048 spans
// would drop the fifth token of a burst.
const (
	DefaultQueueSpans = 1 << 15
	batchSpans        = 1 << 11
	flushMarkers      = 64 // room for the markers that Flush puts into the SDK's queue
	batchTimeout      = time.Second
	exportTimeout     = 30 * time.Second // of a batch, with all that is tried again
)

// Config says what happens to spans. With the zero value there are none.
type Config struct {
	// Mode says where spans go, see Modes. Empty means Off. A file is made, or emptied, by New.
	Mode string
	// Stdout and Stderr get the spans of these modes, from one goroutine at a time, one JSON object
	// a Write.
	Stdout, Stderr io.Writer
	// SampleRatio is the share, above 0 and at most 1, of traces without a caller's span that are
	// recorded. 0 means 1, which records all. With a caller's span a trace is recorded if that is.
	// A span costs about 2 us beside the engine's work.
	SampleRatio float64
	// ServiceName and ServiceVersion name the program in every span. An empty name means
	// "moeflux-actor". OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES come before them.
	ServiceName, ServiceVersion string
	// QueueSpans is the number of spans that may wait to be written. 0 means DefaultQueueSpans. A
	// small queue drops spans of bursts; each span costs about 1.5 KiB while it waits.
	QueueSpans int
	// Logger is told of the first batch that fails and of the first span that is dropped. Nil means
	// that only Stats tell.
	Logger *slog.Logger
}

// Validate reports every invalid field in one error, and for OTLP every environment variable that
// cannot be understood.
func (c Config) Validate() error {
	errs := []error{Check(c.Mode)}
	switch {
	case c.Mode == Stdout && c.Stdout == nil:
		errs = append(errs, errors.New("export: Config.Mode is stdout, but Config.Stdout is nil"))
	case c.Mode == Stderr && c.Stderr == nil:
		errs = append(errs, errors.New("export: Config.Mode is stderr, but Config.Stderr is nil"))
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
	Ended   int64 // recorded spans that ended: the sum of the next four
	Written int64
	Dropped int64 // the queue was full, or the Exporter shut down
	// Failed counts the spans of batches that were refused, or refused in part.
	Failed   int64
	Waiting  int64 // in the queue now; after Shutdown, those that there was no time to write
	FirstErr error // the error of the first batch that failed
}

// Lost says in one sentence how many spans did not arrive and why, and is empty if all did. It is
// meant for the time after Shutdown.
func (s Stats) Lost() string {
	if s.Dropped+s.Failed+s.Waiting == 0 {
		return ""
	}
	text := fmt.Sprintf("%d of %d spans were not written:", s.Dropped+s.Failed+s.Waiting, s.Ended)
	for _, part := range []struct {
		n   int64
		why string
	}{{s.Dropped, "found the queue full"}, {s.Failed, "failed"}, {s.Waiting, "were still waiting"}} {
		if part.n > 0 {
			text += fmt.Sprintf(" %d %s,", part.n, part.why)
		}
	}
	text = text[:len(text)-1]
	if s.FirstErr != nil {
		text += "; the first error: " + s.FirstErr.Error()
	}
	return text
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
	if cfg.Mode == "" || cfg.Mode == Off {
		return &Exporter{}, nil
	}
	program, err := about(cfg.ServiceName, cfg.ServiceVersion)
	if err != nil {
		return nil, err
	}
	out, err := cfg.open()
	if err != nil {
		return nil, err
	}
	ratio, queue := cfg.SampleRatio, cfg.QueueSpans
	if ratio == 0 {
		ratio = 1
	}
	if queue == 0 {
		queue = DefaultQueueSpans
	}
	g := newGate(out, queue, cfg.Logger)
	tp := sdk.NewTracerProvider(
		sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(ratio))),
		sdk.WithResource(program),
		sdk.WithSpanProcessor(g),
	)
	return &Exporter{tp: tp, gate: g}, nil
}

// about says what program spans and figures are of.
func about(name, version string) (*resource.Resource, error) {
	if name == "" {
		name = "moeflux-actor"
	}
	attrs := []attribute.KeyValue{attribute.String("service.name", name)}
	if version != "" {
		attrs = append(attrs, attribute.String("service.version", version))
	}
	r, err := resource.New(context.Background(), resource.WithAttributes(attrs...), resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, &EnvironmentError{Variable: "OTEL_RESOURCE_ATTRIBUTES", Err: err}
	}
	return r, nil
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
// Shutdown does nothing more. When ctx ends, a batch on its way to a collector is given up; one
// that is being written to a file or a stream ends when the system lets it.
func (e *Exporter) Shutdown(ctx context.Context) error {
	if e.tp == nil {
		return nil
	}
	return errors.Join(e.tp.Shutdown(ctx), e.gate.firstErr())
}
