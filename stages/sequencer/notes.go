package sequencer

import (
	"errors"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/schedule"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// notes is what the stage writes its records with, and what is waited for at the moment.
type notes struct {
	log *record.Log
	now int64 // when the message was taken
	// why requests that are ready are in no step, since their own stand.since
	ready [schedule.Kinds]stand
}

// stand is a wait that has not ended: of requests that are ready, or of a step whose next layer
// could begin.
type stand struct {
	on     bool
	reason record.Reason
	since  int64
	way    stages.StepID // the step that is in the way; 0: none, or several
}

// begin notes what a message's records are written with.
func (n *notes) begin(out *stages.Outbox) { n.log, n.now = out.Records(), out.NowNS }

// wait writes the record of a wait that ends now, unless it took no time.
func (n *notes) wait(w record.Wait) {
	if w.EndedNS = n.now; w.EndedNS > w.BeganNS {
		n.log.Waits.Add(w)
	}
}

// noteStep notes that a step was formed, and of what.
func (c *Core) noteStep(s *step) {
	b := s.head.Batch
	r := record.Step{Step: uint64(s.head.ID), BeganNS: c.notes.now, Rows: int32(len(b.Rows)), Lane: uint8(b.Lane)}
	if b.Urgent {
		r.Urgent, r.Decode = 1, r.Rows
	}
	c.notes.log.Steps.Add(r)
	for i := range b.Segments {
		g, q := &b.Segments[i], s.reqs[i]
		c.noteReady(q)
		r := record.Segment{
			Step: uint64(s.head.ID), Request: q.msg.Request, Seq: uint64(g.Seq), Pos: int32(g.Pos), Row: int32(g.Row), Rows: int32(g.Rows), ArrivedNS: q.msg.SentNS,
		}
		r.TraceID, r.SpanID = sampled(&q.msg.Trace)
		c.notes.log.Segments.Add(r)
	}
}

// noteEnd notes that a step is over.
func (c *Core) noteEnd(s *step, failed bool, out *stages.Outbox) {
	c.noteBegun(s)
	r := record.StepEnded{Step: uint64(s.head.ID), EndedNS: c.notes.now}
	if failed {
		r.Failed = 1
	}
	c.notes.log.StepsEnded.Add(r)
	out.Stepped = true
}

// noteRequest notes how a request ended. pos is where it began.
func (c *Core) noteRequest(m *stages.EvalChunk, began int64, pos int, outcome record.Outcome, cost *stages.Cost) {
	r := record.Request{
		Request: m.Request, Seq: uint64(m.Seq), ArrivedNS: m.SentNS, BeganNS: began, EndedNS: c.notes.now, Pos: int32(pos), Rows: int32(len(m.Tokens)),
		Outcome: outcome, Hit: int32(cost.Hit), Late: int32(cost.Late), Missed: int32(cost.Missed), SlotBytes: cost.SlotBytes, HostBytes: cost.HostBytes,
		DiskBytes: cost.DiskBytes, AheadBytes: cost.AheadBytes, DeviceNS: cost.DeviceNS, DiskWaitNS: cost.DiskWaitNS,
	}
	r.TraceID, r.SpanID = sampled(&m.Trace)
	c.notes.log.Requests.Add(r)
}

// sampled returns a caller's span, or zeros if nobody records it.
func sampled(t *stages.TraceContext) (trace [16]byte, span [8]byte) {
	if !t.Sampled() {
		return trace, span
	}
	return t.TraceID, t.SpanID
}

// outcome says how a request has ended.
func (r *request) outcome(err error) record.Outcome {
	switch {
	case err == nil:
		return record.Answered
	case r.cancel != nil && errors.Is(err, r.cancel):
		return record.Cancelled
	case r.account.Requests == 0: // it was in no step
		return record.Refused
	}
	return record.Failed
}

// noteReady writes what a request has waited for that is taken out of those that are ready, or that
// wait for something else from now on.
func (c *Core) noteReady(r *request) {
	kind := schedule.Prompt
	if r.Left() == 1 {
		kind = schedule.Decode
	}
	if at := &c.notes.ready[kind]; at.on && r.ready > 0 {
		c.notes.wait(record.Wait{Request: r.msg.Request, For: uint64(at.way), BeganNS: max(r.ready, at.since), Layer: -1, Wave: -1, Reason: at.reason})
	}
	r.ready = 0
}

// noteMoved writes that chunks have waited while a state was on its way to or from where it was
// parked.
func (c *Core) noteMoved(a *away, waits []stages.Message) {
	for _, m := range waits {
		if chunk, ok := m.(*stages.EvalChunk); ok {
			c.notes.wait(record.Wait{Request: chunk.Request, BeganNS: max(chunk.SentNS, a.began), Layer: -1, Wave: -1, Reason: record.StateReady})
		}
	}
}

// makeReady makes a request ready for a step.
func (c *Core) makeReady(r *request) {
	r.ready = c.notes.now
	c.schedule.Add(r)
}

// standing notes what is waited for after a message: by requests that are in no step, and by steps
// whose next layer could begin.
func (c *Core) standing() {
	for kind := range schedule.Kind(schedule.Kinds) {
		c.restand(kind, c.whyReady(kind))
	}
	for _, s := range c.flight.lanes {
		if s == nil {
			continue
		}
		if at := c.whyStep(s); at.reason != s.stand.reason || at.on != s.stand.on || at.way != s.stand.way {
			c.noteBegun(s)
			s.stand = at
		}
	}
}

// restand begins a wait of all requests of a kind, if it is another one than before.
func (c *Core) restand(kind schedule.Kind, at stand) {
	was := &c.notes.ready[kind]
	if at.on == was.on && at.reason == was.reason && at.way == was.way {
		return
	}
	for _, r := range c.schedule.Waiting(kind) {
		ready := r.ready
		c.noteReady(r)
		r.ready = ready
	}
	*was = at
}

// whyReady returns why requests of a kind that are ready are in no step.
func (c *Core) whyReady(kind schedule.Kind) stand {
	if len(c.schedule.Waiting(kind)) == 0 {
		return stand{}
	}
	at := stand{on: true, reason: record.Lane, since: c.notes.now}
	switch c.schedule.Why(kind) {
	case schedule.OtherKind:
		at.reason = record.Turn
		at.way = c.flight.only(func(s *step) bool { return s.kind != kind })
	case schedule.Company:
		at.reason = record.Company
	default: // the schedule has no room, or there is no lane
		at.way = c.flight.only(func(*step) bool { return true })
	}
	return at
}

// whyStep returns why a step's next layer has not begun although the one before is with the device,
// or why the step is not over although it is computed.
func (c *Core) whyStep(s *step) stand {
	at := stand{on: true, since: c.notes.now}
	switch {
	case c.computed(s):
		at.reason = record.Turn
		at.way = c.flight.only(func(o *step) bool { return o.kind != s.kind })
		return at
	case s.failing != nil || s.begun == c.cfg.Layers || s.begun > s.submitted:
		return stand{}
	}
	if c.full(s) {
		at.reason = record.LayerCredit
		part := c.partOf(s.begun)
		at.way = c.flight.only(func(o *step) bool { return o.credits[part] > 0 && (o.kind == s.kind || !c.cfg.Preempts) })
		return at
	}
	at.reason = record.Turn
	at.way = c.flight.only(func(o *step) bool { return o.kind != s.kind })
	return at
}

// noteBegun ends the wait of a step for its next layer.
func (c *Core) noteBegun(s *step) {
	if at := &s.stand; at.on {
		c.notes.wait(record.Wait{Step: uint64(s.head.ID), For: uint64(at.way), BeganNS: at.since, Layer: int32(s.begun), Wave: -1, Reason: at.reason})
	}
	s.stand = stand{}
}

// only returns the step that is one of some, if there is exactly one.
func (f *flight) only(one func(*step) bool) (id stages.StepID) {
	for _, s := range f.lanes {
		switch {
		case s == nil || !one(s):
		case id != 0:
			return 0
		default:
			id = s.head.ID
		}
	}
	return id
}

// Level tells how many requests wait for a step, for memory or for their state.
func (c *Core) Level(l *record.Level) {
	l.Requests = int32(c.schedule.Ready() + c.asks.queue.Len())
}
