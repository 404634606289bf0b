package runtime

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/moeflux/moeflux-actor/stages"
)

// MessageError answers a request that an engine's actor does not take. The engine is not affected.
type MessageError struct {
	Actor   string // the actor that was asked
	Message string // the type of the message
}

func (e *MessageError) Error() string {
	return fmt.Sprintf("moeflux: the %s actor takes no request of type %s; send the sequencer (Engine.PID) what package stages says a caller sends it", e.Actor, e.Message)
}

// unknown refuses a message that no actor takes. It answers the sender, if there is one, and logs
// the message otherwise.
func (r *Runtime) unknown(ctx actor.Context, name string) {
	switch ctx.Message().(type) {
	case actor.SystemMessage, actor.AutoReceiveMessage:
		return // the actor system's own
	}
	err := &MessageError{Actor: name, Message: fmt.Sprintf("%T", ctx.Message())}
	if ctx.Sender() != nil {
		ctx.Respond(err)
		return
	}
	r.log.Warn("a message was ignored", "actor", err.Actor, "message", err.Message)
}

// request makes the sender of a request its Caller, unless the request names one, and returns the
// stage that the request is for. ok is false for messages that callers do not send, or do not send
// to this stage: a core would take such a message for a broken invariant and stop the engine.
func (s *shell) request(m stages.Message, sender *actor.PID) (to stages.StageID, ok bool) {
	if s.id != stages.Sequencer {
		return s.id, false
	}
	to = stages.Sequencer
	var caller *stages.Caller
	switch m := m.(type) {
	case *stages.EvalChunk:
		caller = &m.Caller
	case *stages.OpenSequence:
		caller = &m.Caller
	case *stages.ResetSequence:
		caller = &m.Caller
	case *stages.CloseSequence:
		caller = &m.Caller
	case *stages.TruncateSequence:
		caller = &m.Caller
	case *stages.KeepCheckpoint:
		caller = &m.Caller
	case *stages.RestoreCheckpoint:
		caller = &m.Caller
	case *stages.ForgetCheckpoint:
		caller = &m.Caller
	case *stages.CapCheckpoints:
		caller = &m.Caller
	case *stages.ResumeSequence:
		caller = &m.Caller
	case *stages.ForgetTexts:
		caller = &m.Caller
	case *stages.DescribeSequence:
		caller = &m.Caller
	case *stages.FreezeSequence:
		caller = &m.Caller
	case *stages.DraftState:
		caller = &m.Caller
	case *stages.AdoptState:
		caller = &m.Caller
	case *stages.ReleaseState:
		caller = &m.Caller
	case *stages.Drain:
		caller = &m.Caller
	case *stages.CollectStats:
		caller = &m.Caller
		if m.Stats == nil {
			m.Stats = new(stages.Stats)
		}
	case *stages.ResizeSlots:
		m.Memory = false
		caller, to = &m.Caller, stages.ExpertIO
	case *stages.DescribePredictions:
		caller, to = &m.Caller, stages.Router
	case *stages.ForgetExperts:
		caller, to = &m.Caller, stages.Router
	case *stages.CancelEval: // without an answer
		return to, true
	default:
		return to, false
	}
	if *caller == nil {
		*caller = sender
	}
	return to, true
}
