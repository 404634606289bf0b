package tools

import (
	"strings"

	"github.com/moeflux/moeflux-actor/tokenizer/chat"
)

// Kind says what an Event is.
type Kind int

// The kinds of events.
const (
	// Text is a piece of the answer's content.
	Text Kind = iota
	// Reasoning is a piece of what the model thinks.
	Reasoning
	// Mark is text of the form itself: nothing to show. Only Raw is set.
	Mark
	// CallStart begins the call Index, of the function Name.
	CallStart
	// CallArguments is a piece of the arguments of the call Index. The pieces of a call together
	// are a JSON object.
	CallArguments
	// CallEnd ends the call Index: its arguments are whole.
	CallEnd
	// Malformed is a call that is not well formed, or that the answer ended in. Text is all of it
	// as the model wrote it. If the call had started, Index tells which, and that call is void;
	// else Index is -1.
	Malformed
)

// Event is a part of what a model said.
type Event struct {
	Kind  Kind
	Text  string // of Text, Reasoning, CallArguments and Malformed
	Index int    // of the call, from 0 on; -1 with a Malformed that never started
	ID    string // of CallStart
	Name  string // of CallStart
	// Raw is what the model wrote for this event. The Raw of all events in order is the answer.
	Raw string
}

// Builder makes a message of events. The zero value is ready for use.
type Builder struct {
	content, reasoning strings.Builder
	calls              map[int]*call
	order              []int
	malformed          bool
}

type call struct {
	id, name  string
	arguments strings.Builder
	whole     bool
}

// Add takes the next events.
func (b *Builder) Add(events ...Event) {
	for _, e := range events {
		switch e.Kind {
		case Text:
			b.content.WriteString(e.Text)
		case Reasoning:
			b.reasoning.WriteString(e.Text)
		case CallStart:
			if b.calls == nil {
				b.calls = map[int]*call{}
			}
			b.calls[e.Index] = &call{id: e.ID, name: e.Name}
			b.order = append(b.order, e.Index)
		case CallArguments:
			b.calls[e.Index].arguments.WriteString(e.Text)
		case CallEnd:
			b.calls[e.Index].whole = true
		case Malformed:
			b.content.WriteString(e.Text)
			b.malformed = true
		}
	}
}

// Message returns the assistant's message so far: calls that have ended, and the text of malformed
// ones within the content.
func (b *Builder) Message() chat.Message {
	m := chat.Message{Role: chat.Assistant, Content: b.content.String(), ReasoningContent: b.reasoning.String()}
	for _, i := range b.order {
		if c := b.calls[i]; c.whole {
			m.ToolCalls = append(m.ToolCalls, chat.ToolCall{ID: c.id, Name: c.name, Arguments: c.arguments.String()})
		}
	}
	return m
}

// Malformed reports whether a call was malformed.
func (b *Builder) Malformed() bool { return b.malformed }
