package actors_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/tracing"
)

// TestTrace evaluates a prompt of two steps and a token under a caller's span, with a neighbour
// that is not traced, and wants one tree a request: its steps, in each every layer once, with its
// stages inside, all in the caller's trace. Every attribute is in the table.
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
	if n := children[root.SpanContext().SpanID()]["moeflux.eval"]; n != 2 {
		t.Errorf("%d moeflux.eval under the caller's span, want 2: a prompt and a token", n)
	}
	layers := len(e.Model().Layers)
	names := make(map[string]int)
	for _, sp := range spans {
		names[sp.Name]++
		checkAttributes(t, sp)
		kids := children[sp.SpanContext.SpanID()]
		switch sp.Name {
		case "moeflux.eval":
			want := 1
			if attr(sp, "rows") == 13 {
				want = 2
			}
			if kids["moeflux.step"] != want {
				t.Errorf("%d steps under an eval of %d rows, want %d", kids["moeflux.step"], attr(sp, "rows"), want)
			}
		case "moeflux.step":
			if kids["moeflux.layer"] != layers {
				t.Errorf("%d layers under a step, want %d", kids["moeflux.layer"], layers)
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
	for _, name := range []string{"moeflux.read", "moeflux.prefetch", "moeflux.head"} {
		if names[name] == 0 {
			t.Errorf("no %s among %v", name, names)
		}
	}
	t.Log(names)
}

// checkAttributes wants every attribute of a span to be in the table that the documentation prints,
// for spans of this name.
func checkAttributes(t *testing.T, s tracetest.SpanStub) {
	t.Helper()
	listed := func(key attribute.Key) bool {
		for _, a := range tracing.Attributes {
			if a.Key == key {
				return slices.Contains(a.Spans, s.Name) || !strings.HasPrefix(s.Name, "moeflux.") && slices.Contains(a.Spans, "OPERATION MODEL")
			}
		}
		return false
	}
	for _, a := range s.Attributes {
		if !listed(a.Key) {
			t.Errorf("a span %s has %s, which the table does not say", s.Name, a.Key)
		}
	}
}
