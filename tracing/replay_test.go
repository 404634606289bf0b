package tracing

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// ours names stages and messages as this program numbers them.
func ours() (m record.Meta) {
	for i := range stages.NumStages {
		m.Stages = append(m.Stages, stages.StageID(i).String())
	}
	for i := range int(stages.NumKinds) {
		m.Messages = append(m.Messages, stages.Kind(i).String())
	}
	m.Epoch, m.Exactness = epoch, "exact"
	m.Model.LayerKinds, m.Model.SlotBytes = []string{"full", "linear"}, 1000
	m.Engine.Hosts = []string{"one:1", "two:1"}
	return m
}

// summary is a span without what numbers it.
func summary(s tracetest.SpanStub) string {
	var attrs []string
	for _, a := range s.Attributes {
		if a.Key == KeyRequest {
			continue // the rig gives all requests of a caller one number
		}
		attrs = append(attrs, fmt.Sprintf("%s=%v", a.Key, a.Value.AsInterface()))
	}
	slices.Sort(attrs)
	return fmt.Sprint(s.Name, s.StartTime, s.EndTime, s.Status, attrs)
}

// TestReplay plays recordings of some sequences, and wants the spans that the emitter made of the
// same records while they were written, whether callers were traced then or not. A trace is a
// sequence's.
func TestReplay(t *testing.T) {
	for _, sampled := range []bool{true, false} {
		live := newRig(t, 1<<22)
		live.hosts = true
		at, steps := int64(1), 0
		for range 30 {
			for _, callers := range [][]byte{{1}, {2, 3}} {
				step := live.form(at, callers...)
				end := live.run(step, at)
				live.end(step, end, callers...)
				live.e.Poll(end*ms+settleNS, false)
				at, steps = end+20, steps+1
			}
		}
		live.e.Poll(0, true)
		want := make(map[string]int)
		for _, s := range live.spans.GetSpans() {
			want[summary(s)]++
		}

		rec := live.log.Recording()
		rec.Meta = ours()
		for i := range rec.Segments { // in the same order as their requests
			rec.Segments[i].Request, rec.Requests[i].Request = uint64(i+1), uint64(i+1)
		}
		if !sampled {
			for i := range rec.Segments {
				rec.Segments[i].TraceID = [16]byte{}
			}
			for i := range rec.Requests {
				rec.Requests[i].TraceID = [16]byte{}
			}
		}
		spans, pauses := tracetest.NewInMemoryExporter(), 0
		stats, err := Replay(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)), rec, func() error { pauses++; return nil })
		if err != nil || stats.Steps != int64(steps) || stats.RecordsLost+stats.StepsLost != 0 || pauses < steps/replaySteps {
			t.Fatalf("%+v, %v, %d pauses; want %d steps", stats, err, pauses, steps)
		}
		traces := make(map[string]bool)
		for _, s := range spans.GetSpans() {
			traces[s.SpanContext.TraceID().String()] = true
			if s.Name == SpanSequence {
				if s.Parent.IsValid() || s.StartTime.IsZero() || s.EndTime.After(epoch.Add(1<<50)) {
					t.Errorf("a sequence is from %v to %v, below %v", s.StartTime, s.EndTime, s.Parent)
				}
				continue
			}
			if !s.Parent.IsValid() {
				t.Errorf("%s hangs below nothing", s.Name)
			}
			want[summary(s)]--
		}
		for what, n := range want {
			if n != 0 {
				t.Errorf("%d times too few: %s", n, what)
			}
		}
		if len(traces) != 3 {
			t.Errorf("%d traces of 3 sequences", len(traces))
		}
	}
}

// Replay gives up where its caller cannot take more, and knows stages by their names.
func TestReplayGivesUp(t *testing.T) {
	live := newRig(t, 1<<20)
	step := live.form(1, 1)
	live.end(step, live.run(step, 1), 1)
	rec := live.log.Recording()
	rec.Meta = ours()
	full := errors.New("nobody takes spans")
	spans := tracetest.NewInMemoryExporter()
	tp := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	if _, err := Replay(tp, rec, func() error { return full }); !errors.Is(err, full) {
		t.Errorf("the error is %v, want %v", err, full)
	}
	spans.Reset()
	slices.Reverse(rec.Meta.Stages)
	for i := range rec.Handled {
		rec.Handled[i].Stage = uint8(stages.NumStages-1) - rec.Handled[i].Stage
	}
	if _, err := Replay(tp, rec, func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	layers := 0
	for _, s := range spans.GetSpans() {
		if s.Name == SpanLayer {
			layers++
		}
	}
	if layers != 2 {
		t.Errorf("%d layers of a recording whose stages have other numbers, want 2", layers)
	}
}
