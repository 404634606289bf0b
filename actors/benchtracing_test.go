package actors_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/moeflux/moeflux-actor/actors"
)

// BenchmarkTracing shows what observing costs a decoded token: no records at all (off), records as
// they are always made (recording), and all spans (spans), into the SDK's batching processor and
// from there to nowhere. The three take turns in one process, a text of 32 tokens each, and the
// medians of the shares of each turn are printed, so that other work on the machine hits all. Half
// of the experts are in memory. MOEFLUX_BENCH_MODEL adds a packed model, for example of synth.
func BenchmarkTracing(b *testing.B) {
	demo, _ := demoModel(b)
	models := []string{demo}
	if dir := os.Getenv("MOEFLUX_BENCH_MODEL"); dir != "" {
		models = append(models, dir)
	}
	for _, dir := range models {
		b.Run("model="+filepath.Base(dir), func(b *testing.B) { benchmarkTracing(b, dir) })
	}
}

func benchmarkTracing(b *testing.B, dir string) {
	tp := sdktrace.NewTracerProvider(sdktrace.WithBatcher(tracetest.NewNoopExporter(), sdktrace.WithMaxQueueSize(1<<16)))
	defer tp.Shutdown(context.Background())
	dev := device(b, 0)
	all := open(b, actors.Config{Model: dir, Device: dev, ExpertIO: actors.ExpertIOMmap}).Info().ExpertBytes
	cfg := actors.Config{Model: dir, Device: dev, ExpertIO: actors.ExpertIOBuffered, ExpertMemory: all / 2, Context: 64, RecordMemory: -1}
	silent := sequence(b, open(b, cfg))
	cfg.RecordMemory, cfg.Tracer = 0, tp
	e := open(b, cfg)
	observed := sequence(b, e)
	text := func(s *actors.Sequence, sampled bool) float64 {
		const tokens = 32
		ctx := context.Background()
		if err := s.Reset(ctx); err != nil {
			b.Fatal(err)
		}
		token := int32(1)
		began := time.Now()
		for range tokens {
			var span trace.Span
			in := ctx
			if sampled {
				in, span = tp.Tracer("bench").Start(ctx, "token")
			}
			logits, err := s.Eval(in, []int32{token})
			if err != nil {
				b.Fatal(err)
			}
			if span != nil {
				span.End()
			}
			token = argmax(logits)
		}
		took := float64(time.Since(began)) / tokens
		time.Sleep(50 * time.Millisecond) // the last spans leave
		return took
	}
	var off, recording, spans []float64
	text(silent, false)
	text(observed, true)
	b.ResetTimer()
	for n := 0; b.Loop(); n++ {
		t := text(silent, false)
		off = append(off, t)
		for i := range 2 { // which of the two is first changes: what it leaves in slots helps the other
			if sampled := (n+i)%2 == 1; sampled {
				spans = append(spans, text(observed, true)/t)
			} else {
				recording = append(recording, text(observed, false)/t)
			}
		}
	}
	b.StopTimer()
	median := func(x []float64) float64 { slices.Sort(x); return x[len(x)/2] }
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(off)/1e6, "off-ms/token")
	b.ReportMetric(100*(median(recording)-1), "recording-%")
	b.ReportMetric(100*(median(spans)-1), "spans-%")
	st, err := e.Stats(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(st.Tracing.StepsLost+st.Tracing.RecordsLost), "lost")
}
