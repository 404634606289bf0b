package host_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/moeflux/moeflux-actor/actors"
	expert "github.com/moeflux/moeflux-actor/actors/remote/host"
	"github.com/moeflux/moeflux-actor/actors/remote/host/hosttest"
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/gpu/host"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/netdelay"
	"github.com/moeflux/moeflux-actor/internal/testenv"
	"github.com/moeflux/moeflux-actor/io/readpool"
	"github.com/moeflux/moeflux-actor/tracing"
	"github.com/moeflux/moeflux-actor/tracing/analyse"
)

func device(t *testing.T) gpu.Device {
	t.Helper()
	d, err := host.New(host.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// asking opens an engine with a few slots that asks a host, and waits until it may.
func asking(t *testing.T, cfg actors.Config) *actors.Engine {
	t.Helper()
	cfg.Device, cfg.ExpertIO, cfg.ExpertMemory = device(t), actors.ExpertIOBuffered, 64<<10
	e, err := actors.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close(context.Background()) })
	for range 500 {
		s, err := e.Stats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if s.Hosts[0].Up {
			return e
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the host cannot be asked")
	return nil
}

// decode evaluates some tokens, one by one.
func decode(t *testing.T, ctx context.Context, e *actors.Engine, tokens int) {
	t.Helper()
	s, err := e.NewSequence(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i := range tokens {
		if _, err := s.Eval(ctx, []int32{int32(1 + i*37%250)}); err != nil {
			t.Fatal(err)
		}
	}
}

// takes is how long what is slow takes, far longer than anything else of a layer.
const takes = 8 * time.Millisecond

// lateDisk takes a while for each read.
type lateDisk struct{ readpool.Source }

func (d lateDisk) ReadExpert(layer, expert int, dst []byte) error {
	time.Sleep(takes)
	return d.Source.ReadExpert(layer, expert, dst)
}

// lateDevice takes a while for each submission.
type lateDevice struct{ gpu.Device }

func (d lateDevice) NewQueue() (gpu.Queue, error) {
	q, err := d.Device.NewQueue()
	return lateQueue{q}, err
}

type lateQueue struct{ gpu.Queue }

func (q lateQueue) Submit(c *gpu.Commands) (gpu.Ticket, error) {
	t, err := q.Queue.Submit(c)
	return lateTicket{t}, err
}

type lateTicket struct{ gpu.Ticket }

func (t lateTicket) OnDone(f func(error)) {
	t.Ticket.OnDone(func(err error) {
		time.Sleep(takes)
		f(err)
	})
}

// TestWhyPlanted makes the network, a host's disk and a host's processor slow in turn: each is the
// first cause of the engine's tokens, and names the host.
func TestWhyPlanted(t *testing.T) {
	dir := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	whole := expert.Config{Model: dir}
	few := expert.WithReads(expert.Config{Model: dir, ExpertIO: "buffered", ExpertMemory: 64 << 10}, func(s readpool.Source) readpool.Source { return lateDisk{s} })
	for _, c := range []struct {
		name  string
		host  expert.Config
		slow  bool
		delay time.Duration
		want  analyse.Cause
	}{
		{"a slow network", whole, false, takes / 2, analyse.Network},
		{"a slow host's disk", few, false, 0, analyse.HostDisk},
		{"a slow host", whole, true, 0, analyse.HostCompute},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.host.Device = device(t); c.slow {
				c.host.Device = lateDevice{c.host.Device}
			}
			p, err := netdelay.New(hosttest.Serve(t, c.host), netdelay.Link{Delay: c.delay})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { p.Close() })
			e := asking(t, actors.Config{Model: dir, Hosts: p.Addr()})
			decode(t, t.Context(), e, 6)
			if err := e.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			rec, err := e.Recording(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			why, err := analyse.WhyTokens(rec, 0)
			if err != nil {
				t.Fatal(err)
			}
			if first := why.Causes[0]; first.Cause != c.want || 2*first.NS < why.WallNS {
				t.Errorf("the first cause is %s, want %s: %+v", first.Cause, c.want, why.Causes)
			}
			for _, k := range why.Tokens {
				for _, p2 := range k.Pieces {
					if p2.Cause == c.want && p2.Where != p.Addr() {
						t.Fatalf("%s is of %q, want %q", p2.Cause, p2.Where, p.Addr())
					}
				}
			}
			if why.Experts.Away == 0 {
				t.Errorf("no expert was computed away: %+v", why.Experts)
			}
		})
	}
}

// TestOneTrace evaluates with a caller's span: what the host computes is in that trace, below the
// layer that asked, and the host's log names the span.
func TestOneTrace(t *testing.T) {
	dir := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	var log testenv.Log
	addr := hosttest.Serve(t, expert.Config{Model: dir, Device: device(t), Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	spans := tracetest.NewInMemoryExporter()
	tp := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	e := asking(t, actors.Config{Model: dir, Hosts: addr, Tracer: tp})
	decode(t, t.Context(), e, 1) // not traced
	if strings.Contains(log.String(), "traceparent") {
		t.Errorf("the host names a span though nobody traces: %s", log.String())
	}
	ctx, root := tp.Tracer("test").Start(t.Context(), "caller")
	decode(t, ctx, e, 2)
	root.End()
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := spans.GetSpans()
	away := 0
	for _, s := range all {
		if s.Name != tracing.SpanAway {
			continue
		}
		away++
		i := slices.IndexFunc(all, func(p tracetest.SpanStub) bool { return p.SpanContext.SpanID() == s.Parent.SpanID() })
		if i < 0 || all[i].Name != tracing.SpanExpertIO || s.SpanContext.TraceID() != root.SpanContext().TraceID() {
			t.Errorf("a span of the host hangs below number %d, in trace %v; the caller's is %v", i, s.SpanContext.TraceID(), root.SpanContext().TraceID())
		}
	}
	if away == 0 {
		t.Error("no span tells of the host")
	}
	if want := "00-" + root.SpanContext().TraceID().String() + "-"; !strings.Contains(log.String(), "traceparent="+want) {
		t.Errorf("the host's log does not name the caller's trace %s: %s", want, log.String())
	}
}
