package moeflux

import (
	"context"
	"errors"
	"testing"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

// tracedDemo runs requests on a traced demo model, and returns the spans after its end.
func tracedDemo(t *testing.T, sampler sdktrace.Sampler, run func(m *Model, tracer trace.Tracer)) (all tracetest.SpanStubs, name string) {
	t.Helper()
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans), sdktrace.WithSampler(sampler))
	dir, err := DemoDir(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	m, err := Open(t.Context(), dir, Options{Device: "host", Config: Config{Tracer: provider}})
	if err != nil {
		t.Fatal(err)
	}
	run(m, provider.Tracer("test"))
	if err := m.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	return spans.GetSpans(), m.Info().Name
}

func named(spans tracetest.SpanStubs, name string) (of []tracetest.SpanStub) {
	for _, s := range spans {
		if s.Name == name {
			of = append(of, s)
		}
	}
	return of
}

func attributesOf(s tracetest.SpanStub) map[string]any {
	all := map[string]any{}
	for _, a := range s.Attributes {
		all[string(a.Key)] = a.Value.AsInterface()
	}
	return all
}

// A request is one span below that of its caller, by the conventions for generative AI, from its
// arrival to its end; what it asks of the engine hangs below it, and its account is that of Usage.
func TestARequestIsASpan(t *testing.T) {
	ctx := context.Background()
	var end *End
	var root trace.Span
	spans, name := tracedDemo(t, sdktrace.AlwaysSample(), func(m *Model, tracer trace.Tracer) {
		ctx, root = tracer.Start(ctx, "mine")
		var err error
		end, err = m.Generate(ctx, Request{Prompt: "package main", MaxTokens: 5, Sampling: Sampling{Temperature: new(0.0)}, Stop: []string{"never said"}}).Wait()
		if err != nil {
			t.Fatal(err)
		}
		root.End()
	})
	calls := named(spans, "text_completion "+name)
	if len(calls) != 1 {
		t.Fatalf("%d calls, want 1", len(calls))
	}
	c := calls[0]
	if c.Parent.SpanID() != root.SpanContext().SpanID() || c.SpanContext.TraceID() != root.SpanContext().TraceID() {
		t.Error("the call does not hang below its caller's span")
	}
	u := end.Usage
	for key, want := range map[string]any{
		"gen_ai.operation.name": "text_completion", "gen_ai.provider.name": "moeflux", "gen_ai.request.model": name,
		"gen_ai.request.max_tokens": int64(5), "gen_ai.request.temperature": 0.0, "gen_ai.usage.input_tokens": int64(u.PromptTokens),
		"gen_ai.usage.cache_read.input_tokens": int64(u.ReusedTokens), "gen_ai.usage.output_tokens": int64(u.NewTokens),
		"moeflux.device_ns": u.Account.DeviceNS, "moeflux.picks_hit": u.Account.Hit, "moeflux.queue_ns": u.Account.QueueNS,
	} {
		if got := attributesOf(c)[key]; got != want {
			t.Errorf("%s is %v, want %v", key, got, want)
		}
	}
	if got, _ := attributesOf(c)["gen_ai.response.finish_reasons"].([]string); len(got) != 1 || got[0] != string(end.Reason) {
		t.Errorf("finish reasons %v, want %s", got, end.Reason)
	}
	first, _ := attributesOf(c)["gen_ai.response.time_to_first_chunk"].(float64)
	if first <= 0 || first > c.EndTime.Sub(c.StartTime).Seconds() {
		t.Errorf("the first token came after %v s of %v", first, c.EndTime.Sub(c.StartTime))
	}
	var picks, rows int64
	evals := named(spans, "moeflux.eval")
	for _, e := range evals {
		if e.Parent.SpanID() != c.SpanContext.SpanID() {
			t.Error("an eval does not hang below the call")
		}
		if e.StartTime.Before(c.StartTime) || e.EndTime.After(c.EndTime) {
			t.Errorf("an eval from %v to %v is not within the call from %v to %v", e.StartTime, e.EndTime, c.StartTime, c.EndTime)
		}
		picks += attributesOf(e)["moeflux.picks_hit"].(int64)
		rows += attributesOf(e)["moeflux.rows"].(int64)
	}
	if picks != u.Account.Hit || rows != u.Account.Read {
		t.Errorf("the evals have %d picks and %d rows, the account %d and %d", picks, rows, u.Account.Hit, u.Account.Read)
	}
}

// A conversation without a caller's span is a trace of its own if the provider's sampler wants it,
// and a request that fails says why.
func TestCallsWithoutACaller(t *testing.T) {
	ask := func(m *Model, _ trace.Tracer) {
		messages := []Message{{Role: User, Content: "hello"}}
		if _, err := m.Chat(context.Background(), Request{Messages: messages, MaxTokens: 2}).Wait(); err != nil {
			t.Fatal(err)
		}
		gone, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := m.Chat(gone, Request{Messages: messages, MaxTokens: 2}).Wait(); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	spans, name := tracedDemo(t, sdktrace.AlwaysSample(), ask)
	calls := named(spans, "chat "+name)
	if len(calls) != 2 || calls[0].Parent.IsValid() || calls[0].SpanContext.TraceID() == calls[1].SpanContext.TraceID() {
		t.Fatalf("%d calls, want 2 traces of their own", len(calls))
	}
	if calls[0].Status.Code == codes.Error {
		calls[0], calls[1] = calls[1], calls[0]
	}
	if attributesOf(calls[1])["error.type"] != "cancelled" || calls[1].Status.Code != codes.Error || calls[0].Status.Code != codes.Unset {
		t.Errorf("statuses %v and %v, want that of the second to be an error", calls[0].Status, calls[1].Status)
	}
	if spans, _ := tracedDemo(t, sdktrace.NeverSample(), ask); len(spans) > 0 {
		t.Errorf("%d spans, and the sampler wants none", len(spans))
	}
	untold, _ := tracedDemo(t, sdktrace.AlwaysSample(), func(m *Model, _ trace.Tracer) {
		away := trace.ContextWithSpanContext(context.Background(), trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}}))
		if _, err := m.Generate(away, Request{Prompt: "x", MaxTokens: 2}).Wait(); err != nil {
			t.Fatal(err)
		}
	})
	if len(untold) > 0 {
		t.Errorf("%d spans of a request whose caller's span is not sampled", len(untold))
	}
}
