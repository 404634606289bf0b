package tracing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/stages"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)

var caller = stages.TraceContext{TraceID: [16]byte{1, 2, 3}, SpanID: [8]byte{4, 5}, Flags: 1}

func rec(step stages.StepID, layer, wave int32, stage stages.StageID, kind Kind, queued, began, ended int64, count, miss int32, bytes, device int64, times stages.Times) Record {
	return Record{
		Step: step, Layer: layer, Wave: wave, Stage: stage, Kind: kind, QueuedNS: queued, BeganNS: began, EndedNS: ended,
		Count: count, Miss: miss, Bytes: bytes, DeviceNS: device, Times: times,
	}
}

// hinted is a record about a hint.
func hinted(hint int32, r Record) Record {
	r.Hint = hint
	return r
}

// token is what the five stages record of step 7, one decoded token of two layers; layer 1 has a
// prefetch and two waves, of which the second waits for the slots of the first.
func token() []Record {
	const (
		seq, router, io, dispatch, combine = stages.Sequencer, stages.Router, stages.ExpertIO, stages.Dispatch, stages.Combine
	)
	var no stages.Times
	return []Record{
		rec(7, 0, 0, seq, stages.KindLayerSubmitted, 200, 201, 205, 0, 0, 0, 0, no),
		rec(7, 0, 0, seq, stages.KindLayerRetired, 250, 251, 252, 0, 0, 0, 0, stages.Times{ComputeNS: 1048, OverlapNS: 530, DiskWaitNS: 204}),
		rec(7, 1, 0, seq, stages.KindLayerRetired, 570, 571, 572, 0, 0, 0, 0, stages.Times{ComputeNS: 2161, OverlapNS: 80, DiskWaitNS: 21}),
		rec(7, 2, 0, seq, stages.KindLogitsReady, 650, 652, 660, 0, 0, 0, 0, stages.Times{ComputeNS: 107}),

		rec(7, 0, 0, router, stages.KindBeginLayer, 100, 103, 104, 0, 0, 0, 0, no),
		rec(7, 0, 0, router, stages.KindPicksReady, 130, 132, 140, 4, 1, 0, 0, no),
		rec(7, 1, 0, router, stages.KindBeginLayer, 202, 203, 204, 0, 0, 0, 0, no),
		rec(7, 1, 0, router, stages.KindPicksReady, 330, 333, 344, 6, 2, 0, 0, no),

		rec(7, 0, 0, io, stages.KindLayerRouted, 138, 141, 150, 3, 1, 4096, 0, no),
		rec(7, 0, 0, io, stages.KindExpertsRead, 170, 172, 180, 1, 0, 4096, 0, no),
		hinted(1, rec(7, 1, 1, io, stages.KindPrefetchExperts, 190, 192, 196, 2, 1, 0, 0, no)),
		rec(7, 0, 0, io, stages.KindSlotsReleased, 248, 255, 256, 4, 0, 0, 0, no),
		rec(7, 1, 0, io, stages.KindLayerRouted, 343, 345, 350, 2, 4, 16384, 0, no),
		// the demand reads
		rec(7, 1, 0, io, stages.KindExpertsRead, 398, 400, 410, 4, 0, 16384, 0, no),
		// the prefetch
		hinted(1, rec(7, 1, 0, io, stages.KindExpertsRead, 420, 421, 422, 2, 0, 8192, 0, no)),
		rec(7, 1, 0, io, stages.KindSlotsReleased, 465, 470, 480, 4, 0, 0, 0, no),
		rec(7, 1, 1, io, stages.KindSlotsReleased, 569, 580, 581, 2, 0, 0, 0, no),

		rec(7, 0, 0, dispatch, stages.KindBeginLayer, 101, 102, 110, 0, 0, 0, 0, stages.Times{ComputeNS: 1000, OverlapNS: 500, DiskWaitNS: 200}),
		rec(7, 0, 0, dispatch, stages.KindTicketDone, 125, 127, 131, 0, 0, 0, 15, no),
		rec(7, 0, 0, dispatch, stages.KindWaveResident, 178, 181, 199, 4, 0, 0, 0, no),
		rec(7, 1, 0, dispatch, stages.KindBeginLayer, 203, 206, 216, 0, 0, 0, 0, stages.Times{ComputeNS: 2000}),
		rec(7, 1, 0, dispatch, stages.KindTicketDone, 320, 322, 331, 0, 0, 0, 95, no),
		rec(7, 1, 0, dispatch, stages.KindWaveResident, 408, 412, 430, 4, 0, 0, 0, no),
		rec(7, 1, 1, dispatch, stages.KindWaveResident, 478, 481, 500, 2, 0, 0, 0, no),
		rec(7, 2, 0, dispatch, stages.KindReadLogits, 510, 520, 530, 0, 0, 0, 0, stages.Times{ComputeNS: 7}),
		rec(7, 2, 0, dispatch, stages.KindTicketDone, 640, 645, 651, 0, 0, 0, 100, no),

		rec(7, 0, 0, combine, stages.KindWaveSubmitted, 198, 199, 200, 0, 0, 0, 0, no),
		rec(7, 0, 0, combine, stages.KindTicketDone, 240, 245, 249, 1, 0, 0, 33, no),
		rec(7, 1, 0, combine, stages.KindTicketDone, 455, 460, 466, 2, 0, 0, 22, no),
		rec(7, 1, 1, combine, stages.KindTicketDone, 560, 565, 570, 1, 0, 0, 44, no),

		rec(6, 0, 0, combine, stages.KindTicketDone, 1, 2, 3, 0, 0, 0, 0, no), // another step
	}
}

// wantToken is the tree of token, as tree prints it.
const wantToken = `
moeflux.eval 90-700 step=7 seq=3 pos=11 rows=1 step_rows=2 hits=5 misses=5 bytes_read=20480 bytes_ahead=8192 compute_ns=309 overlap_ns=110 disk_wait_ns=25
  moeflux.head 520-650 queue_ns=10 compute_ns=100 overlap_ns=0 disk_wait_ns=0 device_ns=100
  moeflux.layer 101-251 layer=0 queue_ns=1 layer_kind=linear compute_ns=48 overlap_ns=30 disk_wait_ns=4
    moeflux.mix 102-130 layer=0 queue_ns=1 device_ns=15
    moeflux.route 132-140 layer=0 experts=4 waves=1 queue_ns=2
    moeflux.expert_io 141-178 layer=0 hits=3 misses=1 bytes_read=4096 waves_waited=0 queue_ns=3
    moeflux.experts 199-245 layer=0 wave=0 experts=4 device_ns=33 queue_ns=3
    moeflux.retire 245-248 layer=0 wave=0 queue_ns=5 ring_length=1
  moeflux.layer 203-571 layer=1 queue_ns=3 layer_kind=full compute_ns=161 overlap_ns=80 disk_wait_ns=21
    moeflux.mix 206-330 layer=1 queue_ns=3 device_ns=95
    moeflux.route 333-344 layer=1 experts=6 waves=2 queue_ns=3
    moeflux.expert_io 345-478 layer=1 hits=2 misses=4 bytes_read=16384 waves_waited=1 queue_ns=2
    moeflux.experts 430-460 layer=1 wave=0 experts=4 device_ns=22 queue_ns=4
    moeflux.experts 500-565 layer=1 wave=1 experts=2 device_ns=44 queue_ns=3
    moeflux.retire 460-465 layer=1 wave=0 queue_ns=5 ring_length=2
    moeflux.retire 565-569 layer=1 wave=1 queue_ns=5 ring_length=1
  moeflux.prefetch 192-421 layer=1 layers_ahead=1 prefetch_issued=2 prefetch_dropped=1 prefetch_declined=0 prefetch_skipped=0 queue_ns=2 prefetch_late=true -> moeflux.layer 203-571
`

func chunk() Chunk {
	return Chunk{Trace: caller, Step: 7, Seq: 3, Pos: 11, Rows: 1, StepRows: 2, BeganNS: 90, EndedNS: 700, Hits: 5, Misses: 5, BytesRead: 20480, BytesAhead: 8192}
}

// replay emits a chunk to a recorder.
func replay(t *testing.T, c Chunk, records []Record) []sdk.ReadOnlySpan {
	t.Helper()
	rec := tracetest.NewSpanRecorder()
	tp := sdk.NewTracerProvider(sdk.WithSpanProcessor(rec))
	t.Cleanup(func() {
		if err := tp.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	r := NewReplayer(tp, epoch)
	r.LayerKinds = []string{"linear", "full"}
	r.Emit(c, records)
	return rec.Ended()
}

// tree prints spans, children under their parents and in order of name and time, with times as
// nanoseconds since the epoch.
func tree(spans []sdk.ReadOnlySpan, root trace.SpanID) string {
	title := func(s sdk.ReadOnlySpan) string {
		return fmt.Sprintf("%s %d-%d", s.Name(), s.StartTime().Sub(epoch), s.EndTime().Sub(epoch))
	}
	byID := map[trace.SpanID]sdk.ReadOnlySpan{}
	for _, s := range spans {
		byID[s.SpanContext().SpanID()] = s
	}
	rank := []string{SpanEval, SpanHead, SpanLayer, SpanMix, SpanRoute, SpanExpertIO, SpanExperts, SpanRetire, SpanPrefetch}
	var b strings.Builder
	var under func(parent trace.SpanID, indent string)
	under = func(parent trace.SpanID, indent string) {
		var children []sdk.ReadOnlySpan
		for _, s := range spans {
			if s.Parent().SpanID() == parent {
				children = append(children, s)
			}
		}
		slices.SortStableFunc(children, func(x, y sdk.ReadOnlySpan) int {
			if c := slices.Index(rank, x.Name()) - slices.Index(rank, y.Name()); c != 0 {
				return c
			}
			return x.StartTime().Compare(y.StartTime())
		})
		for _, s := range children {
			b.WriteString(indent + title(s))
			for _, a := range s.Attributes() {
				fmt.Fprintf(&b, " %s=%s", strings.TrimPrefix(string(a.Key), "moeflux."), a.Value.String())
			}
			for _, l := range s.Links() {
				if to, ok := byID[l.SpanContext.SpanID()]; ok {
					b.WriteString(" -> " + title(to))
				} else {
					b.WriteString(" -> nowhere")
				}
			}
			b.WriteString("\n")
			under(s.SpanContext().SpanID(), indent+"  ")
		}
	}
	under(root, "")
	return "\n" + b.String()
}

func TestTreeOfOneToken(t *testing.T) {
	spans := replay(t, chunk(), token())
	if got := tree(spans, trace.SpanID(caller.SpanID)); got != wantToken {
		t.Errorf("got%swant%s", got, wantToken)
	}
	for _, s := range spans {
		if s.SpanContext().TraceID() != trace.TraceID(caller.TraceID) {
			t.Errorf("%s is in trace %s, want the caller's", s.Name(), s.SpanContext().TraceID())
		}
		if s.Name() == SpanEval && !s.Parent().IsRemote() {
			t.Errorf("the parent of %s is not remote", s.Name())
		}
		if s.Status().Code != codes.Unset || len(s.Events()) != 0 {
			t.Errorf("%s has status %v and events %v", s.Name(), s.Status(), s.Events())
		}
		if s.InstrumentationScope().Name != ScopeName {
			t.Errorf("%s has scope %q, want %q", s.Name(), s.InstrumentationScope().Name, ScopeName)
		}
	}
}

// The order in which rings were emptied does not matter.
func TestOrderOfRecords(t *testing.T) {
	records := token()
	slices.Reverse(records)
	if got := tree(replay(t, chunk(), records), trace.SpanID(caller.SpanID)); got != wantToken {
		t.Errorf("reversed records: got%swant%s", got, wantToken)
	}
}

// A missing record leaves out the spans that need it and changes the times of no other, with one
// exception: a wave whose slots' return was not recorded ends its retirement with the ticket's
// handling.
func TestMissingRecords(t *testing.T) {
	full := lines(wantToken)
	for _, tc := range []struct {
		name  string
		stage stages.StageID
		kind  Kind
		layer int32
		wave  int32
		gone  []string // spans of the layer
	}{
		{"begin", stages.Dispatch, stages.KindBeginLayer, 1, 0, []string{SpanLayer, SpanMix}},
		{"begin at the router", stages.Router, stages.KindBeginLayer, 1, 0, nil},
		{"scores", stages.Router, stages.KindPicksReady, 1, 0, []string{SpanMix, SpanRoute, SpanExpertIO}},
		{"routed", stages.ExpertIO, stages.KindLayerRouted, 1, 0, []string{SpanExpertIO}},
		{"first wave", stages.Dispatch, stages.KindWaveResident, 1, 0, []string{SpanExperts, SpanRetire}},
		{"last wave", stages.Dispatch, stages.KindWaveResident, 1, 1, []string{SpanExpertIO, SpanExperts, SpanRetire}},
		{"ticket", stages.Combine, stages.KindTicketDone, 1, 0, []string{SpanExperts, SpanRetire}},
		{"mix ticket", stages.Dispatch, stages.KindTicketDone, 1, 0, nil},
		{"retired", stages.Sequencer, stages.KindLayerRetired, 1, 0, []string{SpanLayer}},
		{"prefetch", stages.ExpertIO, stages.KindPrefetchExperts, 1, 1, []string{SpanPrefetch}},
		{"reads", stages.ExpertIO, stages.KindExpertsRead, 1, 0, nil},
		{"released", stages.ExpertIO, stages.KindSlotsReleased, 1, 1, nil},
		{"logits", stages.Sequencer, stages.KindLogitsReady, 2, 0, []string{SpanHead}},
		{"read logits", stages.Dispatch, stages.KindReadLogits, 2, 0, []string{SpanHead}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			records := slices.DeleteFunc(token(), func(r Record) bool {
				return r.Step == 7 && r.Stage == tc.stage && r.Kind == tc.kind && r.Layer == tc.layer && r.Wave == tc.wave
			})
			if len(records) == len(token()) {
				t.Fatal("no record was removed")
			}
			var want []string
			for _, line := range full {
				name, _, _ := strings.Cut(line, " ")
				mine := strings.Contains(line, " layer=1 ") || name == SpanHead
				if mine && slices.Contains(tc.gone, name) {
					continue
				}
				if tc.name == "released" && strings.HasPrefix(line, "moeflux.retire 565-569") {
					line = strings.Replace(line, "565-569", "565-570", 1)
				}
				if slices.Contains(tc.gone, SpanHead) { // the chunk's sums would lack the head
					line = strings.Replace(line, " compute_ns=309 overlap_ns=110 disk_wait_ns=25", "", 1)
				}
				if tc.name == "reads" && strings.HasPrefix(line, SpanPrefetch) { // they may go on
					line = strings.Replace(line, "192-421", "192-700", 1)
					line = strings.Replace(line, "queue_ns=2", "queue_ns=2 prefetch_pending=2", 1)
				}
				if tc.name == "mix ticket" {
					line = strings.Replace(line, " device_ns=95", "", 1)
				}
				want = append(want, line)
			}
			got := lines(tree(replay(t, chunk(), records), trace.SpanID(caller.SpanID)))
			loose := tc.name == "routed" || tc.name == "begin at the router"
			if slices.Contains(tc.gone, SpanLayer) || loose {
				got, want = withoutAttributes(got), withoutAttributes(want)
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

func lines(s string) []string {
	var out []string
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, line)
		}
	}
	return out
}

// withoutAttributes keeps name and times.
func withoutAttributes(lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = strings.Join(strings.Fields(line)[:2], " ")
	}
	return out
}

// Spans of a layer whose own span is missing hang under the chunk.
func TestChildrenOfMissingLayer(t *testing.T) {
	records := slices.DeleteFunc(token(), func(r Record) bool { return r.Kind == stages.KindLayerRetired })
	spans := replay(t, chunk(), records)
	eval := spans[len(spans)-1]
	for _, s := range spans[:len(spans)-1] {
		if s.Parent().SpanID() != eval.SpanContext().SpanID() || len(s.Links()) != 0 {
			t.Errorf("%s has parent %s and links %v, want the chunk's span and none", s.Name(), s.Parent().SpanID(), s.Links())
		}
	}
}

// Records without the time they were sent at give no span that would need it, and no queue time.
func TestUnknownQueuedTimes(t *testing.T) {
	records := token()
	for i := range records {
		records[i].QueuedNS = 0
	}
	for _, s := range replay(t, chunk(), records) {
		switch s.Name() {
		case SpanLayer, SpanMix, SpanExpertIO, SpanHead:
			t.Errorf("%s was emitted from %v to %v", s.Name(), s.StartTime(), s.EndTime())
		}
		for _, a := range s.Attributes() {
			if a.Key == KeyQueueNS {
				t.Errorf("%s has %s=%s", s.Name(), a.Key, a.Value.String())
			}
		}
	}
}

// A wave that was done before dispatch had stamped its record has no length.
func TestCrossedTimes(t *testing.T) {
	records := []Record{
		rec(7, 0, 0, stages.Dispatch, stages.KindWaveResident, 10, 11, 50, 1, 0, 0, 0, stages.Times{}),
		rec(7, 0, 0, stages.Combine, stages.KindTicketDone, 29, 30, 31, 0, 0, 0, 5, stages.Times{}),
	}
	want := `
moeflux.eval 90-700 step=7 seq=3 pos=11 rows=1 step_rows=2 hits=5 misses=5 bytes_read=20480 bytes_ahead=8192
  moeflux.experts 30-30 layer=0 wave=0 experts=1 device_ns=5 queue_ns=1
  moeflux.retire 30-31 layer=0 wave=0 queue_ns=1
`
	if got := tree(replay(t, chunk(), records), trace.SpanID(caller.SpanID)); got != want {
		t.Errorf("got%swant%s", got, want)
	}
}

func TestFailedChunkWithoutCaller(t *testing.T) {
	c := chunk()
	c.Trace = stages.TraceContext{}
	c.Err = errors.New("layer 3: no memory")
	spans := replay(t, c, nil)
	if len(spans) != 1 || spans[0].Parent().IsValid() || !spans[0].SpanContext().TraceID().IsValid() {
		t.Fatalf("got %d spans, want one root", len(spans))
	}
	s := spans[0]
	if s.Status().Code != codes.Error || s.Status().Description != c.Err.Error() {
		t.Errorf("status %v, want the error", s.Status())
	}
	if ev := s.Events(); len(ev) != 1 || !ev[0].Time.Equal(epoch.Add(700)) {
		t.Errorf("events %v, want one at the end", ev)
	}
}

// A replayer forgets one step's records before the next, whatever they were.
func TestReplayerForgets(t *testing.T) {
	rec := tracetest.NewSpanRecorder()
	r := NewReplayer(sdk.NewTracerProvider(sdk.WithSpanProcessor(rec)), epoch)
	r.Emit(chunk(), token())
	n := len(rec.Ended())
	c := chunk()
	c.Step = 8
	r.Emit(c, token())
	if got := len(rec.Ended()) - n; got != 1 {
		t.Errorf("a step without records gave %d spans, want the chunk's alone", got)
	}
	r.Emit(chunk(), token())
	if got := len(rec.Ended()) - n - 1; got != n {
		t.Errorf("the same records gave %d spans, then %d", n, got)
	}
}

// A caller that is not sampled costs one span that is not recorded.
func TestNotSampled(t *testing.T) {
	rec := tracetest.NewSpanRecorder()
	tp := sdk.NewTracerProvider(sdk.WithSpanProcessor(rec), sdk.WithSampler(sdk.ParentBased(sdk.AlwaysSample())))
	c := chunk()
	c.Trace.Flags = 0
	NewReplayer(tp, epoch).Emit(c, token())
	if n := len(rec.Ended()); n != 0 {
		t.Errorf("got %d spans, want none", n)
	}
}

// Records that no stage would write do no harm.
func TestNonsense(t *testing.T) {
	var records []Record
	for kind := range 2 * stages.NumKinds {
		for _, layer := range []int32{-1, 0, 1 << 30} {
			records = append(records, Record{Step: 7, Layer: layer, Wave: -5, Stage: 77, Kind: kind, EndedNS: -1})
		}
	}
	if spans := replay(t, chunk(), records); len(spans) == 0 {
		t.Error("the chunk's own span is missing")
	}
}

// manyRecords is a token of a model with 41 layers: 41·7 + 1 spans.
func manyRecords() []Record {
	var out []Record
	at := int64(1000)
	for l := range int32(41) {
		add := func(stage stages.StageID, kind Kind, count, miss int32) {
			at += 10
			out = append(out, Record{Step: 7, Layer: l, Stage: stage, Kind: kind, QueuedNS: at, BeganNS: at + 2, EndedNS: at + 5, Count: count, Miss: miss})
		}
		add(stages.Dispatch, stages.KindBeginLayer, 0, 0)
		add(stages.ExpertIO, stages.KindPrefetchExperts, 2, 0)
		add(stages.Dispatch, stages.KindTicketDone, 0, 0)
		add(stages.Router, stages.KindPicksReady, 8, 1)
		add(stages.ExpertIO, stages.KindLayerRouted, 6, 2)
		add(stages.ExpertIO, stages.KindExpertsRead, 2, 0)
		add(stages.Dispatch, stages.KindWaveResident, 8, 0)
		add(stages.Combine, stages.KindTicketDone, 1, 0)
		add(stages.ExpertIO, stages.KindSlotsReleased, 8, 0)
		add(stages.Sequencer, stages.KindLayerRetired, 0, 0)
	}
	return out
}

type discard struct{ n int }

func (d *discard) OnStart(context.Context, sdk.ReadWriteSpan) {}
func (d *discard) OnEnd(sdk.ReadOnlySpan)                     { d.n++ }
func (d *discard) Shutdown(context.Context) error             { return nil }
func (d *discard) ForceFlush(context.Context) error           { return nil }

func BenchmarkEmit(b *testing.B) {
	for _, sampled := range []bool{true, false} {
		b.Run(fmt.Sprintf("sampled=%v", sampled), func(b *testing.B) {
			d := &discard{}
			tp := sdk.NewTracerProvider(sdk.WithSpanProcessor(d), sdk.WithSampler(sdk.ParentBased(sdk.AlwaysSample())))
			r := NewReplayer(tp, epoch)
			c := chunk()
			if !sampled {
				c.Trace.Flags = 0
			}
			records := manyRecords()
			b.ReportAllocs()
			for b.Loop() {
				r.Emit(c, records)
			}
			b.ReportMetric(float64(d.n)/float64(b.N), "spans/op")
		})
	}
}
