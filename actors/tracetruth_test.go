package actors_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/io/readpool"
	"github.com/moeflux/moeflux-actor/stages"
)

// traced is an engine whose spans are kept, and what it counted while run ran.
type traced struct {
	t      *testing.T
	spans  tracetest.SpanStubs
	counts *actors.Stats
	info   actors.Info
	layers int
	queued int64 // by the records
}

// runTraced opens an engine, lets run use it under a recorded span, and closes it. run takes a
// context with the span.
func runTraced(t *testing.T, cfg actors.Config, run func(ctx context.Context, e *actors.Engine)) *traced {
	t.Helper()
	rec := tracetest.NewInMemoryExporter()
	tp := sdktrace.NewTracerProvider(sdktrace.WithSyncer(rec))
	cfg.Tracer, cfg.Model = tp, fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	if cfg.Device == nil {
		cfg.Device = device(t, 2)
	}
	e, err := actors.Open(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	before, err := e.Stats(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	ctx, root := tp.Tracer("test").Start(context.Background(), "request")
	run(ctx, e)
	root.End()
	tr := &traced{t: t, info: e.Info(), layers: len(e.Model().Layers)}
	if err := e.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, r := range e.Records().Recording().Requests {
		tr.queued += r.BeganNS - r.ArrivedNS
	}
	after, _ := e.Stats(context.Background()) // with ErrClosed
	if after == nil {
		t.Fatal("no figures after Close")
	}
	tr.spans, tr.counts = rec.GetSpans(), after.Since(before)
	return tr
}

// sum adds an attribute of all spans of a name; absent ones count 0.
func (tr *traced) sum(span, key string) (total int64) {
	for _, s := range tr.spans {
		if s.Name == "moeflux."+span {
			total += attr(s, key)
		}
	}
	return total
}

func attr(s tracetest.SpanStub, key string) int64 {
	for _, a := range s.Attributes {
		if a.Key == attribute.Key("moeflux."+key) {
			return a.Value.AsInt64()
		}
	}
	return 0
}

func (tr *traced) count(span string) (n int64) {
	for _, s := range tr.spans {
		if s.Name == "moeflux."+span {
			n++
		}
	}
	return n
}

// equal wants a figure of the spans to be that of the counters.
func (tr *traced) equal(what string, spans, counters int64) {
	tr.t.Helper()
	if spans != counters {
		tr.t.Errorf("%s: the spans say %d, the counters %d", what, spans, counters)
	}
}

// totals adds the counters of all layers.
func (tr *traced) totals() (l stages.LayerStats) {
	for _, x := range tr.counts.Layers {
		l.Hits += x.Hits
		l.Misses += x.Misses
		l.BytesRead += x.BytesRead
		l.BytesAhead += x.BytesAhead
		l.PrefetchIssued += x.PrefetchIssued
		l.PrefetchDropped += x.PrefetchDropped
		l.PrefetchDeclined += x.PrefetchDeclined
		l.PrefetchSkipped += x.PrefetchSkipped
	}
	return l
}

// check compares all that spans count for whole steps, and for requests, with the counters.
func (tr *traced) check() {
	tr.t.Helper()
	l, slot := tr.totals(), int64(tr.info.SlotBytes)
	for _, of := range []string{"expert_io", "step"} {
		tr.equal("hits of "+of, tr.sum(of, "hits"), l.Hits)
		tr.equal("misses of "+of, tr.sum(of, "misses"), l.Misses)
		tr.equal("bytes read on demand of "+of, tr.sum(of, "bytes_read"), l.BytesRead-l.BytesAhead)
	}
	tr.equal("prefetch issued", tr.sum("prefetch", "prefetch_issued"), l.PrefetchIssued)
	tr.equal("prefetch dropped", tr.sum("prefetch", "prefetch_dropped"), l.PrefetchDropped)
	tr.equal("prefetch declined", tr.sum("prefetch", "prefetch_declined"), l.PrefetchDeclined)
	tr.equal("prefetch skipped", tr.sum("prefetch", "prefetch_skipped"), l.PrefetchSkipped)
	tr.equal("reads ahead under way at the end", tr.sum("prefetch", "prefetch_pending"), 0)
	tr.equal("bytes of reads", tr.sum("read", "bytes"), l.BytesRead)
	tr.equal("reads", tr.count("read"), l.Misses+l.PrefetchIssued)
	tr.equal("steps", tr.count("step"), tr.counts.Steps)
	tr.equal("steps with spans", tr.count("step"), tr.counts.Tracing.Steps)
	tr.equal("rows", tr.sum("step", "rows"), tr.counts.Rows)
	tr.equal("bytes ahead", tr.sum("step", "bytes_ahead"), l.PrefetchIssued*slot)
	tr.equal("layers", tr.count("layer")+tr.sum("layer", "more_layers"), tr.counts.Steps*int64(tr.layers))
	tr.account()
	tr.equal("records lost", tr.sum("step", "records_lost"), tr.counts.Tracing.RecordsLost)
}

// account compares what requests cost by their spans with the accounts.
func (tr *traced) account() {
	tr.t.Helper()
	a := tr.counts.Accounts.Requests
	for _, x := range []struct {
		key  string
		want int64
	}{
		{"picks_hit", a.Hit}, {"picks_late", a.Late}, {"picks_missed", a.Missed}, {"slot_bytes", a.SlotBytes}, {"host_bytes", a.HostBytes},
		{"disk_bytes", a.DiskBytes}, {"bytes_ahead", a.AheadBytes}, {"device_ns", a.DeviceNS}, {"disk_wait_ns", a.DiskWaitNS}, {"queue_ns", tr.queued},
	} {
		tr.equal(x.key+" of requests", tr.sum("eval", x.key), x.want)
	}
	tr.equal("requests", tr.count("eval"), a.Requests)
}

// times compares where time went. Little of it is outside of all spans: what the device does for a
// layer after its last wave has retired.
func (tr *traced) times() {
	tr.t.Helper()
	for _, x := range []struct {
		key     string
		counted int64
		most    float64 // share that may be missing
	}{{"compute_ns", tr.counts.ComputeNS, 0.1}, {"overlap_ns", tr.counts.OverlapNS, 0.1}, {"disk_wait_ns", tr.counts.DiskWaitNS, 0.05}} {
		got := tr.sum("step", x.key)
		if got > x.counted || float64(got) < (1-x.most)*float64(x.counted)-50e3 {
			tr.t.Errorf("%s: the spans say %d, the counters %d", x.key, got, x.counted)
		}
		if parts := tr.sum("layer", x.key) + tr.sum("head", x.key); parts != got {
			tr.t.Errorf("%s: layers and heads say %d, their steps %d", x.key, parts, got)
		}
	}
	if tr.sum("step", "compute_ns") == 0 || tr.sum("head", "compute_ns") == 0 {
		tr.t.Error("no time of computing in the spans")
	}
}

// TestTraceIsTrue compares the spans of one caller with the engine's own counters, where slots are
// short, are there for a part, are there for all, and where there are none; with and without
// speculation; on a disk that is slow.
func TestTraceIsTrue(t *testing.T) {
	slot := int64(24576) // no less than one of the fixture's
	slow := func(src readpool.Source) readpool.Source { return &slowDisk{Source: src, bytesPerSecond: 40e6} }
	for _, tc := range []struct {
		name string
		cfg  actors.Config
		disk bool // some of the time is waiting
	}{
		{"slots short", actors.Config{ExpertIO: actors.ExpertIOBuffered, ExpertMemory: 4 * slot, WaveSlots: 2, Prefetch: actors.PrefetchOff}, false},
		{"slots short, prefetch", actors.Config{ExpertIO: actors.ExpertIOBuffered, ExpertMemory: 8 * slot, WaveSlots: 2, RingDepth: 3}, false},
		{"half of the slots, prefetch", actors.Config{ExpertIO: actors.ExpertIOBuffered, ExpertMemory: 40 * slot, WaveSlots: 4}, false},
		{"slow disk", actors.WithReads(actors.Config{ExpertIO: actors.ExpertIOBuffered, ExpertMemory: 8 * slot, WaveSlots: 4}, slow), true},
		{"mapped", actors.Config{ExpertIO: actors.ExpertIOMmap, Resident: actors.ResidentOff}, false},
		{"resident", actors.Config{ExpertIO: actors.ExpertIOMmap, Resident: actors.ResidentOn}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.cfg.ChunkRows = 40
			tr := runTraced(t, tc.cfg, func(ctx context.Context, e *actors.Engine) {
				s := sequence(t, e)
				for i, tokens := range [][]int32{prompt(1, 60, 512), {5}, {6}, {7}, {8}, {9}, {10}} {
					if _, err := s.Eval(ctx, tokens); err != nil {
						t.Fatal(err)
					}
					if i == 3 {
						time.Sleep(5 * time.Millisecond) // reads ahead end
					}
				}
			})
			if tc.cfg.Resident == actors.ResidentOn {
				tr.equal("hits", tr.sum("step", "hits"), tr.totals().Hits)
				tr.equal("layers", tr.count("layer"), tr.counts.Steps*int64(tr.layers))
				tr.account()
			} else {
				tr.check()
			}
			heads := int64(7) // the first step of the prompt wants no logits
			if tc.cfg.Resident == actors.ResidentOn {
				heads++ // but tells what the device has routed
			}
			tr.equal("heads", tr.count("head"), heads)
			tr.times()
			if tc.disk && tr.sum("step", "disk_wait_ns") == 0 {
				t.Error("the spans say nothing of waiting for the disk")
			}
			l := tr.totals()
			t.Logf("%d spans, %d hits, %d misses, %d read ahead, %d of them pending, %v computing of %v, %v waiting", len(tr.spans), l.Hits, l.Misses, l.PrefetchIssued, tr.sum("prefetch", "prefetch_pending"),
				time.Duration(tr.sum("step", "compute_ns")), time.Duration(tr.counts.ComputeNS), time.Duration(tr.sum("step", "disk_wait_ns")))
		})
	}
}

// TestTraceOfSeveralCallers lets callers share steps. Each step is one span, below the request of
// one caller and linked to those of the others, which are linked to it. The spans of requests say
// what each of them picked, and those of steps what all of them did.
func TestTraceOfSeveralCallers(t *testing.T) {
	type asked struct {
		seq   stages.SeqID
		pos   int
		picks int64 // of all layers and rows
	}
	var mu sync.Mutex
	picked := make(map[string]asked)
	tr := runTraced(t, actors.Config{ExpertIO: actors.ExpertIOBuffered, ExpertMemory: 1 << 18, Prefetch: actors.PrefetchOff, StepsInFlight: 1}, func(ctx context.Context, e *actors.Engine) {
		var wg sync.WaitGroup
		for i := range 4 {
			s := sequence(t, e)
			wg.Go(func() {
				for k := range 12 {
					tokens := prompt(uint64(100*i+k), 3, 512)
					r, err := s.EvalChunk(ctx, actors.Chunk{Tokens: tokens, Routing: true})
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					picked[fmt.Sprint(s.ID(), r.Pos)] = asked{seq: s.ID(), pos: r.Pos, picks: int64(len(r.Picks))}
					mu.Unlock()
				}
			})
		}
		wg.Wait()
	})
	tr.check()
	byID := make(map[trace.SpanID]tracetest.SpanStub)
	for _, s := range tr.spans {
		byID[s.SpanContext.SpanID()] = s
	}
	shared := 0
	for _, s := range tr.spans {
		switch s.Name {
		case "moeflux.eval":
			a, ok := picked[fmt.Sprint(attr(s, "seq"), attr(s, "pos"))]
			if got := attr(s, "picks_hit") + attr(s, "picks_late") + attr(s, "picks_missed"); !ok || got != a.picks {
				t.Errorf("sequence %d at %d: the span says %d picks, its rows picked %d", attr(s, "seq"), attr(s, "pos"), got, a.picks)
			}
		case "moeflux.step":
			of := []tracetest.SpanStub{byID[s.Parent.SpanID()]}
			for _, l := range s.Links {
				r := byID[l.SpanContext.SpanID()]
				of = append(of, r)
				if !linked(r, s.SpanContext) {
					t.Errorf("step %d is linked to a request that is not linked to it", attr(s, "step"))
				}
			}
			rows := int64(0)
			for _, r := range of {
				if r.Name != "moeflux.eval" || r.StartTime.After(s.StartTime) || r.EndTime.Before(s.EndTime) {
					t.Errorf("step %d is said to be of a %s that does not last as long", attr(s, "step"), r.Name)
				}
				rows += attr(r, "rows")
			}
			if int64(len(of)) != attr(s, "requests") || rows != attr(s, "rows") {
				t.Errorf("step %d has %d rows of %d requests, its spans are %d with %d rows", attr(s, "step"), attr(s, "rows"), attr(s, "requests"), len(of), rows)
			}
			if len(of) > 1 {
				shared++
			}
		}
	}
	if shared == 0 {
		t.Error("no step had several callers")
	}
	t.Logf("%d of %d steps were shared", shared, tr.count("step"))
}

func linked(s tracetest.SpanStub, to trace.SpanContext) bool {
	for _, l := range s.Links {
		if l.SpanContext.SpanID() == to.SpanID() {
			return true
		}
	}
	return false
}
