package converse

import (
	"context"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"

	moeflux "github.com/moeflux/moeflux-actor"
)

// typed are the lines that a person types; an error is what reading one gives.
type typed struct {
	t       *testing.T
	lines   []any
	prompts []string
}

func (l *typed) ReadLine(_ context.Context, prompt string) (string, error) {
	l.prompts = append(l.prompts, prompt)
	if len(l.lines) == 0 {
		return "", io.EOF
	}
	next := l.lines[0]
	l.lines = l.lines[1:]
	if err, ok := next.(error); ok {
		return "", err
	}
	return next.(string), nil
}

func (l *typed) Close() error { return nil }

// scripted is a conversation with a model that gives these answers, one after the other; one
// without a role is an error.
func scripted(lines *typed, answers ...moeflux.Message) (d *Dialogue, notes *strings.Builder) {
	notes = new(strings.Builder)
	v := &Conversation{Session: new(moeflux.Session)}
	v.Ask = func(context.Context, func() bool) (Answer, error) {
		answer := answers[0]
		if answers = answers[1:]; answer.Role == "" {
			return Answer{}, errors.New("it failed")
		}
		return Answer{Reason: moeflux.StopEOS}, v.Session.SetMessages(append(v.Session.Messages(), answer))
	}
	return &Dialogue{Conversation: v, Lines: lines, Notes: notes, Explain: error.Error, Fatal: func(error) bool { return false }}, notes
}

// The person gives the results of calls, and the model goes on with them.
func TestDialogueCalls(t *testing.T) {
	said := func(text string) moeflux.Message { return moeflux.Message{Role: moeflux.User, Content: text} }
	calls := moeflux.Message{Role: moeflux.Assistant, ToolCalls: []moeflux.ToolCall{{ID: "1", Name: "cold", Arguments: "{}"}, {ID: "2", Name: "wet", Arguments: "{}"}}}
	result := func(id, name, text string) moeflux.Message {
		return moeflux.Message{Role: moeflux.ToolResult, ToolCallID: id, Name: name, Content: text}
	}
	answer := moeflux.Message{Role: moeflux.Assistant, Content: "Stay in."}
	for _, c := range []struct {
		name    string
		lines   []any
		answers []moeflux.Message
		want    []moeflux.Message
		notes   string
	}{
		{"answered", []any{"Shall I go out?", "yes", `"""very`, `wet"""`}, []moeflux.Message{calls, answer},
			[]moeflux.Message{said("Shall I go out?"), calls, result("1", "cold", "yes"), result("2", "wet", "very\nwet"), answer}, ""},
		{"a failure takes the results back", []any{"go?", "yes", "no", "yes", "yes"}, []moeflux.Message{calls, {}, answer},
			[]moeflux.Message{said("go?"), calls, result("1", "cold", "yes"), result("2", "wet", "yes"), answer}, "error: it failed"},
		{"dropped", []any{"go?", "yes", ErrLineDropped, "never mind"}, []moeflux.Message{calls, answer},
			[]moeflux.Message{said("go?"), calls, said("never mind"), answer}, "without results"},
		{"retried", []any{"go?", "/retry", "yes", "no"}, []moeflux.Message{answer, calls, answer},
			[]moeflux.Message{said("go?"), calls, result("1", "cold", "yes"), result("2", "wet", "no"), answer}, ""},
		{"left", []any{"go?", "yes"}, []moeflux.Message{calls}, []moeflux.Message{said("go?"), calls}, ""},
	} {
		lines := &typed{t: t, lines: c.lines}
		d, notes := scripted(lines, c.answers...)
		if err := d.Run(t.Context()); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if !reflect.DeepEqual(d.Messages, c.want) || !strings.Contains(notes.String(), c.notes) {
			t.Errorf("%s:\n%+v\nwant\n%+v\nnotes %q", c.name, d.Messages, c.want, notes)
		}
		if !slices.Contains(lines.prompts, "result of cold> ") {
			t.Errorf("%s: asked for %q", c.name, lines.prompts)
		}
	}
}
