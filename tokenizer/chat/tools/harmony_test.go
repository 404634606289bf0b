package tools

import (
	"os"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/tokenizer/chat"
)

// Without calls, what calls a function is said.
func TestHarmonyNoCalls(t *testing.T) {
	const answer = "<|channel|>commentary to=functions.f<|message|>{}<|call|>"
	events := check(t, Syntax{Calls: Harmony}, Options{NoCalls: true}, answer)
	if got := message(events); got.Content != "{}" || got.ToolCalls != nil {
		t.Errorf("read %+v", got)
	}
}

// An answer goes on with the message that the prompt has begun.
func TestHarmonyGoesOn(t *testing.T) {
	for _, c := range []struct{ prompt, answer, said, thought string }{
		{"<|start|>user<|message|>?<|end|><|start|>assistant", "<|channel|>final<|message|>a", "a", ""},
		{"<|start|>assistant<|channel|>final<|message|>The", " end.<|return|>", " end.", ""},
		{"<|start|>assistant<|channel|>analysis<|message|>", "Hm<|end|><|start|>assistant<|channel|>final<|message|>a", "a", "Hm"},
		{"<|start|>assistant<|channel|>final<|message|>x<|end|>", "<|start|>assistant<|channel|>analysis<|message|>Hm", "", "Hm"},
		{"", "<|channel|>final<|message|>a", "a", ""},
	} {
		got := message(check(t, Syntax{Calls: Harmony}, Options{Prompt: c.prompt}, c.answer))
		if got.Content != c.said || got.ReasoningContent != c.thought {
			t.Errorf("after %q, %q: read %+v", c.prompt, c.answer, got)
		}
	}
}

// What a template in the form of gpt-oss writes after the prompt is read back, and is of the
// grammar of calls.
func TestHarmonyRoundTrip(t *testing.T) {
	text, err := os.ReadFile("testdata/harmony.jinja")
	if err != nil {
		t.Fatal(err)
	}
	template, err := chat.Parse("harmony", string(text), chat.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := Detect(template.Source(), "")
	if want := (Syntax{Calls: Harmony}); s != want || !s.Framed() {
		t.Fatalf("told to be %+v, want %+v", s, want)
	}
	asks := []chat.Message{{Role: chat.User, Content: "?"}}
	prompt, err := template.Prompt(chat.Conversation{Messages: asks, Tools: tools(t)})
	if err != nil {
		t.Fatal(err)
	}
	call := chat.ToolCall{ID: "c", Name: "f", Arguments: `{"text": " <b>\n", "n": -3, "list": [1, {"a": "]"}]}`}
	for _, m := range []chat.Message{
		{Content: "So."}, {Content: "So.", ReasoningContent: "Hm."}, {ReasoningContent: "Hm.", ToolCalls: []chat.ToolCall{call}}, {ToolCalls: []chat.ToolCall{call}},
	} {
		m.Role = chat.Assistant
		whole, err := template.Prompt(chat.Conversation{Messages: append(asks, m), Tools: tools(t), Closed: true})
		if err != nil {
			t.Fatal(err)
		}
		answer := whole[len(prompt):]
		got := message(check(t, s, Options{Prompt: prompt, Tools: tools(t)}, answer))
		if whole[:len(prompt)] != prompt || got.Content != m.Content || got.ReasoningContent != m.ReasoningContent || len(got.ToolCalls) != len(m.ToolCalls) {
			t.Errorf("%q: read %+v, want %+v", answer, got, m)
		}
		grammar, err := s.CallGrammar(tools(t), true)
		if err != nil {
			t.Fatal(err)
		}
		bare := strings.TrimSuffix(answer, harmonyCall) // which ends the turn and is none of the text
		if calls := len(m.ToolCalls) > 0 && m.ReasoningContent == ""; compiled(t, grammar).Matches(bare) != calls {
			t.Errorf("%q is of the grammar of calls: %v, want %v\n%s", bare, !calls, calls, grammar.Rules)
		}
		for i, c := range got.ToolCalls {
			if c.Name != m.ToolCalls[i].Name || !same(t, c.Arguments, m.ToolCalls[i].Arguments) {
				t.Errorf("%q: read %+v", answer, c)
			}
		}
	}
}
