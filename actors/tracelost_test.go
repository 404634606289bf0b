package actors_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/testenv"
)

// lateProcessor holds up the first span that ends until it is released.
type lateProcessor struct {
	sdktrace.SpanProcessor
	once    sync.Once
	reached chan struct{}
	release chan struct{}
}

func (*lateProcessor) OnStart(context.Context, sdktrace.ReadWriteSpan) {}
func (*lateProcessor) Shutdown(context.Context) error                  { return nil }
func (p *lateProcessor) OnEnd(sdktrace.ReadOnlySpan) {
	p.once.Do(func() {
		close(p.reached)
		<-p.release
	})
}

// TestTraceSaysWhatIsLost evaluates prompts and tokens while a span processor hangs, with so little
// memory for records that those of the first of them are forgotten. Inference goes on; figures and
// log say, once, what is missing, and spans of requests under way do. With the usual memory nothing
// is lost, however long the processor hangs.
func TestTraceSaysWhatIsLost(t *testing.T) {
	for _, memory := range []int64{64 << 10, 0} {
		var log testenv.Log
		p := &lateProcessor{reached: make(chan struct{}), release: make(chan struct{})}
		rec := tracetest.NewInMemoryExporter()
		tp := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(p), sdktrace.WithSyncer(rec))
		e, err := actors.Open(context.Background(), actors.Config{
			Model: fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0), Device: device(t, 1), ExpertIO: actors.ExpertIOBuffered, ExpertMemory: 1 << 17, WaveSlots: 2,
			Tracer: tp, RecordMemory: memory, Logger: log.Logger(),
		})
		if err != nil {
			t.Fatal(err)
		}
		s := sequence(t, e)
		ctx := sampledContext()
		evaluate := func(tokens ...int32) {
			t.Helper()
			if _, err := s.Eval(ctx, tokens); err != nil {
				t.Fatal(err)
			}
		}
		evaluate(1)
		<-p.reached // from now on nothing is read
		for i := range int32(60) {
			evaluate(i)
		}
		evaluate(prompt(1, 60, 512)...)
		close(p.release)
		if err := e.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		st, _ := e.Stats(context.Background())
		made := int64(0)
		for _, sp := range rec.GetSpans() {
			if sp.Name == "moeflux.step" {
				made++
			}
		}
		lost := memory != 0
		if g := st.Tracing; g.Steps != made || g.Steps+g.StepsLost != st.Steps || (g.StepsLost > 0) != lost {
			t.Errorf("%d bytes for records: %d steps with spans, figures %+v of %d steps", memory, made, g, st.Steps)
		}
		if n := strings.Count(log.String(), "records were forgotten"); n != 0 && !lost || n != 1 && lost {
			t.Errorf("%d bytes for records: the log says %d times that some are lost: %s", memory, n, log.String())
		}
	}
}

// sampledContext returns a context with a span that is recorded elsewhere.
func sampledContext() context.Context {
	return trace.ContextWithSpanContext(context.Background(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}, TraceFlags: trace.FlagsSampled,
	}))
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
		var log testenv.Log
		tp := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(badProcessor{hang: hang}))
		cfg := actors.Config{
			Model: fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0), Device: device(t, 1), ExpertIO: actors.ExpertIOMmap, Tracer: tp, Logger: log.Logger(),
		}
		e, err := actors.Open(context.Background(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		s := sequence(t, e)
		ctx := sampledContext()
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
