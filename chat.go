package moeflux

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

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
	if g.prompt, err = g.m.render(d, g.r, slices.Concat(s.messages, g.r.Messages)); err != nil {
		return err
	}
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
	p.Text, err = d.template.Prompt(chat.Conversation{Messages: messages, Tools: r.Tools, Args: args})
	switch refusal, ok := errors.AsType[*jinja.Error](err); {
	case ok:
		return p, &TemplateError{Refused: refusal.Kind == jinja.KindTemplate, Err: err}
	case err != nil:
		return p, err
	}
	if p.IDs, err = m.text.Encode(p.Text, false); err != nil {
		return p, fmt.Errorf("the conversation cannot be encoded: %w", err)
	}
	if len(p.IDs) == 0 {
		return p, ErrEmptyPrompt
	}
	return p, nil
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
