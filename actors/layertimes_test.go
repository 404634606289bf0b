package actors_test

import (
	"context"
	"slices"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/tracing/analyse"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// layerRun is what a resident engine computed, recorded and traced.
type layerRun struct {
	logits []float32
	layers int
	rec    *record.Recording
	spans  tracetest.SpanStubs
}

func runLayers(t *testing.T, dev gpu.Device, model string, times bool) *layerRun {
	t.Helper()
	spans := tracetest.NewInMemoryExporter()
	tp := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	e := open(t, actors.Config{
		Model: fixtures.Packed(t, model, 0), Device: dev, ExpertIO: actors.ExpertIOMmap, Resident: actors.ResidentOn, ChunkRows: 9, LayerTimes: times, Tracer: tp,
	})
	ctx := context.Background()
	if times { // else it would go layer by layer for its spans
		var root trace.Span
		ctx, root = tp.Tracer("test").Start(ctx, "request")
		defer root.End()
	}
	s, r := sequence(t, e), &layerRun{layers: len(e.Model().Layers)}
	for _, tokens := range [][]int32{prompt(1, 21, e.Model().VocabSize), {5}, {7}, {9}} {
		logits, err := s.Eval(ctx, tokens)
		if err != nil {
			t.Fatal(err)
		}
		r.logits = append(r.logits, logits...)
	}
	var err error
	if r.rec, err = e.Recording(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(context.Background()); err != nil { // all spans are made
		t.Fatal(err)
	}
	r.spans = spans.GetSpans()
	return r
}

// checkLayerTimes wants a resident engine with LayerTimes to tell of each layer of each step once,
// one after the other, in records and spans, and to compute the same bits as one that tells of
// several at once.
func checkLayerTimes(t *testing.T, dev gpu.Device) {
	for _, model := range []string{fixtures.Qwen35MoEQ4, fixtures.DeepseekV3Q4} {
		t.Run(model, func(t *testing.T) {
			together, each := runLayers(t, dev, model, false), runLayers(t, dev, model, true)
			if !slices.Equal(together.logits, each.logits) {
				t.Error("the logits are others")
			}
			if !slices.ContainsFunc(together.rec.Submissions, func(s record.Submission) bool { return s.More > 0 }) {
				t.Fatal("no layers were submitted together: the test shows nothing")
			}
			each.checkSpans(t)
			why, err := analyse.WhyTokens(each.rec, 0)
			if err != nil {
				t.Fatal(err)
			}
			var device, unexplained, wall int64
			for i := range why.Tokens {
				wall += why.Tokens[i].WallNS
				for _, c := range why.Tokens[i].Causes {
					switch c.Cause {
					case analyse.Device:
						device += c.NS
					case analyse.Unexplained:
						unexplained += c.NS
					}
				}
			}
			each.checkRecords(t)
			// Not how much of the device's work: while something else delays a token, the device
			// goes on, and on a busy machine something often does.
			if unexplained*50 > wall || device == 0 {
				t.Errorf("of %d ns %d are unexplained, and %d are the device's", wall, unexplained, device)
			}
		})
	}
}

// checkRecords wants a record of each layer of each step, one after the other.
func (r *layerRun) checkRecords(t *testing.T) {
	t.Helper()
	type at struct{ layer, ended, device int64 }
	steps := make(map[uint64]at) // the last layer of each
	for _, s := range r.rec.Submissions {
		if s.Part != record.Layers {
			continue
		}
		last := steps[s.Step]
		if s.More != 0 || int64(s.Layer) != last.layer || s.BeganNS < last.ended || s.EndedNS < s.BeganNS || s.DeviceNS < 0 || s.SubmittedNS > s.BeganNS {
			t.Errorf("layer %d of step %d: %+v, after what ended at %d", last.layer, s.Step, s, last.ended)
		}
		steps[s.Step] = at{last.layer + 1, s.EndedNS, last.device + s.DeviceNS}
	}
	if len(steps) != len(r.rec.Steps) || len(steps) < 5 {
		t.Errorf("layers of %d steps are recorded, there were %d", len(steps), len(r.rec.Steps))
	}
	for step, last := range steps {
		if last.layer != int64(r.layers) || last.device == 0 {
			t.Errorf("step %d has %d layers, which took the device %d ns", step, last.layer, last.device)
		}
	}
}

func (r *layerRun) checkSpans(t *testing.T) {
	t.Helper()
	layers := make(map[string]int) // by step
	for _, s := range r.spans {
		if s.Name != "moeflux.layer" {
			continue
		}
		checkAttributes(t, s)
		if attr(s, "more_layers") != 0 || s.EndTime.Before(s.StartTime) || !slices.ContainsFunc(s.Attributes, isDeviceNS) {
			t.Errorf("a layer from %v to %v has %v", s.StartTime, s.EndTime, s.Attributes)
		}
		layers[s.Parent.SpanID().String()]++
	}
	for step, n := range layers {
		if n != r.layers {
			t.Errorf("step %s has %d spans of layers, want %d", step, n, r.layers)
		}
	}
	if len(layers) != len(r.rec.Steps) {
		t.Errorf("%d steps have layers, there were %d", len(layers), len(r.rec.Steps))
	}
}

func isDeviceNS(a attribute.KeyValue) bool { return a.Key == "moeflux.device_ns" }

func TestLayerTimes(t *testing.T) { checkLayerTimes(t, device(t, 2)) }
