package moeflux

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/testenv"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/stages/sample/constraint"
	"github.com/moeflux/moeflux-actor/tokenizer/chat"
	"github.com/moeflux/moeflux-actor/tokenizer/chat/tools"
)

// bounded has arguments that soon end.
func bounded(t *testing.T, name string) *Tool {
	t.Helper()
	tool, err := NewTool(name, "", json.RawMessage(`{"type": "object", "properties": {"n": {"type": "integer", "minimum": 0, "maximum": 9}, "word": {"enum": ["é", "b"]}},
		"required": ["n"], "additionalProperties": false}`))
	if err != nil {
		t.Fatal(err)
	}
	return tool
}

// asked asks the model at temperature 1 for a call.
func asked(t *testing.T, choice ToolChoice, seed uint64) Request {
	return Request{
		Messages: []Message{{Role: User, Content: "x"}}, Tools: []*Tool{bounded(t, "one"), bounded(t, "two")}, ToolChoice: choice, MaxTokens: 1000,
		Sampling: Sampling{Temperature: new(1.0), Seed: new(seed), LogitBias: map[int32]float64{}},
	}
}

// id returns a token.
func id(t *testing.T, m *Model, content string) int32 {
	t.Helper()
	token, ok := m.text.TokenID(content)
	if !ok {
		t.Fatalf("the fixture's tokenizer has no token %s", content)
	}
	return token
}

// The form that a family is said to call in is one that there is.
func TestFamiliesCall(t *testing.T) {
	function := []*chat.Function{new(chat.Function)}
	if err := json.Unmarshal([]byte(`{"name": "f"}`), function[0]); err != nil {
		t.Fatal(err)
	}
	for _, arch := range model.Known() {
		s := tools.Detect("", tools.Format(arch.ToolCalls()))
		if s.Calls == tools.None {
			continue // its calls stay text
		}
		if g, err := s.CallGrammar(function, false); err != nil || g.Rules == "" {
			t.Errorf("%s: %q: %v", arch, s.Calls, err)
		}
	}
}

// Models of all families call when they must, as they must: a model that writes anything at all
// does.
func TestToolChoice(t *testing.T) {
	templates, err := filepath.Glob("tokenizer/chat/tools/testdata/*.jinja")
	if err != nil || len(templates) < 7 {
		t.Fatal(templates, err)
	}
	several, seeds := 0, testenv.Rounds(3, 3, 8)
	for _, file := range templates {
		template, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m := openChat(t, string(template))
		whole, names := 0, map[string]int{}
		for seed := range uint64(seeds) {
			for _, choice := range []ToolChoice{{Required: true}, {Name: "two"}} {
				r := asked(t, choice, seed)
				r.Sampling.LogitBias[id(t, m, "<think>")] = -60
				end, err := m.Chat(t.Context(), r).Wait()
				if err != nil {
					t.Fatal(err)
				}
				calls := end.Message.ToolCalls
				if end.Reason == StopLength && choice.Required && !end.Complete && len(calls) > 2 {
					continue // it would not stop calling
				}
				whole++
				if len(calls) == 0 || end.Message.Content != "" || !end.Complete || end.Malformed || choice.Name != "" && len(calls) != 1 {
					t.Fatalf("%s, %+v: %+v", file, choice, end)
				}
				several += len(calls) - 1
				for _, c := range calls {
					names[c.Name]++
					var a struct {
						N    *int
						Word string
					}
					if err := json.Unmarshal([]byte(c.Arguments), &a); err != nil || a.N == nil || a.Word != "" && a.Word != "é" && a.Word != "b" || choice.Name != "" && c.Name != "two" {
						t.Errorf("%s, %+v: %+v, %v", file, choice, c, err)
					}
				}
			}
		}
		if whole <= seeds || names["one"] == 0 || names["two"] < seeds {
			t.Errorf("%s: called %v in %d answers", file, names, whole)
		}
	}
	if several == 0 {
		t.Error("no model called more than once")
	}
}

// A model that would call does not if it must not, and answers in text.
func TestNoTool(t *testing.T) {
	m := openChat(t, hermes)
	for _, none := range []bool{false, true} {
		r := asked(t, ToolChoice{None: none}, 1)
		r.MaxTokens = 20
		r.Sampling.LogitBias[id(t, m, "<tool_call>")] = 60
		c := mustCollect(t, m.Chat(t.Context(), r))
		if strings.Contains(c.raw, "<tool_call>") == none || !strings.Contains(c.prompt.Text, `"one"`) || len(c.end.Message.ToolCalls) > 0 {
			t.Errorf("none %v: writes %q", none, c.raw)
		}
	}
	plain := openChat(t, "{% for m in messages %}{{ m.content }}{% endfor %}")
	r := asked(t, ToolChoice{None: true}, 1)
	r.Tools, r.MaxTokens = nil, 2
	mustCollect(t, plain.Chat(t.Context(), r)) // without tools there is nothing to forbid
}

// What a model thinks before it calls is free, but for the marks of calls: some families end their
// reasoning with them.
func TestToolChoiceAndThinking(t *testing.T) {
	m := openChat(t, strings.TrimSuffix(hermes, "{% endif %}")+"<think>\n{% endif %}")
	r := asked(t, ToolChoice{Required: true}, 1)
	r.Sampling.LogitBias[id(t, m, "<tool_call>")] = 70
	r.Sampling.LogitBias[id(t, m, "</think>")] = 60
	c := mustCollect(t, m.Chat(t.Context(), r))
	if !strings.HasPrefix(c.raw, "</think><tool_call>\n{") || len(c.end.Message.ToolCalls) == 0 || !c.end.Complete {
		t.Errorf("writes %q", c.raw)
	}
}

func TestToolChoiceErrors(t *testing.T) {
	m := openChat(t, hermes)
	unknown := openChat(t, "{{ tools }}{% for m in messages %}{{ m.content }}{% endfor %}")
	unknown.chat = func() (*dialect, error) {
		d, err := unknown.readDialect(nil)
		d.syntax.Calls = ""
		return d, err
	}
	strange, err := NewTool("odd", "", json.RawMessage(`{"properties": {"x": {"$dynamicRef": "#y"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		m      *Model
		change func(*Request)
		want   string
	}{
		{"two fields", m, func(r *Request) { r.ToolChoice.None = true }, "more than one field"},
		{"two calls", m, func(r *Request) { r.ToolChoice.Name = "one" }, "more than one field"},
		{"no tools", m, func(r *Request) { r.Tools = nil }, "no Request.Tools"},
		{"no such tool", m, func(r *Request) { r.ToolChoice = ToolChoice{Name: "three"} }, `no tool "three"`},
		{"another constraint", m, func(r *Request) { r.Constraint = Choices("x") }, "Request.Constraint"},
		{"a schema that is not supported", m, func(r *Request) { r.Tools = append(r.Tools, strange) }, `the parameters of the function odd: "$dynamicRef" at /properties/x is not supported`},
		{"no known form", unknown, func(*Request) {}, "how this model writes calls is not known"},
	} {
		r := asked(t, ToolChoice{Required: true}, 1)
		c.change(&r)
		_, err := c.m.Chat(t.Context(), r).Wait()
		if e, ok := errors.AsType[*RequestError](err); !ok || e.Field != "ToolChoice" || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
}

// Marks of calls that are special tokens may come in a call, and in nothing else that is bounded.
func TestSpecialMarks(t *testing.T) {
	m := openChat(t, hermes)
	const mark = "<|im_start|>"
	special := m.specials(func(token string) bool { return token == mark })
	g, err := constraint.Choices([]string{mark})
	if err != nil || len(special) != 1 || special[0] != id(t, m, mark) {
		t.Fatal(special, err)
	}
	if !g.Start(m.vocabulary(special)).Accepts(special[0]) || g.Start(m.words()).Accepts(special[0]) {
		t.Error("the mark may come without being asked for, or not though it is")
	}
	if d, err := m.chat(); err != nil || !d.syntax.Holds("<tool_call>") || !d.syntax.Holds("tool") || d.syntax.Holds(mark) {
		t.Errorf("what the form holds: %v", err)
	}
}
