package actors

import (
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/tracing"
)

// shell is the actor of one stage.
type shell struct {
	e    *Engine
	id   stages.StageID
	core stages.Core
	out  stages.Outbox
	ring *tracing.Ring // nil: no tracing

	hints  int32            // hints that were recorded
	hintOf map[uint64]int32 // of the speculative reads under way that were recorded, by readTag
}

// stageError is an error that a core returned: a broken invariant.
type stageError struct {
	stage stages.StageID
	err   error
}

func (e *stageError) Error() string { return fmt.Sprintf("%s: %v", e.stage, e.err) }
func (e *stageError) Unwrap() error { return e.err }

// Receive handles one message of the mailbox. Stages and callbacks send without a sender, so a
// message that has one is a request from outside.
func (s *shell) Receive(ctx actor.Context) {
	if s.id == stages.Sequencer && s.e.system.IsStopped() {
		s.e.systemStopped()
		if ctx.Sender() != nil {
			ctx.Respond(s.e.reason)
		}
		return
	}
	switch m := ctx.Message().(type) {
	case stages.Message:
		if ctx.Sender() == nil {
			s.handle(m)
			return
		}
		switch to, ok := s.request(m, ctx.Sender()); {
		case !ok:
			s.e.unknown(ctx, s.id.String())
		case to != s.id:
			s.e.sendTo(to, m)
		default:
			s.handle(m)
		}
	case *flushRecords:
		s.flush(m)
	case *barrier:
		s.e.system.Root.Send(s.e.tracer, m)
	default:
		s.e.unknown(ctx, s.id.String())
	}
}

// handle runs the core on a message, does what the core asks for, and records the times if the step
// is traced.
func (s *shell) handle(m stages.Message) {
	head := m.Head()
	traced := s.ring != nil && head != nil && head.Batch != nil && head.Batch.Traced
	var began int64
	var at stages.Step
	if traced {
		began, at = s.e.now(), *head
	}
	s.e.meter.Before(s.id, head)
	if err := s.core.Step(m, &s.out); err != nil {
		panic(&stageError{s.id, err})
	}
	s.e.meter.After(s.id, m, &s.out)
	var rec tracing.Record
	if traced {
		rec = s.record(m, &at, began)
	}
	if s.ring != nil {
		s.recordMatched(m, s.e.now())
		s.endHint(m)
	}
	s.perform()
	if traced {
		rec.EndedNS = s.e.now()
		s.ring.Add(rec)
	}
	s.endTraced()
	s.out.Reset()
	s.out.Spent().Handled(m)
}

// perform does what the core has written into the outbox.
func (s *shell) perform() {
	for _, id := range s.out.Frees {
		s.e.freeSlot(id)
	}
	for i := range s.out.Reads {
		s.read(&s.out.Reads[i])
	}
	for _, h := range s.out.Hurries {
		s.e.pool.Hurry(readTag(h.Slot, h.Gen))
	}
	for i := range s.out.Awaits {
		a := &s.out.Awaits[i]
		s.e.awaits.await(s.id, a, s.out.Spent().TicketDone(a.Step, a.ID))
	}
	for _, m := range s.out.Sends {
		s.e.sendTo(m.To, m.Msg)
	}
	for _, a := range s.out.Answers {
		switch m := a.Msg.(type) {
		case *stages.SlotsResized:
			s.e.resized(m)
		case *stages.ExpertsForgotten:
			if s.e.slots.staging != nil {
				s.e.slots.staging.tier.forgetAll()
			}
		}
		s.e.answer(a.To, a.Msg)
	}
	for _, n := range s.out.Notes {
		if s.e.log != nil {
			s.e.log.Debug(n.Text, n.Args...)
		}
	}
	if round := s.out.Linger; round != 0 {
		spent := s.out.Spent()
		if unsent := s.e.linger.begin(spent.LingerOver(round), s.e); unsent != nil {
			spent.Handled(unsent)
		}
	}
}

// sendTo posts a message to a stage, from any goroutine. Messages of traced steps carry the time at
// which they were sent. So do all messages to expert-IO, which has no other clock.
func (e *Engine) sendTo(to stages.StageID, m stages.Message) {
	if h := m.Head(); h != nil && (to == stages.ExpertIO || h.Batch != nil && h.Batch.Traced) {
		h.SentNS = e.now()
	}
	e.system.Root.Send(e.pids[to], m)
}

// answer delivers a core's answer to its caller.
func (e *Engine) answer(to stages.Caller, m stages.Message) {
	if c, ok := m.(*stages.CollectStats); ok && c.Stats != nil {
		e.addReads(c.Stats)
	}
	switch c := to.(type) {
	case chan stages.Message:
		select {
		case c <- m: // the engine's own have a place for their only answer
		default:
			e.log.Warn("an answer was dropped: its channel has no room", "answer", fmt.Sprintf("%T", m))
		}
	case *reply:
		c.deliver(m)
	case *actor.PID:
		e.system.Root.Send(c, m)
	case nil: // nobody asked for one
	default:
		e.log.Warn("an answer was dropped: its caller is neither a channel of stages.Message nor a PID", "answer", fmt.Sprintf("%T", m), "caller", fmt.Sprintf("%T", c))
	}
}

// now returns the time on the engine's clock, in nanoseconds since it was opened.
func (e *Engine) now() int64 { return int64(time.Since(e.epoch)) }
