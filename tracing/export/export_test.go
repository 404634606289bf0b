package export

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ctx = context.Background()

func open(t *testing.T, cfg Config) *Exporter {
	t.Helper()
	e, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// line is what the tests read of one exported span.
type line struct {
	Name        string
	SpanContext struct{ TraceID, SpanID string }
	Parent      struct{ SpanID string }
	StartTime   time.Time
	EndTime     time.Time
	Attributes  []struct {
		Key   string
		Value struct{ Value any }
	}
	Resource []struct {
		Key   string
		Value struct{ Value any }
	}
}

func decode(t *testing.T, b []byte) []line {
	t.Helper()
	var out []line
	for text := range bytes.Lines(b) {
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			t.Fatalf("line %d: %v: %s", len(out), err, text)
		}
		out = append(out, l)
	}
	return out
}

func TestStdoutWritesOneObjectALine(t *testing.T) {
	var buf bytes.Buffer
	e := open(t, Config{Mode: Stdout, Stdout: &buf, ServiceName: "svc", ServiceVersion: "v1"})
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	tracer := e.Provider().Tracer("test")
	pctx, parent := tracer.Start(ctx, "parent", trace.WithTimestamp(at))
	_, child := tracer.Start(pctx, "child", trace.WithTimestamp(at), trace.WithAttributes(attribute.Int("n", 42)))
	child.End(trace.WithTimestamp(at.Add(7)))
	parent.End(trace.WithTimestamp(at.Add(9)))
	if err := e.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	got := decode(t, buf.Bytes())
	if len(got) != 2 || got[0].Name != "child" || got[1].Name != "parent" {
		t.Fatalf("got %+v, want child and parent", got)
	}
	c, p := got[0], got[1]
	if c.Parent.SpanID != p.SpanContext.SpanID || c.SpanContext.TraceID != p.SpanContext.TraceID {
		t.Errorf("child %+v does not hang under parent %+v", c, p)
	}
	if !c.StartTime.Equal(at) || !c.EndTime.Equal(at.Add(7)) {
		t.Errorf("child from %v to %v, want the times given", c.StartTime, c.EndTime)
	}
	if len(c.Attributes) != 1 || c.Attributes[0].Key != "n" || c.Attributes[0].Value.Value != 42.0 {
		t.Errorf("attributes %+v, want n=42", c.Attributes)
	}
	res := map[string]any{}
	for _, a := range c.Resource {
		res[a.Key] = a.Value.Value
	}
	if res["service.name"] != "svc" || res["service.version"] != "v1" {
		t.Errorf("resource %v, want svc v1", res)
	}
	if err := e.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	if s := e.Stats(); s != (Stats{Ended: 2, Written: 2}) {
		t.Errorf("stats %+v, want 2 ended and written", s)
	}
}

func TestOff(t *testing.T) {
	for _, mode := range []string{"", Off} {
		e := open(t, Config{Mode: mode})
		_, span := e.Provider().Tracer("test").Start(ctx, "x")
		if span.IsRecording() || span.SpanContext().IsSampled() {
			t.Errorf("mode %q records", mode)
		}
		span.End()
		if err := errors.Join(e.Flush(ctx), e.Shutdown(ctx)); err != nil || e.Stats() != (Stats{}) {
			t.Errorf("mode %q: error %v, stats %+v", mode, err, e.Stats())
		}
	}
}

func TestValidate(t *testing.T) {
	nan := 0.0
	nan /= nan
	for _, tc := range []struct {
		cfg   Config
		wants []string // parts of the error; none for no error
	}{
		{Config{}, nil},
		{Config{Mode: Stdout, Stdout: io.Discard, SampleRatio: 1, QueueSpans: 1}, nil},
		{Config{Mode: "smoke"}, []string{`"smoke"`, "off, stdout, stderr, file=FILE, otlp"}},
		{Config{Mode: "timeline=x.json"}, []string{`"timeline=x.json"`, "stdout"}},
		{Config{Mode: "file"}, []string{`"file"`}},
		{Config{Mode: "file="}, []string{`"file="`}},
		{Config{Mode: "otlp="}, []string{`"otlp="`}},
		{Config{Mode: "stdout=x", Stdout: io.Discard}, []string{`"stdout=x"`}},
		{Config{Mode: "otlp=localhost:4317"}, []string{`"localhost:4317"`, "http://HOST:PORT"}},
		{Config{Mode: Stderr}, []string{"Config.Stderr"}},
		{Config{Mode: Stdout, SampleRatio: 1.5, QueueSpans: -1}, []string{"Config.Stdout", "1.5", "-1"}},
		{Config{SampleRatio: -0.1}, []string{"-0.1"}},
		{Config{SampleRatio: nan}, []string{"NaN"}},
	} {
		e, err := New(tc.cfg)
		if len(tc.wants) == 0 {
			if err != nil {
				t.Errorf("%+v: %v", tc.cfg, err)
			} else if err := e.Shutdown(ctx); err != nil {
				t.Errorf("%+v: %v", tc.cfg, err)
			}
			continue
		}
		for _, want := range tc.wants {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: error %v, want it to name %s", tc.cfg, err, want)
			}
		}
	}
	_, err := New(Config{Mode: "smoke"})
	if me, ok := errors.AsType[*ModeError](err); !ok || me.Mode != "smoke" {
		t.Errorf("got %v, want a ModeError", err)
	}
}

// The tokens of a 61-layer model do not drop: ten of them, of 61*8+2 spans, while the writer writes
// nothing at all.
func TestBurstsOfTokensDoNotDrop(t *testing.T) {
	w := &gatedWriter{release: make(chan struct{})}
	e := open(t, Config{Mode: Stdout, Stdout: w})
	tracer := e.Provider().Tracer("test")
	const tokens, spans = 10, 61*8 + 2
	for range tokens * spans {
		_, s := tracer.Start(ctx, "moeflux.layer", trace.WithNewRoot())
		s.End()
	}
	close(w.release)
	if err := e.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	if s := e.Stats(); s != (Stats{Ended: tokens * spans, Written: tokens * spans}) {
		t.Errorf("stats %+v, want all of %d written", s, tokens*spans)
	}
}

// gatedWriter blocks until it is released.
type gatedWriter struct {
	release chan struct{}
	mu      sync.Mutex
	lines   int
}

func (w *gatedWriter) Write(p []byte) (int, error) {
	<-w.release
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines++
	return len(p), nil
}

// Every span is either written or counted as dropped, also when many goroutines end more than fit.
func TestDropsAreCounted(t *testing.T) {
	for _, queue := range []int{1, 7, 100} {
		t.Run(fmt.Sprintf("queue=%d", queue), func(t *testing.T) {
			w := &gatedWriter{release: make(chan struct{})}
			e := open(t, Config{Mode: Stdout, Stdout: w, QueueSpans: queue})
			const workers, each = 4, 200
			var wg sync.WaitGroup
			for range workers {
				wg.Go(func() {
					for range each {
						_, s := e.Provider().Tracer("test").Start(ctx, "x")
						s.End()
					}
				})
			}
			wg.Wait()
			s := e.Stats()
			if s.Waiting != int64(queue) || s.Dropped != int64(workers*each-queue) || s.Ended != workers*each {
				t.Errorf("with a blocked writer: %+v, want %d waiting and the rest of %d dropped", s, queue, workers*each)
			}
			close(w.release)
			if err := e.Shutdown(ctx); err != nil {
				t.Fatal(err)
			}
			if s = e.Stats(); s.Written != int64(queue) || w.lines != queue || s.Waiting != 0 || s.Ended != s.Written+s.Dropped {
				t.Errorf("at the end: %+v and %d lines, want %d written", s, w.lines, queue)
			}
			_, late := e.Provider().Tracer("test").Start(ctx, "late")
			late.End()
			if err := e.Shutdown(ctx); err != nil {
				t.Errorf("the second Shutdown: %v", err)
			}
		})
	}
}

type brokenWriter struct{ err error }

func (w brokenWriter) Write([]byte) (int, error) { return 0, w.err }

func TestWriterFails(t *testing.T) {
	cause := errors.New("pipe closed")
	e := open(t, Config{Mode: Stdout, Stdout: brokenWriter{cause}})
	for range 3 {
		_, s := e.Provider().Tracer("test").Start(ctx, "x")
		s.End()
	}
	if err := e.Shutdown(ctx); !errors.Is(err, cause) {
		t.Errorf("got %v, want the writer's error", err)
	}
	if s := e.Stats(); s.Failed != 3 || s.Written != 0 || s.Waiting != 0 || !errors.Is(s.FirstErr, cause) {
		t.Errorf("stats %+v, want 3 failed", s)
	}
}

// Shutdown gives up with its context; the writer that hangs ends later.
func TestShutdownGivesUp(t *testing.T) {
	w := &gatedWriter{release: make(chan struct{})}
	e := open(t, Config{Mode: Stdout, Stdout: w})
	_, s := e.Provider().Tracer("test").Start(ctx, "x")
	s.End()
	short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	if err := e.Shutdown(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the deadline", err)
	}
	if s := e.Stats(); s.Waiting != 1 {
		t.Errorf("stats %+v, want 1 waiting", s)
	}
	close(w.release)
}

func TestSampling(t *testing.T) {
	var buf bytes.Buffer
	e := open(t, Config{Mode: Stdout, Stdout: &buf, SampleRatio: 0.25})
	tracer := e.Provider().Tracer("test")
	const roots = 4000
	for range roots {
		_, s := tracer.Start(ctx, "x")
		s.End()
	}
	n := e.Stats().Ended
	// 1000 expected, standard deviation 27: 6 of them are a chance of 1 in 5e8.
	if n < 1000-170 || n > 1000+170 {
		t.Errorf("%d of %d roots were recorded at a ratio of 0.25", n, roots)
	}
	// A caller's span decides whatever the ratio is.
	for _, sampled := range []bool{true, false} {
		cfg := trace.SpanContextConfig{TraceID: [16]byte{15: 1}, SpanID: [8]byte{1}, Remote: true}
		if sampled {
			cfg.TraceID[0], cfg.TraceFlags = 0xff, trace.FlagsSampled
		}
		_, s := tracer.Start(trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(cfg)), "x")
		if s.IsRecording() != sampled {
			t.Errorf("caller sampled: %v, recorded: %v", sampled, s.IsRecording())
		}
		s.End()
	}
	if err := e.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
}

func BenchmarkSpan(b *testing.B) {
	for _, mode := range []string{Off, Stdout} {
		b.Run("mode="+mode, func(b *testing.B) {
			e, err := New(Config{Mode: mode, Stdout: io.Discard})
			if err != nil {
				b.Fatal(err)
			}
			tracer := e.Provider().Tracer("bench")
			b.ReportAllocs()
			for b.Loop() {
				_, s := tracer.Start(ctx, "x")
				s.End()
			}
			b.StopTimer()
			if err := e.Shutdown(ctx); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(e.Stats().Dropped)/float64(b.N), "drops/op")
		})
	}
}
