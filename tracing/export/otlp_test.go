package export

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/moeflux/moeflux-actor/internal/testenv"
)

// standIn is an OTLP collector over HTTP whose answer the test decides. The one that this cannot
// show to be right, a collector's own receiver, is in internal/collectortest.
type standIn struct {
	*httptest.Server
	mu     sync.Mutex
	spans  []*tracepb.Span
	header http.Header
	about  map[string]string // the resource
}

func newStandIn(t *testing.T, answer func(w http.ResponseWriter, r *http.Request) (take bool)) *standIn {
	c := new(standIn)
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || !answer(w, r) {
			return
		}
		var m collectorpb.ExportTraceServiceRequest
		if err := proto.Unmarshal(body, &m); err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("a request to %s: %v", r.URL, err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.header, c.about = r.Header, map[string]string{}
		for _, rs := range m.ResourceSpans {
			for _, a := range rs.Resource.Attributes {
				c.about[a.Key] = a.Value.GetStringValue()
			}
			for _, ss := range rs.ScopeSpans {
				c.spans = append(c.spans, ss.Spans...)
			}
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(c.Close)
	return c
}

func take(http.ResponseWriter, *http.Request) bool { return true }

// emit ends n spans and returns how long that took.
func emit(e *Exporter, n int) time.Duration {
	began := time.Now()
	tracer := e.Provider().Tracer("test")
	for range n {
		_, s := tracer.Start(ctx, "x")
		s.End()
	}
	return time.Since(began)
}

// shut gives the exporter some time to end, and returns its figures.
func shut(e *Exporter, patience time.Duration) (Stats, error) {
	limit, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := e.Shutdown(limit)
	return e.Stats(), err
}

func TestOTLPOverHTTP(t *testing.T) {
	c := newStandIn(t, take)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=secret%20one")
	t.Setenv("OTEL_SERVICE_NAME", "from the environment")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
	for _, named := range []bool{true, false} {
		cfg := Config{Mode: "otlp=" + c.URL, ServiceName: "program", ServiceVersion: "v1"}
		if !named {
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
			cfg.Mode = OTLP
		}
		c.spans = nil
		e := open(t, cfg)
		emit(e, 3)
		if s, err := shut(e, time.Minute); err != nil || s != (Stats{Ended: 3, Written: 3}) || s.Lost() != "" {
			t.Errorf("%+v, %v, want 3 spans written", s, err)
		}
		if len(c.spans) != 3 || c.spans[0].Name != "x" || c.header.Get("api-key") != "secret one" {
			t.Errorf("the collector got %d spans with header %q", len(c.spans), c.header.Get("api-key"))
		}
		if c.about["service.name"] != "from the environment" || c.about["service.version"] != "v1" ||
			c.about["deployment.environment.name"] != "test" || c.about["telemetry.sdk.language"] != "go" {
			t.Errorf("the resource is %v", c.about)
		}
	}
}

// A collector that is busy gets the batch again when it said, and nothing is lost.
func TestOTLPIsTriedAgain(t *testing.T) {
	var asked atomic.Int32
	c := newStandIn(t, func(w http.ResponseWriter, _ *http.Request) bool {
		if asked.Add(1) == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			return false
		}
		return true
	})
	e := open(t, Config{Mode: "otlp=" + c.URL})
	emit(e, 5)
	began := time.Now()
	if s, err := shut(e, time.Minute); err != nil || s.Written != 5 || len(c.spans) != 5 || asked.Load() != 2 {
		t.Errorf("%+v, %v after %d requests, want 5 spans written with the second", s, err, asked.Load())
	}
	if d := time.Since(began); d < time.Second {
		t.Errorf("the batch was sent again after %v, and the collector asked for a second", d)
	}
}

// A collector that refuses, asks to come back in an hour, dies amid a batch, or is not there costs
// spans, which are counted; the log says it once.
func TestOTLPFails(t *testing.T) {
	for _, tc := range []struct {
		name   string
		answer func(w http.ResponseWriter, r *http.Request) bool
		why    string
	}{
		{"refuses", func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusForbidden); return false }, "403 Forbidden"},
		{"come back in an hour", func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusTooManyRequests)
			return false
		}, "max retry time"},
		{"dies", func(w http.ResponseWriter, r *http.Request) bool {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return false
			}
			conn.Close()
			return false
		}, "EOF"},
		{"takes a part", func(w http.ResponseWriter, r *http.Request) bool {
			answer, err := proto.Marshal(&collectorpb.ExportTraceServiceResponse{PartialSuccess: &collectorpb.ExportTracePartialSuccess{RejectedSpans: 2, ErrorMessage: "too many"}})
			if err != nil {
				t.Error(err)
			}
			w.Header().Set("Content-Type", "application/x-protobuf")
			w.Write(answer)
			return false
		}, "2 spans rejected"},
		{"is not there", nil, "refused"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newStandIn(t, tc.answer)
			if tc.answer == nil {
				c.Close()
			}
			var log testenv.Log
			const n = 3*batchSpans + 1
			e := open(t, Config{Mode: "otlp=" + c.URL, Logger: log.Logger()})
			if d := emit(e, n); d > 10*time.Second {
				t.Errorf("%d spans took %v", n, d)
			}
			s, err := shut(e, time.Minute)
			if s.Ended != n || s.Failed != n || s.Written+s.Dropped+s.Waiting != 0 {
				t.Errorf("figures %+v, want %d failed", s, n)
			}
			if err == nil || !strings.Contains(err.Error(), tc.why) || !strings.Contains(s.Lost(), tc.why) {
				t.Errorf("%v, %q, want them to say %q", err, s.Lost(), tc.why)
			}
			if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, tc.why) {
				t.Errorf("the log says %q, want one line with %q", got, tc.why)
			}
		})
	}
}

// A collector that takes requests and does not answer fills the queue. Whoever ends spans does not
// wait, what does not fit is counted and said once, and Shutdown gives up in time.
func TestOTLPHangs(t *testing.T) {
	hang, reached := make(chan struct{}), make(chan struct{}, 100)
	c := newStandIn(t, func(_ http.ResponseWriter, r *http.Request) bool {
		reached <- struct{}{}
		select {
		case <-hang:
		case <-r.Context().Done():
		}
		return false
	})
	defer close(hang)
	var log testenv.Log
	e := open(t, Config{Mode: "otlp=" + c.URL, QueueSpans: 100, Logger: log.Logger()})
	emit(e, 100)
	<-reached
	if d := emit(e, 1000); d > 5*time.Second {
		t.Errorf("1000 spans took %v while the collector hung", d)
	}
	began := time.Now()
	s, err := shut(e, 50*time.Millisecond)
	if d := time.Since(began); d > 5*time.Second || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Shutdown took %v and said %v", d, err)
	}
	if s.Ended != 1100 || s.Dropped != 1000 || s.Waiting+s.Failed != 100 {
		t.Errorf("figures %+v, want 1000 dropped and 100 not sent", s)
	}
	if got := log.String(); strings.Count(got, "some are dropped") != 1 || strings.Count(got, "\n") > 2 {
		t.Errorf("the log says %q, want it to tell of the drops once", got)
	}
}

// Variables that the exporters would ignore are refused, by name and without their secrets.
func TestEnvironmentIsChecked(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ key, value, want string }{
		{"PROTOCOL", "http/xml", "grpc, http/protobuf, http/json"},
		{"COMPRESSION", "zstd", "gzip"},
		{"ENDPOINT", "localhost:4318", "http://HOST:PORT"},
		{"TIMEOUT", "10s", "milliseconds"},
		{"TIMEOUT", "0", "milliseconds"},
		{"HEADERS", "api-key:hidden", "name=value"},
		{"CERTIFICATE", filepath.Join(t.TempDir(), "none.pem"), "no such file"},
		{"CERTIFICATE", empty, "no certificate"},
		{"CLIENT_KEY", filepath.Join(t.TempDir(), "none.pem"), "no such file"},
	} {
		for _, prefix := range []string{"OTEL_EXPORTER_OTLP_", "OTEL_EXPORTER_OTLP_TRACES_"} {
			t.Run(prefix+tc.key+"="+filepath.Base(tc.value), func(t *testing.T) {
				t.Setenv(prefix+tc.key, tc.value)
				_, err := New(Config{Mode: OTLP})
				ee, ok := errors.AsType[*EnvironmentError](err)
				if !ok || ee.Variable != prefix+tc.key || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "hidden") {
					t.Errorf("got %v, want an EnvironmentError that says %q", err, tc.want)
				}
			})
		}
	}
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "no equals sign")
	if _, err := New(Config{Mode: Stdout, Stdout: io.Discard}); errors.As(err, new(*EnvironmentError)) != true {
		t.Errorf("got %v, want an EnvironmentError", err)
	}
}

func TestFindCollector(t *testing.T) {
	for _, tc := range []struct{ protocol, to, wantProtocol, wantURL string }{
		{"", "", "http/protobuf", "http://localhost:4318/v1/traces"},
		{"grpc", "", "grpc", "http://localhost:4317"},
		{"http/json", "", "http/json", "http://localhost:4318/v1/traces"},
		{"", "https://c:1/base/", "http/protobuf", "https://c:1/base/v1/traces"},
		{"", "grpc://c:1", "grpc", "http://c:1"},
		{"http/json", "grpcs://c:1", "grpc", "https://c:1"},
		{"grpc", "http://c:1", "grpc", "http://c:1"},
	} {
		t.Run(fmt.Sprint(tc), func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", tc.protocol)
			c, err := findCollector(tc.to)
			if err != nil || c.protocol != tc.wantProtocol || c.url != tc.wantURL {
				t.Errorf("got %+v, %v, want %s by %s", c, err, tc.wantURL, tc.wantProtocol)
			}
		})
	}
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://c:1/as/it/is")
	if c, err := findCollector(""); err != nil || c.url != "" {
		t.Errorf("got %+v, %v, want the environment's address", c, err)
	}
}

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spans.jsonl")
	for range 2 { // the second empties it
		e := open(t, Config{Mode: "file=" + path})
		emit(e, 7)
		if s, err := shut(e, time.Minute); err != nil || s.Written != 7 {
			t.Fatalf("%+v, %v", s, err)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil || len(decode(t, b)) != 7 {
		t.Errorf("%v, %d spans, want 7", err, len(decode(t, b)))
	}
	if _, err := New(Config{Mode: "file=" + filepath.Join(t.TempDir(), "no", "folder")}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file in no folder: %v", err)
	}
}

// A full disk costs spans, which are counted, and is said once.
func TestFileOnAFullDisk(t *testing.T) {
	const full = "/dev/full"
	if _, err := os.Stat(full); err != nil {
		t.Skip("needs /dev/full, which Linux has")
	}
	var log testenv.Log
	const n = 2*batchSpans + 1
	e := open(t, Config{Mode: "file=" + full, Logger: log.Logger()})
	emit(e, n)
	s, err := shut(e, time.Minute)
	if s.Failed != n || err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("%+v, %v, want %d failed", s, err, n)
	}
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "no space left") {
		t.Errorf("the log says %q, want one line", got)
	}
}
