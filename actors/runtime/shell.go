package runtime

import (
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// shell is the actor of one stage.
type shell struct {
	r    *Runtime
	line *line
	id   stages.StageID
	core stages.Core
	out  stages.Outbox

	queue queuePace    // of the sequencer
	full  record.Level // memory for the present one
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
	if s.id == stages.Sequencer && s.r.system.IsStopped() {
		s.r.systemStopped()
		if ctx.Sender() != nil {
			ctx.Respond(s.r.fate.reason)
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
			s.r.unknown(ctx, s.id.String())
		case to != s.id:
			s.r.Send(to, m)
		default:
			s.handle(m)
		}
	default:
		s.r.unknown(ctx, s.id.String())
	}
}

// handle runs the core on a message, does what the core asks for, and notes when.
func (s *shell) handle(m stages.Message) {
	note := s.take(m)
	s.out.NowNS = note.BeganNS
	if s.id == stages.Dispatch {
		s.r.spans.message(m)
	}
	s.r.meter.Before(s.id, m)
	if err := s.core.Step(m, &s.out); err != nil {
		panic(&stageError{s.id, err})
	}
	s.r.meter.After(s.id, m, &s.out)
	s.perform()
	note.EndedNS = s.r.Now()
	s.line.handled = note.EndedNS
	s.out.Records().Handled.Add(note)
	if s.out.Stepped {
		s.level(note.EndedNS)
	}
	s.out.Reset()
	s.out.Spent().Handled(m)
}

// take returns the record of a message that the stage takes now: when the message before it in line
// was done, or when the line began to run. The core may take back the message's memory, so this
// comes before it. A message that was sent while the one before it was being handled is taken when
// it was sent.
func (s *shell) take(m stages.Message) record.Handled {
	now := s.line.handled
	if now == 0 {
		now = s.r.Now()
	}
	r := record.Handled{Layer: -1, Wave: -1, Stage: uint8(s.id), Message: uint8(m.MessageKind()), SentNS: m.Stamped(), BeganNS: max(now, m.Stamped())}
	if head := m.Head(); head != nil && head.ID != 0 {
		r.Step, r.Layer = uint64(head.ID), int32(head.Layer)
	}
	switch m := m.(type) {
	case *stages.BeginLayer:
		r.More = int32(m.More)
	case *stages.WaveResident:
		r.Wave = int32(m.Wave)
	case *stages.WaveSubmitted:
		r.More = int32(m.More)
		if len(m.Slots) > 0 || m.Plan != nil { // else it is whole layers
			r.Wave = int32(m.Wave)
		}
	case *stages.LayerSubmitted:
		r.More = int32(m.More)
	case *stages.SlotsReleased:
		r.Wave = int32(m.Wave)
	case *stages.LayerRetired:
		r.More = int32(m.More)
	}
	return r
}

// level notes how full the engine is.
func (s *shell) level(now int64) {
	s.full = record.Level{AtNS: now}
	for _, of := range s.r.leveled {
		of.Level(&s.full)
	}
	s.out.Records().Levels.Add(s.full)
}

// perform does what the core has written into the outbox.
func (s *shell) perform() {
	for _, id := range s.out.Frees {
		s.r.experts.Free(id)
	}
	for i := range s.out.Reads {
		s.r.experts.Read(&s.out.Reads[i])
	}
	for _, h := range s.out.Hurries {
		s.r.experts.Hurry(h)
	}
	for _, r := range s.out.Recalls {
		s.r.experts.Recall(r)
	}
	for i := range s.out.Asks {
		s.r.hosts.Ask(&s.out.Asks[i])
	}
	for i := range s.out.Shares {
		s.r.hosts.Share(&s.out.Shares[i])
	}
	for _, p := range s.out.Parks {
		s.r.parking.Park(p)
	}
	for i := range s.out.Awaits {
		a := &s.out.Awaits[i]
		s.r.awaits.await(s.id, a, s.out.Spent().TicketDone(a.Step, a.ID))
	}
	if len(s.out.Sends) > 0 {
		now := s.r.Now()
		for _, m := range s.out.Sends {
			s.r.sendAt(m.To, m.Msg, now)
		}
	}
	if n := s.out.Served; n > 0 {
		s.queue.note(n, s.r.Now())
	}
	s.line.answered = s.line.answered || len(s.out.Answers) > 0
	for _, a := range s.out.Answers {
		switch m := a.Msg.(type) {
		case *stages.SlotsResized:
			s.r.experts.Resized(m.Slots)
		case *stages.ExpertsForgotten:
			s.r.experts.Forgotten()
		}
		s.tellWhen(a.Msg)
		s.r.answer(a.To, a.Msg)
	}
	for _, n := range s.out.Notes {
		s.r.log.Debug(n.Text, n.Args...)
	}
	if l := s.out.Linger; l.Round != 0 {
		spent, wait := s.out.Spent(), max(l.AtNS-s.r.Now(), 0)
		if unsent := s.r.linger.begin(spent.LingerOver(l.Round), time.Duration(wait), s.r); unsent != nil {
			spent.Handled(unsent)
		}
	}
	if ns := s.out.Stint; ns != 0 {
		s.r.stint.begin(time.Duration(ns), s.r)
	}
}
