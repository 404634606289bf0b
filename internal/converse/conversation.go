package converse

import (
	"context"

	moeflux "github.com/moeflux/moeflux-actor"
)

// Conversation is messages and the session that has read them.
type Conversation struct {
	Session *moeflux.Session
	// Ask has the model answer the messages of the session and shows the answer. It asks
	// interrupted whether to end it.
	Ask func(ctx context.Context, interrupted func() bool) (Answer, error)
	// Keep saves the session; nil if it is not kept.
	Keep func(context.Context) error

	System   string            // "" for none
	Messages []moeflux.Message // the system message is not among them

	last string // figures of the last answer
}

// Answer is how an answer ended.
type Answer struct {
	Reason  moeflux.StopReason
	Figures string // for people
}

// All returns the messages with that of the system.
func (v *Conversation) All() []moeflux.Message {
	if v.System == "" {
		return v.Messages
	}
	return append([]moeflux.Message{{Role: moeflux.System, Content: v.System}}, v.Messages...)
}

// TakeUp goes on with the messages of the session. The system message is that of the session unless
// another was given.
func (v *Conversation) TakeUp(keptSystem bool) {
	v.Messages = v.Session.Messages()
	if len(v.Messages) > 0 && v.Messages[0].Role == moeflux.System {
		if keptSystem {
			v.System = v.Messages[0].Content
		}
		v.Messages = v.Messages[1:]
	}
}

// Say gives the session the messages as they are now, for the next answer.
func (v *Conversation) Say() error { return v.Session.SetMessages(v.All()) }

// Answered takes the answer over, if the session has one.
func (v *Conversation) Answered() bool {
	now := v.Session.Messages()
	if len(now) <= len(v.All()) {
		return false
	}
	v.Messages = append(v.Messages, now[len(now)-1])
	return true
}

// answer adds the assistant's message to the conversation, as far as it came before the person said
// so. With an error, or if nothing came, nothing is added.
func (v *Conversation) answer(ctx context.Context, interrupted func() bool) (moeflux.StopReason, error) {
	if err := v.Say(); err != nil {
		return "", err
	}
	a, err := v.Ask(ctx, interrupted)
	if err != nil {
		return "", err
	}
	v.Answered()
	v.last = a.Figures
	return a.Reason, nil
}
