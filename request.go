package moeflux

import (
	"errors"
	"fmt"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/tokenizer/chat"
)

// Message is one message of a conversation: a Role and a Content; of the assistant also what it
// thought before it answered, ReasoningContent, and the ToolCalls that it asks for. The result of a
// call has its ToolCallID. Its JSON is that of OpenAI-style services.
type Message = chat.Message

// The roles of messages.
const (
	System     = chat.System
	User       = chat.User
	Assistant  = chat.Assistant
	ToolResult = chat.Tool
)

// Request is what a model is asked: a text to continue (Generate) or a conversation to answer
// (Chat). All fields but the prompt or the messages may be left zero. A request may be used again;
// the model changes nothing of it.
type Request struct {
	// Prompt is the text that Generate continues. In a session that has one it goes on from the
	// text there, and may be empty.
	Prompt string
	// PromptIDs is the text in tokens, in place of Prompt.
	PromptIDs []int32
	// Messages is the conversation that Chat answers, oldest first; mostly the last one is the
	// user's. In a session they are added to those that are there.
	Messages []Message
	// Continue has Chat go on from the last message, which is the assistant's, in place of
	// beginning an answer of its own. The End has the new text alone.
	Continue bool
	// Tools are the functions that the model may call in Chat. The calls are in the answer's
	// ToolCalls; who runs them asks again, with their results as messages.
	Tools []*Tool
	// ToolChoice says whether it has to call some, or must not. The zero value leaves that to it.
	ToolChoice ToolChoice
	// TemplateArgs are further variables of the chat template, such as "enable_thinking": false.
	// Values are what encoding/json can write.
	TemplateArgs map[string]any

	// MaxTokens bounds the new tokens. 0 means until the model ends the text, or the context is
	// full; there is no promise of memory then, and the text may end with a *StateMemoryError
	// while others have it all. With a limit the request waits until there is memory for all of it.
	MaxTokens int
	// Stop ends the text before any of these strings.
	Stop []string
	// Sampling says how tokens are chosen: by default as the model's makers say.
	Sampling Sampling
	// Constraint bounds what the model may write, but not what it thinks before that. With Tools an
	// answer of Chat is calls, or what a JSONSchema allows; other constraints leave no call.
	Constraint *Constraint
	// LogProbs wants the log-probability of each new token, and TopLogProbs those of the n most
	// likely ones at its place, in the model's own distribution: before penalties, bias,
	// temperature and cuts.
	LogProbs    bool
	TopLogProbs int

	// Progress wants Event.Reading while a prompt is read.
	Progress bool

	// Session keeps the text or the conversation for the next request. nil forgets it.
	Session *Session
	// NoReuse reads the whole prompt, even where the engine remembers how another text began like
	// it, and leaves nothing for others to find. Those who must not learn from the time of an
	// answer what others have asked want it. A session that goes on always reuses its own.
	NoReuse bool

	// Class says who gets memory first where there is too little for all, and Key shares it out
	// within a class by what each key was served: name a tenant, or an API key. Prompts that are
	// read at once share the time by Key, too. Weight is how large the shares of Key are, from 1
	// to MaxWeight: twice as large with 2 as with 1, which 0 means, too; the newest request of Key
	// says it for all. The deadline of a request is that of its context. In a session, these three
	// of its first request hold for all later ones.
	Class  Class
	Key    string
	Weight int
	// Scope names those whose texts this one may begin like without being read again, and who may
	// begin like it. Others do not learn of it, not even by the time of an answer. "" is one like
	// others. In a session, that of its first request holds.
	Scope string

	// Interrupted, if not nil, is asked between two tokens, and between parts of a long prompt,
	// whether to end the text there. The end is an orderly one, with StopInterrupted as its reason,
	// which neither a cancelled context nor breaking out of the loop can give.
	Interrupted func() bool
}

// Class is the order in which requests get memory for their states.
type Class = actors.Class

// The classes.
const (
	Background  = actors.Background
	Normal      = actors.Normal
	Interactive = actors.Interactive
)

// MaxWeight is the largest Request.Weight.
const MaxWeight = actors.MaxWeight

// check reports fields that no model can serve, and those of the other kind of request.
func (r *Request) check(kind sessionKind) error {
	switch {
	case kind == sessionChat && (r.Prompt != "" || r.PromptIDs != nil):
		return &RequestError{Field: "Prompt", Err: errors.New("Chat answers Messages; Generate continues a Prompt")}
	case kind == sessionText && len(r.Messages) > 0:
		return &RequestError{Field: "Messages", Err: errors.New("Generate continues a Prompt; Chat answers Messages")}
	case r.Prompt != "" && r.PromptIDs != nil:
		return &RequestError{Field: "PromptIDs", Err: errors.New("there is a Prompt, too")}
	case r.Continue && (kind == sessionText || len(r.Messages) == 0 || r.Messages[len(r.Messages)-1].Role != Assistant || r.Session != nil):
		return &RequestError{Field: "Continue", Err: errors.New("the last of Messages must be the assistant's, and there can be no Session")}
	case kind == sessionText && len(r.Tools) > 0:
		return &RequestError{Field: "Tools", Err: errors.New("only Chat has tools")}
	case r.MaxTokens < 0:
		return &RequestError{Field: "MaxTokens", Err: fmt.Errorf("%d: must be 0 or more", r.MaxTokens)}
	case r.Weight < 0 || r.Weight > MaxWeight:
		return &RequestError{Field: "Weight", Err: fmt.Errorf("%d: must be from 1 to %d, or 0, which is 1", r.Weight, MaxWeight)}
	case r.TopLogProbs < 0:
		return &RequestError{Field: "TopLogProbs", Err: fmt.Errorf("%d: must be 0 or more", r.TopLogProbs)}
	}
	if err := r.ToolChoice.check(r); err != nil {
		return &RequestError{Field: "ToolChoice", Err: err}
	}
	for i, m := range r.Messages {
		if err := m.Validate(); err != nil {
			return &RequestError{Field: fmt.Sprintf("Messages[%d]", i), Err: err}
		}
	}
	for _, s := range r.Stop {
		if s == "" {
			return &RequestError{Field: "Stop", Err: errEmptyStop}
		}
	}
	return nil
}
