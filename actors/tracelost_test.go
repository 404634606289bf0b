package actors_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
)

// TestTraceSaysWhatIsLost gives the stages rings that are too small for a step: spans are missing,
// and spans, figures and log say so. The same steps fit into rings of the usual size.
func TestTraceSaysWhatIsLost(t *testing.T) {
	for _, records := range []int{20, 0} {
		var log logBuffer
		cfg := actors.Config{ExpertIO: actors.ExpertIOBuffered, ExpertMemory: 1 << 17, WaveSlots: 2, Logger: log.logger()}
		actors.SetRingRecords(&cfg, records)
		tr := runTraced(t, cfg, func(ctx context.Context, e *actors.Engine) {
			s := sequence(t, e)
			if _, err := s.Eval(ctx, prompt(1, 60, 512)); err != nil {
				t.Fatal(err)
			}
		})
		lost := tr.counts.Tracing.RecordsLost
		tr.equal("records lost", tr.sum("eval", "records_lost"), lost)
		if (lost > 0) != (records > 0) || strings.Contains(log.String(), "records_lost") != (lost > 0) {
			t.Errorf("rings of %d records: %d records lost; the log: %s", records, lost, log.String())
		}
	}
}

// badProcessor is a caller's span processor that misbehaves.
type badProcessor struct {
	sdktrace.SpanProcessor
	hang chan struct{} // nil: panic
}

func (badProcessor) OnStart(context.Context, sdktrace.ReadWriteSpan) {}
func (badProcessor) Shutdown(context.Context) error                  { return nil }
func (b badProcessor) OnEnd(sdktrace.ReadOnlySpan) {
	if b.hang == nil {
		panic("no room")
	}
	<-b.hang
}

// TestBadExporter traces with a span processor that panics, or does not return: inference goes on,
// and Close returns.
func TestBadExporter(t *testing.T) {
	for _, hang := range []chan struct{}{nil, make(chan struct{})} {
		var log logBuffer
		tp := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(badProcessor{hang: hang}))
		cfg := actors.Config{
			Model: fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0), Device: device(t, 1), ExpertIO: actors.ExpertIOMmap, Tracer: tp, Logger: log.logger(),
		}
		e, err := actors.Open(context.Background(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		s := sequence(t, e)
		ctx := trace.ContextWithSpanContext(context.Background(), trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}, TraceFlags: trace.FlagsSampled,
		}))
		for range 3 {
			if _, err := s.Eval(ctx, []int32{1, 2}); err != nil {
				t.Fatal(err)
			}
		}
		patience, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		err = e.Close(patience)
		st, _ := e.Stats(context.Background())
		want := "does not take the last spans"
		if hang == nil {
			want = "a span processor panicked"
			if err != nil || st == nil || st.Tracing.StepsLost != 3 || st.Tracing.Steps != 0 {
				t.Errorf("figures %+v, %v, want 3 steps lost", st.Tracing, err)
			}
		} else {
			left, ok := errors.AsType[*actors.LeftBehindError](err)
			if !ok || !left.Spans || left.Device || left.Reads != 0 {
				t.Errorf("Close: %v, want spans that are left behind", err)
			}
			close(hang)
			if err := e.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}
		if n := strings.Count(log.String(), want); n != 1 {
			t.Errorf("the log says %d times %q, want once: %s", n, want, log.String())
		}
	}
}
