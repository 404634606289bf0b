package tracing

import (
	"syscall"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/moeflux/moeflux-actor/tracing/record"
)

// BenchmarkEmit makes the spans of a decoded token of 48 layers with four reads each, into the
// SDK's batching processor: the processor time that a token's spans take, beside its own work.
func BenchmarkEmit(b *testing.B) {
	tp := sdktrace.NewTracerProvider(sdktrace.WithBatcher(tracetest.NewNoopExporter(), sdktrace.WithMaxQueueSize(1<<16)))
	defer tp.Shutdown(b.Context())
	r := &rig{log: record.NewLog(record.DefaultBytes)}
	r.e = NewEmitter(tp, r.log, About{Epoch: epoch, LayerKinds: make([]string, 48), SlotBytes: 1000})
	cpu := func() int64 {
		var u syscall.Rusage
		syscall.Getrusage(syscall.RUSAGE_SELF, &u)
		return u.Utime.Nano() + u.Stime.Nano()
	}
	began := cpu()
	for b.Loop() {
		step := r.form(1, 1)
		at := r.layers(step, 1, 48, 4)
		r.end(step, at, 1)
		r.e.Poll(0, true)
	}
	b.ReportMetric(float64(cpu()-began)/float64(b.N)/1e3, "cpu-µs/token")
}
