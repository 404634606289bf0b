package chat

import (
	"slices"
	"strings"
)

// The roles of messages.
const (
	System    = "system"
	Developer = "developer" // what some services call the system
	User      = "user"
	Assistant = "assistant"
	Tool      = "tool" // the result of a call
)

// Message is one message of a conversation. Its JSON is that of OpenAI-style services.
type Message struct {
	Role    string
	Content string
	// Parts is the content if it was given in parts. Content is not read then.
	Parts []Part
	// ReasoningContent is what the assistant thought before it answered, without its marks. Most
	// templates leave it out of earlier turns.
	ReasoningContent string
	// ToolCalls are what the assistant asks for, after its content.
	ToolCalls []ToolCall
	// ToolCallID is, in a message with the role Tool, the ID of the call it answers.
	ToolCallID string
	// Name is who speaks, or the function whose result this is; mostly empty.
	Name string
}

// Part is a part of a message's content: a text. Images and other media are refused by name where
// messages are read.
type Part struct {
	Text string
}

// ToolCall is a call of a function that the assistant asks for.
type ToolCall struct {
	ID   string
	Name string
	// Arguments is a JSON object as text, as the model wrote it. Nothing has checked that it fits
	// the function.
	Arguments string
}

// Text returns the content as one text; parts are lines of it.
func (m Message) Text() string {
	if m.Parts == nil {
		return m.Content
	}
	texts := make([]string, len(m.Parts))
	for i, p := range m.Parts {
		texts[i] = p.Text
	}
	return strings.Join(texts, "\n")
}

// Equal reports whether two messages say the same, with the same division into parts.
func (m Message) Equal(o Message) bool {
	return m.Role == o.Role && m.ReasoningContent == o.ReasoningContent && m.ToolCallID == o.ToolCallID && m.Name == o.Name &&
		(m.Parts == nil) == (o.Parts == nil) && slices.Equal(m.Parts, o.Parts) && (m.Parts != nil || m.Content == o.Content) &&
		slices.Equal(m.ToolCalls, o.ToolCalls)
}
