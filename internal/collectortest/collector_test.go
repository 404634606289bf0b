package collectortest

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/moeflux/moeflux-actor/tracing/export"
)

var ctx = context.Background()

// collector is the collector's receiver for OTLP, and behind it a consumer of the test's.
type collector struct {
	t        *testing.T
	grpc     string // address
	http     string
	receiver receiver.Traces

	mu      sync.Mutex
	took    []ptrace.Span
	about   map[string]any // the resource of the last batch
	consume func(n int) error
	batches int
}

// start starts a receiver. consume, which may be nil, decides on the n-th batch, from 1.
func start(t *testing.T, consume func(n int) error) *collector {
	t.Helper()
	c := &collector{t: t, grpc: freeAddress(t), http: freeAddress(t), consume: consume}
	c.start()
	return c
}

func (c *collector) start() {
	t := c.t
	t.Helper()
	factory := otlpreceiver.NewFactory()
	cfg := factory.CreateDefaultConfig()
	protocols := map[string]any{"protocols": map[string]any{"grpc": map[string]any{"endpoint": c.grpc}, "http": map[string]any{"endpoint": c.http}}}
	if err := confmap.NewFromStringMap(protocols).Unmarshal(cfg); err != nil {
		t.Fatal(err)
	}
	sink, err := consumer.NewTraces(c.take)
	if err != nil {
		t.Fatal(err)
	}
	if c.receiver, err = factory.CreateTraces(ctx, receivertest.NewNopSettings(component.MustNewType("otlp")), cfg, sink); err != nil {
		t.Fatal(err)
	}
	if err := c.receiver.Start(ctx, componenttest.NewNopHost()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.stop)
}

func (c *collector) stop() {
	limit, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	c.receiver.Shutdown(limit)
}

func freeAddress(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func (c *collector) take(_ context.Context, td ptrace.Traces) error {
	c.mu.Lock()
	c.batches++
	n := c.batches
	c.mu.Unlock()
	if c.consume != nil {
		if err := c.consume(n); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, rs := range td.ResourceSpans().All() {
		c.about = rs.Resource().Attributes().AsRaw()
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				c.took = append(c.took, s)
			}
		}
	}
	return nil
}

// send makes spans, ends the exporter and returns its figures.
func send(t *testing.T, mode string, make func(trace.Tracer)) (export.Stats, error) {
	t.Helper()
	e, err := export.New(export.Config{Mode: mode, ServiceVersion: "v1"})
	if err != nil {
		t.Fatal(err)
	}
	make(e.Provider().Tracer("test"))
	limit, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	err = e.Shutdown(limit)
	return e.Stats(), err
}

func spans(n int) func(trace.Tracer) {
	return func(tracer trace.Tracer) {
		for range n {
			_, s := tracer.Start(ctx, "x")
			s.End()
		}
	}
}

// ways are the protocols, as a user asks for each.
func ways(c *collector) []struct{ name, mode, env string } {
	return []struct{ name, mode, env string }{
		{"grpc", "otlp=grpc://" + c.grpc, ""},
		{"http", "otlp=http://" + c.http, ""},
		{"json", "otlp=http://" + c.http, "http/json"},
		{"grpc by the environment", "otlp=http://" + c.grpc, "grpc"},
	}
}

// What a collector understands of a tree of spans is what was made, by each protocol.
func TestArrives(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
	c := start(t, nil)
	for _, way := range ways(c) {
		t.Run(way.name, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", way.env)
			c.took = nil
			at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
			s, err := send(t, way.mode, func(tracer trace.Tracer) {
				pctx, parent := tracer.Start(ctx, "parent", trace.WithTimestamp(at))
				_, child := tracer.Start(pctx, "child", trace.WithTimestamp(at.Add(1)), trace.WithLinks(trace.Link{SpanContext: parent.SpanContext()}),
					trace.WithAttributes(attribute.Int("n", 42), attribute.String("text", "höher"), attribute.Bool("yes", true)))
				child.SetStatus(codes.Error, "why")
				child.End(trace.WithTimestamp(at.Add(7)))
				parent.End(trace.WithTimestamp(at.Add(9)))
			})
			if err != nil || s != (export.Stats{Ended: 2, Written: 2}) || len(c.took) != 2 {
				t.Fatalf("%+v, %v, %d spans arrived; want 2", s, err, len(c.took))
			}
			child, parent := c.took[0], c.took[1]
			if child.Name() != "child" || child.ParentSpanID() != parent.SpanID() || child.TraceID() != parent.TraceID() || child.Links().Len() != 1 ||
				child.Links().At(0).SpanID() != parent.SpanID() || child.Status().Code() != ptrace.StatusCodeError || child.Status().Message() != "why" ||
				!child.StartTimestamp().AsTime().Equal(at.Add(1)) || !child.EndTimestamp().AsTime().Equal(at.Add(7)) {
				t.Errorf("the child arrived as %v", child)
			}
			if a := child.Attributes().AsRaw(); len(a) != 3 || a["n"] != int64(42) || a["text"] != "höher" || a["yes"] != true {
				t.Errorf("its attributes arrived as %v", a)
			}
			if c.about["service.name"] != "moeflux-actor" || c.about["service.version"] != "v1" || c.about["deployment.environment.name"] != "test" {
				t.Errorf("the resource arrived as %v", c.about)
			}
		})
	}
}

// A collector that is busy gets the batch again when it said.
func TestBusy(t *testing.T) {
	for i := range ways(&collector{}) {
		busy, err := status.New(grpccodes.ResourceExhausted, "busy").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(time.Second)})
		if err != nil {
			t.Fatal(err)
		}
		c := start(t, func(n int) error {
			if n == 1 {
				return busy.Err()
			}
			return nil
		})
		way := ways(c)[i]
		t.Run(way.name, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", way.env)
			began := time.Now()
			s, err := send(t, way.mode, spans(5))
			if d := time.Since(began); err != nil || s.Written != 5 || len(c.took) != 5 || c.batches != 2 || d < time.Second {
				t.Errorf("%+v, %v after %d batches and %v, want 5 spans after 2 batches and a second", s, err, c.batches, d)
			}
		})
	}
}

// A collector that dies amid a batch costs the spans of that batch, which are counted; the next
// arrive when it is back.
func TestDies(t *testing.T) {
	for i := range ways(&collector{}) {
		amid, over := make(chan struct{}), make(chan struct{})
		first := start(t, func(int) error {
			amid <- struct{}{}
			<-over
			return status.Error(grpccodes.Internal, "the collector is going down")
		})
		way := ways(first)[i]
		t.Run(way.name, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", way.env)
			e, err := export.New(export.Config{Mode: way.mode})
			if err != nil {
				t.Fatal(err)
			}
			spans(3)(e.Provider().Tracer("test"))
			<-amid
			close(over)
			first.stop()
			for deadline := time.Now().Add(20 * time.Second); e.Stats().Failed == 0; time.Sleep(10 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("20 s later: %+v, want a batch that failed", e.Stats())
				}
			}
			second := &collector{t: t, grpc: first.grpc, http: first.http}
			second.start()
			spans(4)(e.Provider().Tracer("test"))
			limit, cancel := context.WithTimeout(ctx, 30*time.Second)
			defer cancel()
			err = e.Shutdown(limit)
			if s := e.Stats(); s.Failed != 3 || s.Written != 4 || len(second.took) != 4 || err == nil || !strings.Contains(err.Error(), "going down") {
				t.Errorf("%+v, %v, %d spans arrived; want 3 that failed and 4 that arrived", s, err, len(second.took))
			}
		})
	}
}

// A collector that hangs does not hold up whoever ends spans, nor the end of the program.
func TestHangs(t *testing.T) {
	for i := range ways(&collector{}) {
		amid, over := make(chan struct{}, 100), make(chan struct{})
		c := start(t, func(int) error {
			amid <- struct{}{}
			<-over
			return nil
		})
		way := ways(c)[i]
		t.Run(way.name, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", way.env)
			defer close(over)
			e, err := export.New(export.Config{Mode: way.mode, QueueSpans: 10})
			if err != nil {
				t.Fatal(err)
			}
			spans(10)(e.Provider().Tracer("test"))
			<-amid
			began := time.Now()
			spans(1000)(e.Provider().Tracer("test"))
			limit, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			defer cancel()
			err = e.Shutdown(limit)
			if d := time.Since(began); d > 5*time.Second || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("it took %v to make 1000 spans and to give up; %v", d, err)
			}
			if s := e.Stats(); s.Dropped != 1000 || s.Written != 0 || s.Waiting+s.Failed != 10 {
				t.Errorf("%+v, want 1000 dropped and 10 not sent", s)
			}
		})
	}
}
