package chat

import (
	"errors"
	"fmt"
	"strings"

	"github.com/moeflux/moeflux-actor/tokenizer/jinja"
)

// Errors of conversations that a template cannot write.
var (
	// ErrNoTools reports tools for a template that does not tell the model of them.
	ErrNoTools = errors.New("chat: the model's chat template does not tell the model of tools")
	// ErrNoCalls reports calls for a template that leaves them out.
	ErrNoCalls = errors.New("chat: the model's chat template does not write calls of functions")
)

// Conversation is what a prompt is made of.
type Conversation struct {
	Messages []Message
	Tools    []*Function // that the model may call; nil for none
	// Closed ends the text with the last message. Else it ends with the beginning of the model's
	// turn.
	Closed bool
	// Args has further variables of the template, which win over the others; nil for none.
	Args *jinja.Dict
}

// Prompt returns the text of a conversation, with all that messages hold as this template wants it:
//
//   - Arguments of calls go in as the text they are if the template writes text as it is, so that
//     what the model wrote comes back to it to the byte; else as an object.
//   - Calls without content have an empty text, or null where the template wants that.
//   - Parts go in as a list if the template takes lists, else as one text in lines.
//   - The role developer becomes system if the template does not know it.
//   - Where the template writes IDs of calls and not their names (Kimi), foreign IDs become
//     functions.NAME:N.
//
// The error is ErrNoTools, ErrNoCalls, a *jinja.Error, or says which call has no JSON object for
// arguments.
func (t *Template) Prompt(c Conversation) (string, error) {
	s := t.shape()
	if len(c.Tools) > 0 && !s.tools {
		return "", ErrNoTools
	}
	for _, m := range c.Messages {
		if len(m.ToolCalls) > 0 && !s.calls {
			return "", ErrNoCalls
		}
	}
	tools, err := toolValues(c.Tools)
	if err != nil {
		return "", err
	}
	w := writer{shape: s, ids: map[string]string{}}
	list := jinja.NewList()
	for i, m := range c.Messages {
		d, err := w.message(m)
		if err != nil {
			return "", fmt.Errorf("chat: message %d: %w", i, err)
		}
		list.Append(d)
	}
	return t.Render(jinja.Chat{Messages: list, Tools: tools, AddGenerationPrompt: !c.Closed, Extra: c.Args})
}

// writer makes the values of messages.
type writer struct {
	shape shape
	calls int               // so far
	ids   map[string]string // of calls, as they were and as they are written
}

func (w *writer) message(m Message) (*jinja.Dict, error) {
	role := m.Role
	if role == Developer && !w.shape.developer {
		role = System
	}
	d := message(role, w.content(m))
	if m.ReasoningContent != "" {
		d.Set("reasoning_content", m.ReasoningContent)
		if w.shape.thinking && (m.Text() == "" || len(m.ToolCalls) == 0) { // one of both beside calls
			d.Set("thinking", m.ReasoningContent)
		}
	}
	if len(m.ToolCalls) > 0 {
		list := jinja.NewList()
		for i, c := range m.ToolCalls {
			call, err := w.call(c)
			if err != nil {
				return nil, fmt.Errorf("call %d: %w", i, err)
			}
			list.Append(call)
		}
		d.Set("tool_calls", list)
	}
	if id := m.ToolCallID; id != "" {
		if known, ok := w.ids[id]; ok {
			id = known
		}
		d.Set("tool_call_id", id)
	}
	if m.Name != "" {
		d.Set("name", m.Name)
	}
	return d, nil
}

func (w *writer) content(m Message) jinja.Value {
	if m.Parts != nil && w.shape.parts {
		list := jinja.NewList()
		for _, p := range m.Parts {
			part := jinja.NewDict()
			part.Set("type", "text")
			part.Set("text", p.Text)
			list.Append(part)
		}
		return list
	}
	if text := m.Text(); text != "" || len(m.ToolCalls) == 0 || !w.shape.nulls {
		return text
	}
	return nil
}

func (w *writer) call(c ToolCall) (*jinja.Dict, error) {
	id := c.ID
	if w.shape.idsAlone && !strings.HasPrefix(id, "functions."+c.Name+":") {
		id = fmt.Sprintf("functions.%s:%d", c.Name, w.calls)
	}
	w.calls++
	if c.ID != "" {
		w.ids[c.ID] = id
	}
	if !w.shape.objects {
		return callValue(id, c.Name, c.Arguments), nil
	}
	value, err := jinja.DecodeJSON([]byte(c.Arguments))
	if err != nil {
		return nil, fmt.Errorf("the arguments of %s are not JSON, which this template needs: %w", c.Name, err)
	}
	object, ok := value.(*jinja.Dict)
	if !ok {
		return nil, fmt.Errorf("the arguments of %s are %.40s, not a JSON object, which this template needs", c.Name, c.Arguments)
	}
	return callValue(id, c.Name, object), nil
}

// message returns a message as templates take it.
func message(role string, content jinja.Value) *jinja.Dict {
	d := jinja.NewDict()
	d.Set("role", role)
	d.Set("content", content)
	return d
}

// callValue returns a call as templates take it. A call without an ID has no such key.
func callValue(id, name string, arguments jinja.Value) *jinja.Dict {
	function, call := jinja.NewDict(), jinja.NewDict()
	function.Set("name", name)
	function.Set("arguments", arguments)
	if id != "" {
		call.Set("id", id)
	}
	call.Set("type", "function")
	call.Set("function", function)
	return call
}

// Values returns messages as templates take them that have no calls and no parts. Prompt knows what
// its template takes.
func Values(messages []Message) *jinja.List {
	list := jinja.NewList()
	for _, m := range messages {
		w := writer{}
		if d, err := w.message(m); err == nil { // text arguments cannot fail
			list.Append(d)
		}
	}
	return list
}
