package actors_test

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/moeflux/moeflux-actor/actors"
)

// BenchmarkTracing shows what observing costs a decoded token: no records at all (off), records as
// they are always made (recording), and all spans (spans), into the SDK's batching processor and
// from there to nowhere. Two engines, of which one makes no records, decode the same text in turns
// of some tokens, and every other turn of the one that does makes spans. What is printed is the
// median of the shares by which a turn took longer than that of the other engine, of wall time and
// of processor time (cpu), and the standard error of that median (se). Half of the experts are in
// memory. MOEFLUX_BENCH_MODEL adds a packed model, for example of synth.
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
	var made countedSpans
	tp := sdktrace.NewTracerProvider(sdktrace.WithBatcher(&made, sdktrace.WithMaxQueueSize(1<<16)))
	defer tp.Shutdown(context.Background())
	dev := device(b, 0)
	all := open(b, actors.Config{Model: dir, Device: dev, ExpertIO: actors.ExpertIOMmap}).Info().ExpertBytes
	cfg := actors.Config{Model: dir, Device: dev, ExpertIO: actors.ExpertIOBuffered, ExpertMemory: all / 2, Context: 1024, RecordMemory: -1}
	silent := &tracedText{b: b, s: sequence(b, open(b, cfg))}
	cfg.RecordMemory, cfg.Tracer = 0, tp
	e := open(b, cfg)
	observed := &tracedText{b: b, s: sequence(b, e), tp: tp}
	for range 4 { // slots are filled, and memory is touched for the first time
		silent.turn(false)
		observed.turn(true)
	}
	var off, offCPU []float64
	var recording, spans shares
	b.ResetTimer()
	for n := 0; b.Loop(); n++ {
		var plain, seen cost
		of, with := &recording, false
		if n%2 == 1 {
			of, with = &spans, true
		}
		if n/2%2 == 0 { // who is first changes
			plain, seen = silent.turn(false), observed.turn(with)
		} else {
			seen, plain = observed.turn(with), silent.turn(false)
		}
		off, offCPU = append(off, plain.wall), append(offCPU, plain.cpu)
		of.add(seen, plain)
	}
	b.StopTimer()
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(middle(off)/1e6, "off-ms/token")
	b.ReportMetric(middle(offCPU)/1e6, "off-cpu-ms/token")
	recording.report(b, "recording")
	spans.report(b, "spans")
	st, err := e.Stats(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(st.Tracing.StepsLost+st.Tracing.RecordsLost), "lost")
	if err := tp.ForceFlush(context.Background()); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(made.n.Load())/float64(observed.spans), "spans/token")
}

// countedSpans is an exporter to nowhere.
type countedSpans struct {
	tracetest.NoopExporter
	n atomic.Int64
}

func (c *countedSpans) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	c.n.Add(int64(len(spans)))
	return nil
}

// cost is what a token took, in nanoseconds.
type cost struct{ wall, cpu float64 }

// shares are by how much turns took longer than others.
type shares struct{ wall, cpu []float64 }

func (s *shares) add(seen, plain cost) {
	s.wall, s.cpu = append(s.wall, 100*(seen.wall/plain.wall-1)), append(s.cpu, 100*(seen.cpu/plain.cpu-1))
}

func (s *shares) report(b *testing.B, name string) {
	for _, of := range []struct {
		name string
		v    []float64
	}{{name, s.wall}, {name + "-cpu", s.cpu}} {
		if n := len(of.v); n > 3 {
			b.ReportMetric(middle(of.v), of.name+"-%")
			// of a median of normal values, by their quartiles
			b.ReportMetric(0.93*(of.v[n*3/4]-of.v[n/4])/math.Sqrt(float64(n)), of.name+"-se")
		}
	}
}

// middle sorts v and returns its median.
func middle(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// tracedText is a text that an engine decodes.
type tracedText struct {
	b     *testing.B
	s     *actors.Sequence
	tp    trace.TracerProvider // for spans
	token int32
	spans int // tokens that had some
}

// turn decodes a token that is not counted and some that are: the spans of a token are made while
// the next one is computed.
func (d *tracedText) turn(spans bool) cost {
	const tokens = 12
	if d.s.Len()+tokens >= 1000 {
		if err := d.s.Reset(context.Background()); err != nil {
			d.b.Fatal(err)
		}
	}
	d.next(spans)
	began, before := time.Now(), usageNow(d.b)
	for range tokens {
		d.next(spans)
	}
	return cost{float64(time.Since(began)) / tokens, (usageNow(d.b).processorNS() - before.processorNS()) / tokens}
}

func (d *tracedText) next(spans bool) {
	ctx := context.Background()
	if spans {
		var span trace.Span
		ctx, span = d.tp.Tracer("bench").Start(ctx, "token")
		defer span.End()
		d.spans++
	}
	logits, err := d.s.Eval(ctx, []int32{d.token})
	if err != nil {
		d.b.Fatal(err)
	}
	d.token = argmax(logits)
}

// usage is what the process has used of the machine.
type usage struct{ syscall.Rusage }

// usageNow returns what this process has used so far.
func usageNow(tb testing.TB) usage {
	var u usage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u.Rusage); err != nil {
		tb.Fatal(err)
	}
	return u
}

// processorNS returns the processor time.
func (u usage) processorNS() float64 { return float64(u.Utime.Nano() + u.Stime.Nano()) }
