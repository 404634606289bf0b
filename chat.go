package moeflux

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/moeflux/moeflux-actor/tokenizer/chat"
	"github.com/moeflux/moeflux-actor/tokenizer/jinja"
)

// Chat answers the conversation of a request, in the way of the model's chat template.
func (m *Model) Chat(ctx context.Context, r Request) Events {
	return m.events(ctx, r, sessionChat)
}

// converse makes a prompt of a session's conversation and the request's messages.
func (g *generation) converse(s *Session) error {
	if n := len(s.messages); len(g.r.Messages) == 0 && (n == 0 || s.messages[n-1].Role == Assistant) {
		return ErrEmptyPrompt
	}
	d, err := g.m.chat()
	if err != nil {
		return err
	}
	messages := slices.Concat(s.messages, g.r.Messages)
	if g.prompt, err = g.m.render(d, g.r, messages); err != nil {
		return err
	}
	g.turn = g.turnEnd(messages)
	g.ends = d.ends
	g.marked = len(g.r.Tools) > 0 || d.marked
	g.answer.reads(d, g.r, g.prompt.Text)
	return nil
}

// render returns messages as the model's template writes them, as tokens and as text.
func (m *Model) render(d *dialect, r *Request, messages []Message) (p Prompt, err error) {
	args, err := templateArgs(r.TemplateArgs)
	if err != nil {
		return p, err
	}
	text, err := d.template.Prompt(chat.Conversation{Messages: m.guarded(d, messages), Tools: m.guardedTools(r.Tools), Args: args, Closed: r.Continue})
	switch refusal, ok := errors.AsType[*jinja.Error](err); {
	case ok:
		return p, &TemplateError{Refused: refusal.Kind == jinja.KindTemplate, Err: err}
	case err != nil:
		return p, err
	}
	if r.Continue {
		if text, err = upToLast(text, m.text.Guard(messages[len(messages)-1].Text())); err != nil {
			return p, err
		}
	}
	if p.IDs, err = m.text.EncodeGuarded(text); err != nil {
		return p, fmt.Errorf("the conversation cannot be encoded: %w", err)
	}
	p.Text = m.text.Unguard(text)
	if len(p.IDs) == 0 {
		return p, ErrEmptyPrompt
	}
	return p, nil
}

// guarded returns messages in whose texts nothing becomes a special token: who writes them must not
// be able to end a turn and begin another. The marks of reasoning stay what they are in what the
// assistant said, where templates look for them.
func (m *Model) guarded(d *dialect, messages []Message) []Message {
	out := slices.Clone(messages)
	for i := range out {
		guard := m.text.Guard
		if marks := d.syntax.Reasoning; out[i].Role == Assistant && marks.Begin != "" {
			guard = func(text string) string {
				return strings.NewReplacer(m.text.Guard(marks.Begin), marks.Begin, m.text.Guard(marks.End), marks.End).Replace(m.text.Guard(text))
			}
		}
		o := &out[i]
		o.Content, o.ReasoningContent = guard(o.Content), guard(o.ReasoningContent)
		o.Parts = slices.Clone(o.Parts)
		for k := range o.Parts {
			o.Parts[k].Text = guard(o.Parts[k].Text)
		}
		o.ToolCalls = slices.Clone(o.ToolCalls)
		for k := range o.ToolCalls {
			o.ToolCalls[k].Arguments = guard(o.ToolCalls[k].Arguments)
		}
	}
	return out
}

// guardedTools returns tools in whose texts nothing becomes a special token: who asks passes on
// what third parties wrote. The model reads all of it, as plain text.
func (m *Model) guardedTools(list []*Tool) []*Tool {
	out := slices.Clone(list)
	for i, t := range out {
		raw, err := t.MarshalJSON()
		if err != nil {
			continue // not made by this package; the template says what it makes of it
		}
		guarded := new(Tool)
		if safe := guardedJSON(raw, m.text.Guard); !bytes.Equal(safe, raw) && guarded.UnmarshalJSON(safe) == nil {
			out[i] = guarded
		}
	}
	return out
}

// jsonString is a string in JSON. Nothing else there has quotes.
var jsonString = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// guardedJSON guards the strings of JSON, however they are escaped, and leaves the rest as it is.
func guardedJSON(raw []byte, guard func(string) string) []byte {
	return jsonString.ReplaceAllFunc(raw, func(quoted []byte) []byte {
		var text string
		if json.Unmarshal(quoted, &text) != nil {
			return quoted
		}
		safe := guard(text)
		if safe == text {
			return quoted
		}
		quoted, _ = json.Marshal(safe) // a string always can
		return quoted
	})
}

// upToLast cuts a conversation after the text of its last message, which the answer continues.
func upToLast(conversation, last string) (string, error) {
	last = strings.TrimSpace(last) // some templates trim it
	i := strings.LastIndex(conversation, last)
	if last == "" || i < 0 {
		return "", &RequestError{Field: "Continue", Err: errors.New("the model's chat template does not write the last message as it is, so that nothing can continue it")}
	}
	return conversation[:i+len(last)], nil
}

// ChatPrompt returns the prompt that Chat would make of a request, without answering it: to count
// its tokens, or to look at it. The errors are those of Chat.
func (m *Model) ChatPrompt(r Request) (Prompt, error) {
	if err := r.check(sessionChat); err != nil {
		return Prompt{}, err
	}
	if len(r.Messages) == 0 {
		return Prompt{}, ErrEmptyPrompt
	}
	d, err := m.chat()
	if err != nil {
		return Prompt{}, err
	}
	return m.render(d, &r, r.Messages)
}

// templateArgs turns Go's values into those of templates.
func templateArgs(values map[string]any) (*jinja.Dict, error) {
	args := jinja.NewDict()
	for _, name := range slices.Sorted(maps.Keys(values)) {
		raw, err := json.Marshal(values[name])
		if err != nil {
			return nil, &RequestError{Field: "TemplateArgs", Err: fmt.Errorf("%s: %w", name, err)}
		}
		value, err := jinja.DecodeJSON(raw)
		if err != nil {
			return nil, &RequestError{Field: "TemplateArgs", Err: fmt.Errorf("%s: %w", name, err)}
		}
		args.Set(name, value)
	}
	return args, nil
}
