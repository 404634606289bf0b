package runtime

import (
	"github.com/asynkron/protoactor-go/actor"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/tracing"
)

// Tracing says how traced steps become spans. The zero value means no tracing.
type Tracing struct {
	Provider   oteltrace.TracerProvider
	LayerKinds []string // of the model's layers, by mixer
	TopK       int
	SlotBytes  int // of one expert's record
	// RingRecords is the fixed capacity of each stage's ring of records; see tracing.NewRing.
	RingRecords int
}

// newTracer makes the tracer and the writer of spans.
func (r *Runtime) newTracer() child {
	replayer := tracing.NewReplayer(r.tracing.Provider, r.epoch)
	replayer.LayerKinds = append(replayer.LayerKinds, r.tracing.LayerKinds...)
	r.spans = newSpanWriter(r.log, replayer)
	t := &tracer{r: r, spans: r.spans, steps: make(map[stages.StepID]*gathered)}
	return child{name: "tracer", actor: t, pid: &r.tracer, mailbox: actor.Unbounded()}
}

// flushSpans waits until the tracer has the records of all steps, unless the engine has broken
// down.
func (r *Runtime) flushSpans() {
	if r.tracer == nil {
		return
	}
	select {
	case <-r.fate.broken:
		return
	default:
	}
	b := &barrier{done: make(chan struct{})}
	for _, pid := range r.pids {
		r.system.Root.Send(pid, b)
	}
	select {
	case <-b.done:
	case <-r.fate.broken:
	}
}

// tracer is the actor that gathers the records of ended steps. It hands them to a spanWriter, which
// may be slow.
type tracer struct {
	r        *Runtime
	spans    *spanWriter
	steps    map[stages.StepID]*gathered
	barriers int // stages whose barrier has come
}

// gathered is what the stages have sent of one step.
type gathered struct {
	ended   stages.Ended
	records []tracing.Record
	lost    int64
	stages  int
}

// Receive handles one message of the mailbox.
func (t *tracer) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *recordsFlushed:
		t.gather(m)
	case *barrier:
		if t.barriers++; t.barriers == stages.NumStages {
			close(m.done)
		}
	default:
		t.r.unknown(ctx, "tracer")
	}
}

// gather passes a step on when all stages have sent their records.
func (t *tracer) gather(m *recordsFlushed) {
	id := m.ended.Step.ID
	g := t.steps[id]
	if g == nil {
		g = &gathered{ended: m.ended}
		t.steps[id] = g
	}
	g.records = append(g.records, m.records...)
	g.lost += m.lost
	if g.stages++; g.stages < stages.NumStages {
		return
	}
	delete(t.steps, id)
	t.spans.offer(g)
}
