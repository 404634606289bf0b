package actors_test

import (
	"context"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
)

// TestTrace evaluates a prompt of two chunks and a token under a caller's span, with a neighbour
// that is not traced, and wants one tree a chunk: every layer once, with its stages inside, all in
// the caller's trace.
func TestTrace(t *testing.T) {
	rec := tracetest.NewInMemoryExporter()
	tp := sdktrace.NewTracerProvider(sdktrace.WithSyncer(rec))
	e, err := actors.Open(context.Background(), actors.Config{
		Model: fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0), Device: device(t, 2), ExpertIO: actors.ExpertIOBuffered,
		ExpertMemory: 1 << 20, ChunkRows: 8, Tracer: tp,
	})
	if err != nil {
		t.Fatal(err)
	}
	quiet, s := sequence(t, e), sequence(t, e)
	eval(t, quiet, 1, 2, 3)
	ctx, root := tp.Tracer("test").Start(context.Background(), "request")
	for _, tokens := range [][]int32{prompt(1, 13, 512), {5}} {
		if _, err := s.Eval(ctx, tokens); err != nil {
			t.Fatal(err)
		}
	}
	root.End()
	eval(t, quiet, 4)
	if err := e.Close(context.Background()); err != nil {
		t.Fatal(err)
	}

	byID := make(map[trace.SpanID]tracetest.SpanStub)
	children := make(map[trace.SpanID]map[string]int)
	spans := rec.GetSpans()
	for _, sp := range spans {
		byID[sp.SpanContext.SpanID()] = sp
		if sp.SpanContext.TraceID() != root.SpanContext().TraceID() {
			t.Errorf("span %s belongs to another trace", sp.Name)
		}
		if children[sp.Parent.SpanID()] == nil {
			children[sp.Parent.SpanID()] = make(map[string]int)
		}
		children[sp.Parent.SpanID()][sp.Name]++
	}
	if n := children[root.SpanContext().SpanID()]["moeflux.eval"]; n != 3 {
		t.Errorf("%d moeflux.eval under the caller's span, want 3: two chunks and a token", n)
	}
	layers := len(e.Model().Layers)
	for _, sp := range spans {
		kids := children[sp.SpanContext.SpanID()]
		switch sp.Name {
		case "moeflux.eval":
			if kids["moeflux.layer"] != layers {
				t.Errorf("%d layers under an eval, want %d", kids["moeflux.layer"], layers)
			}
		case "moeflux.layer":
			for _, name := range []string{"moeflux.mix", "moeflux.route", "moeflux.expert_io"} {
				if kids[name] != 1 {
					t.Errorf("%d %s under a layer, want 1 (has %v)", kids[name], name, kids)
				}
			}
			if kids["moeflux.experts"] == 0 || kids["moeflux.experts"] != kids["moeflux.retire"] {
				t.Errorf("a layer has %v, want as many moeflux.retire as moeflux.experts", kids)
			}
		}
		if parent, ok := byID[sp.Parent.SpanID()]; ok && sp.StartTime.Before(parent.StartTime) {
			t.Errorf("%s begins %v before its parent %s", sp.Name, parent.StartTime.Sub(sp.StartTime), parent.Name)
		}
		if sp.EndTime.Before(sp.StartTime) {
			t.Errorf("%s ends before it begins", sp.Name)
		}
	}
	t.Logf("%d spans", len(spans))
}
