package tools

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/tokenizer/chat"
)

// What a family's template writes, its parser reads back; and the template itself tells the parser.
func TestRoundTrip(t *testing.T) {
	const arguments = `{"text": " <b>\n\"é\\n\" 5 \t", "n": -3, "x": 2.5e3, "yes": true, "maybe": null, "list": [1, {"a": "]"}], "pick": "1", "any": {"k": ["v"]}, "either": 7}`
	for file, format := range map[string]Format{
		"hermes": Hermes, "coder": Coder, "deepseek3": DeepSeek, "deepseek31": DeepSeek, "kimi": Kimi, "glm": GLM, "minimax": MiniMax, "minimax3": MiniMax3, "hunyuan": Hunyuan, "list": List, "mistral": Mistral,
	} {
		text, err := os.ReadFile(filepath.Join("testdata", file+".jinja"))
		if err != nil {
			t.Fatal(err)
		}
		template, err := chat.Parse(file, string(text), chat.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s := Detect(template.Source(), "")
		if s.Calls != format {
			t.Errorf("%s: told to be %q, want %q", file, s.Calls, format)
		}
		if format == MiniMax3 && s.Reasoning.Begin != "<mm:think>" {
			t.Errorf("%s: reasoning is between %v", file, s.Reasoning)
		}
		for _, said := range []string{"", "Let me see."} {
			asks := []chat.Message{{Role: chat.User, Content: "?"}}
			calls := []chat.ToolCall{{ID: "functions.f:0", Name: "f", Arguments: arguments}, {ID: "functions.g:1", Name: "g", Arguments: "{}"}}
			whole := render(t, template, append(asks, chat.Message{Role: chat.Assistant, Content: said, ToolCalls: calls}))
			// The beginning of the turn is where an answer that is not there would be.
			const word = "moeflux"
			before, after, _ := strings.Cut(render(t, template, append(asks, chat.Message{Role: chat.Assistant, Content: word})), word)
			answer, found := strings.CutPrefix(strings.TrimSuffix(whole, after), before)
			if !found {
				t.Fatalf("%s: %q does not begin with %q", file, whole, before)
			}
			got := message(check(t, s, Options{Tools: tools(t)}, answer))
			if got.Content != said || len(got.ToolCalls) != 2 {
				t.Errorf("%s: %q: read %+v", file, answer, got)
				continue
			}
			grammar, err := s.CallGrammar(tools(t), true)
			if err != nil && (format != MiniMax3 || !strings.Contains(err.Error(), "nests lists and objects in tags")) {
				t.Fatal(err)
			}
			// Python's names of values are read, but a bounded answer has those of JSON.
			if err == nil && said == "" && format != Coder && !compiled(t, grammar).Matches(answer) {
				t.Errorf("%s: %q is not of the grammar of calls\n%s", file, answer, grammar.Rules)
			}
			for i, c := range got.ToolCalls {
				if c.Name != calls[i].Name || !same(t, c.Arguments, calls[i].Arguments) {
					t.Errorf("%s: %q: call %d is %+v, want %+v", file, answer, i, c, calls[i])
				}
				if format == Kimi && c.ID != calls[i].ID {
					t.Errorf("call %d has the ID %s", i, c.ID)
				}
			}
		}
	}
}

func render(t *testing.T, template *chat.Template, messages []chat.Message) string {
	t.Helper()
	text, err := template.Prompt(chat.Conversation{Messages: messages, Tools: tools(t), Closed: true})
	if err != nil {
		t.Fatal(err)
	}
	return text
}
