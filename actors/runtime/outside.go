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
	r, ok := m.(stages.Request)
	if !ok || s.id != stages.Sequencer {
		return s.id, false
	}
	m.Stamp(s.r.Now())
	return r.Ask(sender), true
}
