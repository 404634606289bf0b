package tracing

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// rig is a log that the test writes as an engine of two layers does, and its emitter. The test's
// clock counts in milliseconds.
type rig struct {
	t     *testing.T
	log   *record.Log
	spans *tracetest.InMemoryExporter
	e     *Emitter
	step  uint64
	hosts bool // layers ask expert hosts, too
}

const ms = int64(time.Millisecond)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func newRig(t *testing.T, bytes int, options ...sdktrace.TracerProviderOption) *rig {
	r := &rig{t: t, log: record.NewLog(bytes), spans: tracetest.NewInMemoryExporter()}
	tp := sdktrace.NewTracerProvider(append(options, sdktrace.WithSyncer(r.spans))...)
	r.e = NewEmitter(tp, r.log, About{Epoch: epoch, LayerKinds: []string{"full", "linear"}, SlotBytes: 1000, Host: func(n int) string { return []string{"one:1", "two:1"}[n] }, Exactness: "exact"})
	return r
}

// caller is a sampled span of a caller's; 0 is none.
func caller(n byte) (t [16]byte, s [8]byte) {
	if n == 0 {
		return t, s
	}
	return [16]byte{15: n}, [8]byte{7: n}
}

// form writes a step of one row of each request, by the callers of these numbers, at a time.
func (r *rig) form(at int64, callers ...byte) uint64 {
	r.step++
	r.log.Steps.Add(record.Step{Step: r.step, BeganNS: at * ms, Rows: int32(len(callers)), Decode: int32(len(callers))})
	for i, c := range callers {
		s := record.Segment{Step: r.step, Request: uint64(c), Seq: uint64(c), Row: int32(i), Rows: 1, ArrivedNS: (at - 1) * ms}
		s.TraceID, s.SpanID = caller(c)
		if c >= 100 { // not sampled
			s.TraceID, s.SpanID = caller(0)
		}
		r.log.Segments.Add(s)
	}
	return r.step
}

// run writes what is done for a step: a layer takes 10 ms and has a hit and a miss.
func (r *rig) run(step uint64, at int64) (end int64) { return r.layers(step, at, 2, 1) }

// layers is run with a number of layers, and of misses in each.
func (r *rig) layers(step uint64, at int64, layers, misses int32) (end int64) {
	h := func(k messageKey, layer int32, sent, began, ended int64) {
		wave := int32(-1)
		if k == resident || k == released {
			wave = 0
		}
		r.log.Handled.Add(record.Handled{
			Step: step, Layer: layer, Wave: wave, Stage: k.stage, Message: k.message, SentNS: (at + sent) * ms, BeganNS: (at + began) * ms, EndedNS: (at + ended) * ms,
		})
	}
	for layer := range layers {
		h(begun, layer, 0, 1, 2)
		r.log.Submissions.Add(record.Submission{Step: step, Layer: layer, Wave: -1, Part: record.Mix, SubmittedNS: (at + 1) * ms, BeganNS: (at + 1) * ms, EndedNS: (at + 3) * ms, DeviceNS: 2 * ms})
		h(picked, layer, 3, 3, 4)
		h(routed, layer, 4, 4, 5)
		r.log.Uses.Add(record.Use{Step: step, Layer: layer, Expert: 1, AtNS: (at + 4) * ms, Found: record.Resident})
		for expert := range misses {
			r.log.Uses.Add(record.Use{Step: step, Layer: layer, Expert: 2 + expert, AtNS: (at + 4) * ms, Found: record.Missing})
			r.log.Reads.Add(record.Read{Step: step, Layer: layer, Expert: 2 + expert, AskedNS: (at + 4) * ms, BeganNS: (at + 4) * ms, EndedNS: (at + 6) * ms, PlacedNS: (at + 6) * ms, WantedNS: (at + 4) * ms, Bytes: 1000})
		}
		if r.hosts {
			ask := record.Answer{Step: step, Layer: layer, Host: layer, AskedNS: (at + 4) * ms, EndedNS: (at + 6) * ms, WaitedNS: 1, ReadNS: 2, ComputedNS: ms, Uses: 3}
			ask.Failed = uint8(layer)
			r.log.Answers.Add(ask)
		}
		h(resident, layer, 6, 6, 7)
		r.log.Submissions.Add(record.Submission{Step: step, Layer: layer, Wave: 0, Uses: 2, Part: record.Experts, SubmittedNS: (at + 7) * ms, BeganNS: (at + 7) * ms, EndedNS: (at + 9) * ms, DeviceNS: 2 * ms, StarvedNS: 4 * ms})
		h(computed, layer, 9, 9, 9)
		h(released, layer, 9, 9, 9)
		h(retired, layer, 9, 10, 10)
		at += 10
	}
	return at
}

// end writes the end of a step and of its requests.
func (r *rig) end(step uint64, at int64, callers ...byte) {
	r.log.StepsEnded.Add(record.StepEnded{Step: step, EndedNS: at * ms})
	for _, c := range callers {
		q := record.Request{Request: uint64(c), Seq: uint64(c), ArrivedNS: 1, BeganNS: 2, EndedNS: at * ms, Rows: 1, Hit: 2, Missed: 2}
		if q.TraceID, q.SpanID = caller(c); c >= 100 {
			q.TraceID, q.SpanID = caller(0)
		}
		r.log.Requests.Add(q)
	}
}

func (r *rig) named(name string) (of []tracetest.SpanStub) {
	for _, s := range r.spans.GetSpans() {
		if s.Name == name {
			of = append(of, s)
		}
	}
	return of
}

// A step keeps its requests, however much is written between the moments at which its own record
// and those of its segments are looked for.
func TestStepsWhileTheyAreWritten(t *testing.T) {
	for range 100 {
		r := newRig(t, 1<<22)
		written := make(chan struct{})
		go func() {
			defer close(written)
			for at := range int64(200) {
				r.form(at, 1)
			}
		}()
		for done := false; !done; {
			select {
			case <-written:
				done = true
			default:
			}
			r.e.readSteps()
		}
		for _, t := range r.e.order {
			if !t.decided {
				r.t.Fatalf("step %d has %d of its %d rows", t.rec.Step, t.rows, t.rec.Rows)
			}
		}
		if n := len(r.e.order); n != 200 {
			t.Fatalf("%d steps of 200", n)
		}
	}
}

func (r *rig) count(want map[string]int) {
	r.t.Helper()
	for name, n := range want {
		if got := len(r.named(name)); got != n {
			r.t.Errorf("%d spans %s, want %d", got, name, n)
		}
	}
}

func value(s tracetest.SpanStub, key attribute.Key) any {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value.AsInterface()
		}
	}
	return nil
}

// A step is emitted some time after its end, with everything that was written by then, at the times
// that were written. One that nobody traces is not.
func TestOneStep(t *testing.T) {
	r := newRig(t, 1<<20)
	plain := r.form(1, 100)
	at := r.run(plain, 1)
	r.end(plain, at, 100)
	step := r.form(30, 7)
	r.e.Poll(35*ms, false) // amid the step
	at = r.run(step, 30)
	r.end(step, at, 7)
	r.e.Poll(at*ms+settleNS-1, false)
	if n := len(r.spans.GetSpans()); n != 0 {
		t.Fatalf("%d spans before the step has settled", n)
	}
	if r.e.Idle() {
		t.Error("the emitter is idle while a step settles")
	}
	r.e.Poll(at*ms+settleNS, false)
	r.count(map[string]int{SpanEval: 1, SpanStep: 1, SpanLayer: 2, SpanMix: 2, SpanRoute: 2, SpanExpertIO: 2, SpanRead: 2, SpanExperts: 2, SpanRetire: 2, SpanHead: 0})
	s := r.named(SpanStep)[0]
	if !s.StartTime.Equal(epoch.Add(30*time.Millisecond)) || !s.EndTime.Equal(epoch.Add(50*time.Millisecond)) {
		t.Errorf("the step is from %v to %v", s.StartTime, s.EndTime)
	}
	for key, want := range map[attribute.Key]int64{
		KeyHits: 2, KeyMisses: 2, KeyBytesRead: 2000, KeyComputeNS: 8 * ms, KeyDiskWaitNS: 8 * ms, KeyStep: int64(step), KeyRows: 1, KeyRequests: 1,
	} {
		if value(s, key) != want {
			t.Errorf("%s is %v, want %d", key, value(s, key), want)
		}
	}
	if !r.e.Idle() || r.e.Stats != (Stats{Steps: 1}) {
		t.Errorf("at the end: idle %v, %+v", r.e.Idle(), r.e.Stats)
	}
}

// What hosts answer hangs below the layer that asked, with what they say of its time.
func TestAway(t *testing.T) {
	r := newRig(t, 1<<20)
	r.hosts = true
	step := r.form(1, 7)
	at := r.run(step, 1)
	r.end(step, at, 7)
	r.e.Poll(0, true)
	spans, layers := r.named(SpanAway), r.named(SpanExpertIO)
	if len(spans) != 2 || len(layers) != 2 {
		t.Fatalf("%d answers in %d layers", len(spans), len(layers))
	}
	for i, s := range spans {
		if s.Parent.SpanID() != layers[i].SpanContext.SpanID() || s.EndTime.Sub(s.StartTime) != 2*time.Millisecond {
			t.Errorf("answer %d hangs below %v, from %v to %v", i, s.Parent.SpanID(), s.StartTime, s.EndTime)
		}
	}
	for key, want := range map[attribute.Key]any{
		KeyHost: "one:1", KeyNetworkNS: ms - 3, KeyHostWaitNS: int64(1), KeyHostReadNS: int64(2), KeyHostComputeNS: ms, KeyExperts: int64(3), KeyLayer: int64(0),
	} {
		if got := value(spans[0], key); got != want {
			t.Errorf("%s is %v, want %v", key, got, want)
		}
	}
	if lost := spans[1]; lost.Status.Code != codes.Error || value(lost, KeyHost) != "two:1" || value(lost, KeyNetworkNS) != nil {
		t.Errorf("an ask that failed is %+v", lost)
	}
}

// A step of three requests, one of them not sampled, is one tree, below the first sampled request
// and linked to the other, which is linked to it.
func TestASharedStep(t *testing.T) {
	r := newRig(t, 1<<20)
	step := r.form(1, 100, 1, 2)
	r.end(step, r.run(step, 1), 100, 1, 2)
	r.e.Poll(0, true)
	r.count(map[string]int{SpanEval: 2, SpanStep: 1, SpanLayer: 2})
	s := r.named(SpanStep)[0]
	for _, v := range r.named(SpanEval) {
		switch id := v.SpanContext.SpanID(); v.SpanContext.TraceID()[15] {
		case 1:
			if s.Parent.SpanID() != id || len(v.Links) != 0 {
				t.Errorf("the step does not hang below the first request")
			}
		case 2:
			if len(s.Links) != 1 || s.Links[0].SpanContext.SpanID() != id || len(v.Links) != 1 || v.Links[0].SpanContext.SpanID() != s.SpanContext.SpanID() {
				t.Errorf("the step and the second request are not linked: %v and %v", s.Links, v.Links)
			}
		}
	}
	if value(s, KeyRequests) != int64(3) {
		t.Errorf("the step has %v requests", value(s, KeyRequests))
	}
}

// A step whose segments are still being written is not taken for one that nobody traces.
func TestAStepThatIsBeingWritten(t *testing.T) {
	r := newRig(t, 1<<20)
	r.log.Steps.Add(record.Step{Step: 1, BeganNS: ms, Rows: 2})
	r.e.Poll(ms, false)
	r.log.Segments.Add(record.Segment{Step: 1, Request: 9, Seq: 9, Rows: 1})
	r.e.Poll(ms, false)
	s := record.Segment{Step: 1, Request: 1, Seq: 1, Row: 1, Rows: 1, ArrivedNS: 1}
	s.TraceID, s.SpanID = caller(1)
	r.log.Segments.Add(s)
	r.step = 1
	r.end(1, r.run(1, 1), 1)
	r.e.Poll(0, true)
	r.count(map[string]int{SpanStep: 1, SpanLayer: 2, SpanEval: 1})
}

// A device that routes by itself tells what it picked after the step, and the spans wait for all of
// it, but not for ever, since a row whose numbers are broken picks nothing.
func TestPicksThatComeAfterTheStep(t *testing.T) {
	use := func(r *rig, step uint64, layer, expert, rows int32) {
		r.log.Uses.Add(record.Use{Step: step, Layer: layer, Expert: expert, Rows: rows, Found: record.Resident})
	}
	for _, all := range []bool{true, false} {
		r := newRig(t, 1<<20)
		r.e.about.TopK = 2
		step := r.form(10, 1, 2)
		r.end(step, 30, 1, 2)
		for _, u := range [][3]int32{{0, 1, 2}, {0, 2, 2}, {1, 5, 2}, {1, 6, 1}} {
			use(r, step, u[0], u[1], u[2])
		}
		r.e.Poll(30*ms+countedNS-1, false)
		if n := len(r.named(SpanStep)); n != 0 {
			t.Fatalf("%d spans of a step with three of the last layer's four picks", n)
		}
		now := 30*ms + countedNS
		hits := int64(4)
		if all {
			use(r, step, 1, 7, 1)
			now, hits = now-1, 5
		}
		r.e.Poll(now, false)
		if s := r.named(SpanStep); len(s) != 1 || value(s[0], KeyHits) != hits {
			t.Fatalf("%d steps, %v; want one with %d hits", len(s), s, hits)
		}
	}
}

// A request that never came into a step has a span with what it waited for, and says how it ended.
func TestARefusedRequest(t *testing.T) {
	r := newRig(t, 1<<20)
	r.log.Waits.Add(record.Wait{Request: 5, BeganNS: ms, EndedNS: 3 * ms, Layer: -1, Wave: -1, Reason: record.Memory})
	r.log.Waits.Add(record.Wait{Request: 6, BeganNS: ms, EndedNS: 3 * ms, Layer: -1, Wave: -1, Reason: record.Lane})
	q := record.Request{Request: 5, Seq: 5, ArrivedNS: ms, EndedNS: 4 * ms, Outcome: record.Refused}
	q.TraceID, q.SpanID = caller(5)
	r.log.Requests.Add(q)
	r.e.Poll(4*ms+settleNS, false)
	r.count(map[string]int{SpanEval: 1, SpanWait: 1})
	v := r.named(SpanEval)[0]
	if v.Status.Code != codes.Error || value(v, KeyOutcome) != "refused" || value(v, KeyQueueNS) != 3*ms || value(r.named(SpanWait)[0], KeyReason) != "memory" {
		t.Errorf("the request says %+v", v)
	}
}

// A hint's span ends with its last read, also if that ends long after the step, and says if one
// never ended. It is linked to its layer.
func TestHints(t *testing.T) {
	for _, late := range []bool{true, false} {
		r := newRig(t, 1<<20)
		step := r.form(1, 1)
		guess := func(v record.Verdict, expert int32) {
			r.log.Guesses.Add(record.Guess{Hint: 3, Step: step, AtNS: 2 * ms, Layer: 1, Ahead: 1, Expert: expert, Verdict: v})
		}
		read := func(expert int32, ended int64) {
			r.log.Reads.Add(record.Read{Step: step, Hint: 3, Layer: 1, Expert: expert, AskedNS: 2 * ms, BeganNS: 3 * ms, EndedNS: ended, PlacedNS: ended, Bytes: 1000})
		}
		guess(record.Issued, 4)
		guess(record.Declined, 5)
		guess(record.Issued, 6)
		read(4, 5*ms)
		at := r.run(step, 1)
		r.end(step, at, 1)
		r.e.Poll(at*ms+settleNS, false)
		r.count(map[string]int{SpanStep: 1, SpanPrefetch: 0})
		want := map[attribute.Key]any{KeyPrefetchIssued: int64(2), KeyPrefetchDeclined: int64(1), KeyPrefetchLate: false, KeyLayersAhead: int64(1)}
		ended := at * ms
		if late {
			read(6, 100*ms)
			ended = 100 * ms
		} else {
			want[KeyPrefetchPending] = int64(1)
		}
		r.e.Poll(at*ms+hintNS+1, false)
		r.count(map[string]int{SpanPrefetch: 1})
		h := r.named(SpanPrefetch)[0]
		for key, v := range want {
			if value(h, key) != v {
				t.Errorf("late %v: %s is %v, want %v", late, key, value(h, key), v)
			}
		}
		if !h.EndTime.Equal(epoch.Add(time.Duration(ended))) || h.Parent.SpanID() != r.named(SpanStep)[0].SpanContext.SpanID() {
			t.Errorf("late %v: the hint ends at %v", late, h.EndTime)
		}
		if len(h.Links) != 1 || h.Links[0].SpanContext.SpanID() != r.named(SpanLayer)[1].SpanContext.SpanID() {
			t.Errorf("late %v: the hint is linked to %v", late, h.Links)
		}
	}
}

// What is forgotten before it is read is counted, and the steps say so that it may have been of.
// What was forgotten before the first sampled step is nobody's loss.
func TestForgottenRecords(t *testing.T) {
	r := newRig(t, 64<<10)
	for range 300 {
		step := r.form(1, 100)
		r.end(step, r.run(step, 1), 100)
	}
	step := r.form(50, 1)
	r.end(step, r.run(step, 50), 1)
	r.e.Poll(0, true)
	if r.e.Stats != (Stats{Steps: 1}) || value(r.named(SpanStep)[0], KeyRecordsLost) != nil {
		t.Errorf("%+v of one step, and nothing of it was forgotten", r.e.Stats)
	}
	step = r.form(100, 1)
	r.e.Poll(100*ms, false)
	for i := range int64(300) {
		r.run(step, 101+20*i)
	}
	r.end(step, 9000, 1)
	r.e.Poll(0, true)
	steps := r.named(SpanStep)
	if r.e.Stats.RecordsLost == 0 || value(steps[1], KeyRecordsLost) != r.e.Stats.RecordsLost {
		t.Errorf("%+v, the step says %v", r.e.Stats, value(steps[1], KeyRecordsLost))
	}
}

// panics is a span processor that panics when a step ends.
type panics struct{ sdktrace.SpanProcessor }

func (panics) OnStart(context.Context, sdktrace.ReadWriteSpan) {}
func (panics) Shutdown(context.Context) error                  { return nil }
func (panics) OnEnd(s sdktrace.ReadOnlySpan) {
	if s.Name() == SpanHead || s.Name() == SpanStep {
		panic("no room")
	}
}

// A processor that panics costs the step, and nothing else.
func TestAProcessorThatPanics(t *testing.T) {
	r := newRig(t, 1<<20, sdktrace.WithSpanProcessor(panics{}))
	told := 0
	r.e.Panicked = func(any) { told++ }
	step := r.form(1, 1)
	r.end(step, r.run(step, 1), 1)
	r.e.Poll(0, true)
	if r.e.Stats != (Stats{StepsLost: 1}) || told != 1 {
		t.Errorf("%+v, told %d times", r.e.Stats, told)
	}
	r.count(map[string]int{SpanEval: 1, SpanLayer: 2})
}

// What a call asks for hangs below it; the call ends when all of that is emitted. Calls beyond what
// the emitter can take are counted, and are not traced as such.
func TestCalls(t *testing.T) {
	r := newRig(t, 1<<20)
	woken := 0
	r.e.Calls.Wake = func() { woken++ }
	ctx, c := r.e.Calls.Begin(context.Background(), CallStart{Operation: "chat", Model: "m", ArrivedNS: ms})
	own := trace.SpanContextFromContext(ctx)
	if !own.IsSampled() || woken != 1 {
		t.Fatalf("the context has %v", own)
	}
	s := record.Segment{Step: 1, Request: 1, Seq: 1, Rows: 1, ArrivedNS: 2 * ms, TraceID: own.TraceID(), SpanID: own.SpanID()}
	r.step = 1
	r.log.Steps.Add(record.Step{Step: 1, BeganNS: 3 * ms, Rows: 1})
	r.log.Segments.Add(s)
	at := r.run(1, 3)
	r.log.StepsEnded.Add(record.StepEnded{Step: 1, EndedNS: at * ms})
	r.log.Requests.Add(record.Request{Request: 1, Seq: 1, ArrivedNS: 2 * ms, BeganNS: 3 * ms, EndedNS: at * ms, TraceID: own.TraceID(), SpanID: own.SpanID()})
	cause := errors.New("out of paper")
	c.End(CallEnd{EndedNS: (at + 1) * ms, InputTokens: 3, OutputTokens: 2, Finish: "eos", FirstToken: time.Second, Account: stages.Account{QueueNS: 5}, Err: cause})
	r.e.Poll(at*ms, false)
	r.count(map[string]int{"chat m": 0, SpanEval: 0})
	r.e.Poll(at*ms+settleNS, false)
	r.count(map[string]int{"chat m": 1, SpanEval: 1, SpanStep: 1})
	call, v := r.named("chat m")[0], r.named(SpanEval)[0]
	if v.Parent.SpanID() != call.SpanContext.SpanID() || call.Parent.IsValid() || !call.EndTime.Equal(epoch.Add(time.Duration((at+1)*ms))) {
		t.Errorf("the call %+v is not above its request %+v", call, v)
	}
	if value(call, KeyInputTokens) != int64(3) || value(call, KeyFirstToken) != 1.0 || value(call, KeyQueueNS) != int64(5) || call.Status.Description != cause.Error() {
		t.Errorf("the call says %v, %v", call.Attributes, call.Status)
	}
	for range mostEvents {
		r.e.Calls.Begin(context.Background(), CallStart{})
	}
	if ctx, c := r.e.Calls.Begin(context.Background(), CallStart{}); c != nil || trace.SpanContextFromContext(ctx).IsValid() {
		t.Error("a call was taken beyond the bound")
	}
	r.e.Poll(at*ms+settleNS, false)
	if r.e.Stats.CallsLost != 1 {
		t.Errorf("%+v, want a call lost", r.e.Stats)
	}
	if _, c := (*Calls)(nil).Begin(context.Background(), CallStart{}); c != nil {
		t.Error("no tracing, and a call")
	}
}
