package server

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"regexp"
	"strings"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/internal/scripted"
	"github.com/moeflux/moeflux-actor/internal/testenv"
	"github.com/moeflux/moeflux-actor/server/access"
	"github.com/moeflux/moeflux-actor/server/api"
	"github.com/moeflux/moeflux-actor/server/models"
	"github.com/moeflux/moeflux-actor/tracing/export"
)

// demoModel opens the demo model with a quarter of its experts in memory.
func demoModel(t testing.TB, change ...func(*moeflux.Config)) *moeflux.Model {
	t.Helper()
	dir, err := moeflux.DemoDir(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	o := moeflux.Options{Threads: 1}
	o.Config.ExpertIO, o.Config.ExpertMemory = "buffered", 3<<20
	for _, c := range change {
		c(&o.Config)
	}
	m, err := moeflux.Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return m
}

// watched serves a model with its engine, figures and all.
func watched(t *testing.T, m *moeflux.Model, change ...func(*Options)) *Server {
	t.Helper()
	counts, err := export.NewMetrics(export.MetricsConfig{})
	if err != nil {
		t.Fatal(err)
	}
	o := Options{
		Models: []models.Served{{Name: "demo", Model: m, Engine: func() models.Engine { return m.Engine() }}},
		Meters: counts.Provider(), Figures: counts,
	}
	for _, c := range change {
		c(&o)
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The figures of requests are the sums of what each was told, and those of the engine what it says
// itself, while experts stream.
func TestFiguresOfTheDemo(t *testing.T) {
	m := demoModel(t)
	s := watched(t, m)
	var sum api.Account
	var prompts, cached, tokens float64
	for _, text := range []string{"package main", "package main // and more of it, so that some is known", "type T struct"} {
		w := ask(t.Context(), s, "/v1/completions", fmt.Sprintf(`{"prompt":%q,"max_tokens":12,"temperature":0}`, text)) // a drawn text may end at once
		var reply struct{ Usage api.Usage }
		if err := json.Unmarshal(w.Body.Bytes(), &reply); err != nil || w.Code != 200 {
			t.Fatal(w.Code, w.Body, err)
		}
		u := &reply.Usage
		prompts, cached, tokens = prompts+float64(u.PromptTokens), cached+float64(u.Prompt.Cached), tokens+float64(u.CompletionTokens)
		a := u.Account
		sum.QueueMS, sum.DeviceMS, sum.DiskWaitMS = sum.QueueMS+a.QueueMS, sum.DeviceMS+a.DeviceMS, sum.DiskWaitMS+a.DiskWaitMS
		sum.Hit, sum.Late, sum.Missed, sum.DiskBytes = sum.Hit+a.Hit, sum.Late+a.Late, sum.Missed+a.Missed, sum.DiskBytes+a.DiskBytes
		if a.Exactness != m.Info().Exactness || a.Exactness == "" {
			t.Errorf("the answer says that it is %q, and the engine %q", a.Exactness, m.Info().Exactness)
		}
		timed := timingOf(t, w.Header().Get("Server-Timing"))
		for name, want := range map[string]float64{"queue": a.QueueMS, "device": a.DeviceMS, "disk": a.DiskWaitMS} {
			if math.Abs(timed[name]-want) > .001 {
				t.Errorf("Server-Timing says %s %v, and the account %v", name, timed[name], want)
			}
		}
		if timed["total"] < timed["prompt"]+timed["tokens"] || timed["prompt"] <= 0 || timed["tokens"] <= 0 {
			t.Errorf("Server-Timing is %v", timed)
		}
	}
	got := figuresOf(t, s)
	stats, err := m.Engine().Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if sum.Missed == 0 || cached == 0 || stats.Reads.Bytes == 0 {
		t.Fatalf("nothing was read or known: %+v, %v", sum, cached)
	}
	of := `{key="",model_name="demo"}`
	found := func(where string) string { return `{found="` + where + `",key="",model_name="demo"}` }
	for name, want := range map[string]float64{
		"moeflux_prompt_tokens_total" + of: prompts, "moeflux_prefix_cache_hits_total" + of: cached, "moeflux_generation_tokens_total" + of: tokens,
		"moeflux_request_device_time_seconds_total" + of: sum.DeviceMS / 1e3, "moeflux_request_disk_wait_seconds_total" + of: sum.DiskWaitMS / 1e3,
		"moeflux_request_disk_bytes_total" + of: float64(sum.DiskBytes), "moeflux_request_queue_time_seconds_sum" + of: sum.QueueMS / 1e3,
		"moeflux_request_expert_picks_total" + found("hit"): float64(sum.Hit), "moeflux_request_expert_picks_total" + found("late"): float64(sum.Late),
		"moeflux_request_expert_picks_total" + found("missed"): float64(sum.Missed),
		`moeflux_engine_rows_total{model_name="demo"}`:         float64(stats.Rows), `moeflux_slots_in_use{model_name="demo"}`: float64(stats.SlotsUsed),
		`moeflux_num_requests_running{model_name="demo"}`: 0,
	} {
		if g, ok := got[name]; !ok || math.Abs(g-want) > 1e-6*math.Abs(want) {
			t.Errorf("%s is %v (%v), want %v", name, g, ok, want)
		}
	}
	eventually(t, "all reads have ended, and the figures say so", func() bool {
		return figuresOf(t, s)[`moeflux_read_bytes_in_flight{model_name="demo"}`] == 0
	})
	info := m.Info()
	read, hits := 0.0, 0.0
	for _, l := range stats.Layers {
		read, hits = read+float64(l.BytesRead), hits+float64(l.Hits)
	}
	if got[`moeflux_expert_hits_total{model_name="demo"}`] != hits || got[`moeflux_slots{model_name="demo"}`] != float64(info.Slots) || read < float64(sum.DiskBytes) {
		t.Errorf("hits %v, slots %v, bytes %v", hits, info.Slots, read)
	}
}

// timingOf reads a header Server-Timing, in milliseconds.
func timingOf(t *testing.T, header string) map[string]float64 {
	t.Helper()
	of := make(map[string]float64)
	for part := range strings.SplitSeq(header, ", ") {
		name, dur, _ := strings.Cut(part, ";dur=")
		var v float64
		if _, err := fmt.Sscanf(dur, "%f", &v); err != nil {
			t.Fatalf("Server-Timing is %q: %v", header, err)
		}
		of[name] = v
	}
	return of
}

// A stream has its Server-Timing behind it, as a trailer.
func TestTimingOfStreams(t *testing.T) {
	resp := send(t, serving(t, new(scripted.Model)).URL+"/v1/chat/completions", strings.Replace(hello, `{`, `{"stream":true,`, 1))
	defer resp.Body.Close()
	if events(t, resp.Body); resp.Trailer.Get("Server-Timing") == "" || timingOf(t, resp.Trailer.Get("Server-Timing"))["total"] <= 0 {
		t.Errorf("the trailer is %v", resp.Trailer)
	}
}

// traced returns a provider and what it has recorded.
func traced() (*sdktrace.TracerProvider, *tracetest.SpanRecorder) {
	spans := tracetest.NewSpanRecorder()
	return sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)), spans
}

// The span of a request hangs below the client's, and the model's call below that.
func TestTraceParent(t *testing.T) {
	provider, spans := traced()
	m := demoModel(t, func(c *moeflux.Config) { c.Tracer = provider })
	s := watched(t, m, func(o *Options) { o.Tracer = provider })
	const id, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	named := func(name string) (found []sdktrace.ReadOnlySpan) {
		for _, span := range spans.Ended() {
			if span.Name() == name {
				found = append(found, span)
			}
		}
		return found
	}
	const body = `{"prompt":"package main","max_tokens":2}`
	w := ask(t.Context(), s, "/v1/completions", body, "Traceparent", "00-"+id+"-"+parent+"-01")
	if got := w.Header().Get("X-Trace-Id"); got != id {
		t.Fatalf("the trace is %q", got)
	}
	route, call := "POST /v1/completions", "text_completion "+m.Info().Name
	eventually(t, "both spans have ended", func() bool { return len(named(route)) == 1 && len(named(call)) == 1 })
	ours, below := named(route)[0], named(call)[0]
	switch {
	case ours.SpanContext().TraceID().String() != id || below.SpanContext().TraceID() != ours.SpanContext().TraceID():
		t.Errorf("the traces are %v and %v", ours.SpanContext().TraceID(), below.SpanContext().TraceID())
	case ours.Parent().SpanID().String() != parent || below.Parent().SpanID() != ours.SpanContext().SpanID():
		t.Errorf("the request is below %v, and the call below %v", ours.Parent().SpanID(), below.Parent().SpanID())
	case ours.SpanKind() != trace.SpanKindServer:
		t.Errorf("its kind is %v", ours.SpanKind())
	}
	attrs := fmt.Sprint(ours.Attributes())
	for _, part := range []string{"http.route", "/v1/completions", "http.response.status_code", "200", w.Header().Get("X-Request-Id")} {
		if !strings.Contains(attrs, part) {
			t.Errorf("%q is not among %s", part, attrs)
		}
	}
	// What is not to be sampled makes no spans, and what is not a trace begins one.
	w = ask(t.Context(), s, "/v1/completions", body, "Traceparent", "00-"+strings.Repeat("ab", 16)+"-"+parent+"-00")
	if got := w.Header().Get("X-Trace-Id"); got != strings.Repeat("ab", 16) {
		t.Errorf("the trace that is not sampled is %q", got)
	}
	w = ask(t.Context(), s, "/v1/completions", body, "Traceparent", "nonsense")
	if got := w.Header().Get("X-Trace-Id"); !regexp.MustCompile("^[0-9a-f]{32}$").MatchString(got) || got == id {
		t.Errorf("the trace of its own is %q", got)
	}
	eventually(t, "the last call has ended", func() bool { return len(named(call)) == 2 })
	if n := len(named(route)); n != 2 {
		t.Errorf("%d requests have spans", n)
	}
}

// A server without a tracer passes the client's trace on.
func TestTracePassesOn(t *testing.T) {
	var got trace.SpanContext
	m := &scripted.Model{Say: func(ctx context.Context, r moeflux.Request) moeflux.Events {
		got = trace.SpanContextFromContext(ctx)
		return scripted.Echo(ctx, r)
	}}
	s := counted(t, m)
	w := ask(t.Context(), s, "/v1/chat/completions", hello, "Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	if got.SpanID().String() != "00f067aa0ba902b7" || !got.IsSampled() || w.Header().Get("X-Trace-Id") != got.TraceID().String() {
		t.Errorf("the model has %v, the header says %q", got, w.Header().Get("X-Trace-Id"))
	}
	if w = ask(t.Context(), s, "/v1/chat/completions", hello); w.Header().Get("X-Trace-Id") != "" {
		t.Error("there is a trace that nobody records")
	}
}

// The log has a line for each request with its figures, and no word of what was asked or answered,
// in whatever way a request ends.
func TestAccessLog(t *testing.T) {
	var log testenv.Log
	m := demoModel(t, func(c *moeflux.Config) {
		c.Logger = slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	const secret = "zanzibar"
	s := watched(t, m, func(o *Options) {
		o.Logger = slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		o.Keys = []access.Key{{Secret: "sk-first-first", Name: "me"}}
	})
	chat := fmt.Sprintf(`"messages":[{"role":"user","content":"func %s() error {"}]`, secret)
	var said []string
	for _, tc := range []struct{ path, body string }{
		{"/v1/completions", fmt.Sprintf(`{"prompt":"package main\n\nfunc %s","temperature":0,"max_tokens":6}`, secret)},
		{"/v1/chat/completions", `{"max_tokens":6,` + chat + `}`},
		{"/v1/chat/completions", `{"max_tokens":6,"stream":true,` + chat + `}`},
		{"/v1/messages", `{"model":"demo","max_tokens":6,` + chat + `}`},
		{"/v1/responses", fmt.Sprintf(`{"max_output_tokens":6,"input":"func %s"}`, secret)},
		{"/v1/completions", fmt.Sprintf(`{"prompt":"func %s","max_tokens":6,"stop":["%s"]}`, secret, secret)},
		{"/v1/completions", fmt.Sprintf(`{"prompt":"func %s","temperature":"%s"}`, secret, secret)},
		{"/v1/completions", fmt.Sprintf(`{"prompt":"%s","model":"%s"}`, secret, secret)},
		{"/v1/completions", `{"prompt":"` + strings.Repeat(secret+" ", 5000) + `"}`},
		{"/v1/completions", fmt.Sprintf(`{"prompt":"%s","grammar":"root ::= %s"}`, secret, secret)},
		{"/v1/chat/completions", fmt.Sprintf(`{"messages":[{"role":"%s","content":"%s"}]}`, secret, secret)},
		{"/v1/completions", secret},
		{"/tokenize", fmt.Sprintf(`{"content":"%s"}`, secret)},
	} {
		w := ask(t.Context(), s, tc.path, tc.body, "X-Api-Key", "sk-first-first", "Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
		var reply struct{ Choices []struct{ Text string } }
		if json.Unmarshal(w.Body.Bytes(), &reply) == nil && len(reply.Choices) > 0 && len(reply.Choices[0].Text) > 4 {
			said = append(said, reply.Choices[0].Text)
		}
		if !strings.Contains(log.String(), `"id":"`+w.Header().Get("X-Request-Id")+`"`) {
			t.Errorf("%s %.60s has no line in the log", tc.path, tc.body)
		}
	}
	if len(said) == 0 {
		t.Error("no answer is there to be looked for")
	}
	for _, text := range append(said, secret, "sk-first") {
		quoted, _ := json.Marshal(text)
		if strings.Contains(log.String(), strings.Trim(string(quoted), `"`)) {
			t.Errorf("the log has %q:\n%s", text, log.String())
		}
	}
	var first map[string]any
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, `"msg":"request"`) && first == nil {
			if err := json.Unmarshal([]byte(line), &first); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, want := range map[string]any{
		"method": http.MethodPost, "path": "/v1/completions", "status": 200.0, "key": "me", "model": "demo", "tokens": 6.0, "finish": "length",
		"trace": "4bf92f3577b34da6a3ce929d0e0e4736", "cached_tokens": 0.0,
	} {
		if first[name] != want {
			t.Errorf("%s is %v, want %v, in %v", name, first[name], want, first)
		}
	}
	if first["prompt_tokens"].(float64) < 5 || first["first_token_ms"] == nil || first["queue_ms"] == nil {
		t.Errorf("the figures are %v", first)
	}
}
