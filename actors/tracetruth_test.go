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

// check compares all that spans count for the whole step with the counters.
func (tr *traced) check() {
	tr.t.Helper()
	l, slot := tr.totals(), int64(tr.info.SlotBytes)
	tr.equal("hits", tr.sum("expert_io", "hits"), l.Hits)
	tr.equal("misses", tr.sum("expert_io", "misses"), l.Misses)
	tr.equal("bytes read on demand", tr.sum("expert_io", "bytes_read"), l.BytesRead-l.BytesAhead)
	tr.equal("prefetch issued", tr.sum("prefetch", "prefetch_issued"), l.PrefetchIssued)
	tr.equal("prefetch dropped", tr.sum("prefetch", "prefetch_dropped"), l.PrefetchDropped)
	tr.equal("prefetch declined", tr.sum("prefetch", "prefetch_declined"), l.PrefetchDeclined)
	tr.equal("prefetch skipped", tr.sum("prefetch", "prefetch_skipped"), l.PrefetchSkipped)
	if pending := tr.sum("prefetch", "prefetch_pending"); 2*pending > l.PrefetchIssued {
		tr.t.Errorf("%d of %d reads ahead ended after their steps, if the spans are right", pending, l.PrefetchIssued)
	}
	if steps := tr.counts.Steps; tr.count("eval") == steps { // each step has one caller
		tr.equal("hits of callers", tr.sum("eval", "hits"), l.Hits)
		tr.equal("misses of callers", tr.sum("eval", "misses"), l.Misses)
		tr.equal("bytes of callers", tr.sum("eval", "bytes_read"), l.Misses*slot)
		tr.equal("bytes ahead", tr.sum("eval", "bytes_ahead"), l.PrefetchIssued*slot)
		tr.equal("layers", tr.count("layer")+tr.sum("layer", "more_layers"), steps*int64(tr.layers))
		tr.equal("steps with spans", steps, tr.counts.Tracing.Steps)
	}
	tr.equal("records lost", tr.sum("eval", "records_lost"), tr.counts.Tracing.RecordsLost)
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
		got := tr.sum("eval", x.key)
		if got > x.counted || float64(got) < (1-x.most)*float64(x.counted)-50e3 {
			tr.t.Errorf("%s: the spans say %d, the counters %d", x.key, got, x.counted)
		}
		if parts := tr.sum("layer", x.key) + tr.sum("head", x.key); parts != got {
			tr.t.Errorf("%s: layers and heads say %d, their evals %d", x.key, parts, got)
		}
	}
	if tr.sum("eval", "compute_ns") == 0 || tr.sum("head", "compute_ns") == 0 {
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
				tr.equal("hits of callers", tr.sum("eval", "hits"), tr.totals().Hits)
			} else {
				tr.check()
			}
			heads := int64(7) // the first step of the prompt wants no logits
			if tc.cfg.Resident == actors.ResidentOn {
				heads++ // but tells what the device has routed
			}
			tr.equal("heads", tr.count("head"), heads)
			tr.times()
			if tc.disk && tr.sum("eval", "disk_wait_ns") == 0 {
				t.Error("the spans say nothing of waiting for the disk")
			}
			l := tr.totals()
			t.Logf("%d spans, %d hits, %d misses, %d read ahead, %d of them pending, %v computing of %v, %v waiting", len(tr.spans), l.Hits, l.Misses, l.PrefetchIssued, tr.sum("prefetch", "prefetch_pending"),
				time.Duration(tr.sum("eval", "compute_ns")), time.Duration(tr.counts.ComputeNS), time.Duration(tr.sum("eval", "disk_wait_ns")))
		})
	}
}

// TestTraceOfSeveralCallers lets callers share steps. The eval of each counts the experts that its
// own rows picked, and the layers below count those of the step.
func TestTraceOfSeveralCallers(t *testing.T) {
	type asked struct {
		seq  stages.SeqID
		pos  int
		uses int64 // different experts of all layers
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
					a := asked{seq: s.ID(), pos: r.Pos}
					perLayer := len(r.Picks) / len(e.Model().MoELayers())
					for at := 0; at < len(r.Picks); at += perLayer {
						seen := make(map[int32]bool)
						for _, x := range r.Picks[at : at+perLayer] {
							seen[x] = true
						}
						a.uses += int64(len(seen))
					}
					mu.Lock()
					picked[fmt.Sprint(a.seq, a.pos)] = a
					mu.Unlock()
				}
			})
		}
		wg.Wait()
	})
	shared := 0
	steps := make(map[int64]bool)
	l := stages.LayerStats{}
	for _, s := range tr.spans {
		switch s.Name {
		case "moeflux.eval":
			a := picked[fmt.Sprint(attr(s, "seq"), attr(s, "pos"))]
			if got := attr(s, "hits") + attr(s, "misses"); got != a.uses || attr(s, "bytes_read") != attr(s, "misses")*int64(tr.info.SlotBytes) {
				t.Errorf("sequence %d at %d: the span says %d experts and %d bytes for %d misses, its rows picked %d",
					attr(s, "seq"), attr(s, "pos"), got, attr(s, "bytes_read"), attr(s, "misses"), a.uses)
			}
			if attr(s, "step_rows") > attr(s, "rows") {
				shared++
			}
			if step := attr(s, "step"); !steps[step] { // the trees of a step's callers say the same
				steps[step] = true
				for _, x := range tr.spans {
					if x.Name == "moeflux.expert_io" && grandparent(tr.spans, x) == s.SpanContext.SpanID() {
						l.Hits += attr(x, "hits")
						l.Misses += attr(x, "misses")
					}
				}
			}
		}
	}
	if shared == 0 {
		t.Error("no step had several callers")
	}
	tr.equal("hits of steps", l.Hits, tr.totals().Hits)
	tr.equal("misses of steps", l.Misses, tr.totals().Misses)
	t.Logf("%d of %d evals shared a step", shared, tr.count("eval"))
}

// grandparent returns the span above a span's parent.
func grandparent(spans tracetest.SpanStubs, s tracetest.SpanStub) (id trace.SpanID) {
	for _, p := range spans {
		if p.SpanContext.SpanID() == s.Parent.SpanID() {
			return p.Parent.SpanID()
		}
	}
	return id
}
