package moeflux

import (
	"crypto/rand"
	"encoding/json"
	"io"

	"github.com/moeflux/moeflux-actor/tokenizer/chat"
	"github.com/moeflux/moeflux-actor/tokenizer/chat/tools"
)

// Tool is a function that the model may call (Request.Tools). It is made by NewTool, by ReadTools,
// or of the JSON that OpenAI-style services take.
type Tool = chat.Function

// ToolCall is a call that the assistant asks for (Message.ToolCalls): an ID, the Name of the tool,
// and Arguments, a JSON object as text. The answer to it is a message with the role ToolResult, the
// call's ID as ToolCallID, and the result as Content.
type ToolCall = chat.ToolCall

// NewTool returns a tool. parameters is the JSON schema of its arguments: whatever encoding/json
// makes a schema of, such as a map or a json.RawMessage.
func NewTool(name, description string, parameters any) (*Tool, error) {
	raw, err := json.Marshal(map[string]any{
		"type": "function", "function": map[string]any{"name": name, "description": description, "parameters": parameters},
	})
	if err != nil {
		return nil, err
	}
	t := new(Tool)
	return t, t.UnmarshalJSON(raw)
}

// ReadTools reads a JSON list of tools, as OpenAI-style services take it.
func ReadTools(r io.Reader) ([]*Tool, error) { return chat.ReadTools(r) }

// CallPiece is a piece of a call of a tool, as the model writes it. The first of a call has ID and
// Name, those after it pieces of Arguments, the last is Done. A call that turns out malformed ends
// with a piece that is Void: what was told of it does not count, and Event.Text has all of it as
// the model wrote it.
type CallPiece struct {
	Index     int // of the call in its answer; -1 if it is void from the beginning
	ID, Name  string
	Arguments string
	Done      bool
	Void      bool
}

// answer tells what in a text is said, thought, or a call, as it comes.
type answer struct {
	parser *tools.Parser // nil where all is said
	tools.Builder
}

// reads makes the answer that of a conversation.
func (a *answer) reads(d *dialect, r *Request, prompt string) {
	a.parser = tools.New(d.syntax, tools.Options{
		Prompt: prompt, Tools: r.Tools, NewID: func(int) string { return "call_" + rand.Text() },
		NoCalls: len(r.Tools) == 0 || r.ToolChoice.None,
	})
}

// push adds text and returns what is certain now: at least one event.
func (a *answer) push(text string) []Event {
	if a.parser == nil {
		a.Add(tools.Event{Kind: tools.Text, Text: text})
		return []Event{{Text: text, Raw: text}}
	}
	return a.told(a.parser.Feed(text), text)
}

// flush ends the answer.
func (a *answer) flush() []Event {
	if a.parser == nil {
		return []Event{{}}
	}
	return a.told(a.parser.End(), "")
}

// told returns the events of what a parser told. The text comes with the first.
func (a *answer) told(pieces []tools.Event, raw string) []Event {
	a.Add(pieces...)
	events := []Event{{Raw: raw}}
	for i := range pieces {
		p := &pieces[i]
		last := &events[len(events)-1]
		if last.Call != nil || last.Text != "" && p.Kind != tools.Text { // in the order in which they were written
			events = append(events, Event{})
			last = &events[len(events)-1]
		}
		switch p.Kind {
		case tools.Text:
			last.Text += p.Text
		case tools.Reasoning:
			last.Reasoning += p.Text
		case tools.CallStart:
			last.Call = &CallPiece{Index: p.Index, ID: p.ID, Name: p.Name}
		case tools.CallArguments:
			last.Call = &CallPiece{Index: p.Index, Arguments: p.Text}
		case tools.CallEnd:
			last.Call = &CallPiece{Index: p.Index, Done: true}
		case tools.Malformed:
			last.Text, last.Call = p.Text, &CallPiece{Index: p.Index, Void: true}
		}
	}
	return events
}
