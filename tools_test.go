package moeflux

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/fixtures"
)

// forced is an automaton that allows one text alone.
type forced struct {
	ids []int32
	at  int
}

func (f *forced) Accepts(token int32) bool { return f.at < len(f.ids) && token == f.ids[f.at] }

func (f *forced) Mask() []uint64 {
	mask := make([]uint64, slices.Max(f.ids)/64+1)
	if f.at < len(f.ids) {
		mask[f.ids[f.at]/64] |= 1 << (f.ids[f.at] % 64)
	}
	return mask
}

func (f *forced) Advance(int32) error { f.at++; return nil }
func (f *forced) MayEnd() bool        { return f.at == len(f.ids) }
func (f *forced) Complete() bool      { return f.MayEnd() }

// says makes a model write a text.
func says(text string) *Constraint {
	return &Constraint{all: true, begin: func(m *Model) (automaton, error) {
		ids, err := m.text.Encode(text, false)
		return &forced{ids: ids}, err
	}}
}

// hermes is a template with tools, in the form of Qwen3.
const hermes = `{% if tools %}<tools>{% for t in tools %}{{ t | tojson }}
{% endfor %}</tools> <tool_call>
{% endif %}{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}{% if m.tool_calls %}{% for c in m.tool_calls %}
<tool_call>
{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}
</tool_call>{% endfor %}{% endif %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}`

// openChat opens the fixture model with a template.
func openChat(t *testing.T, template string) *Model {
	t.Helper()
	dir := fixtures.Overlay(t, fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0), map[string]string{"chat_template.jinja": template})
	m, err := Open(t.Context(), dir, Options{Device: "host"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(context.Background()); err != nil { // the test's context has ended
			t.Error(err)
		}
	})
	return m
}

func weather(t *testing.T) *Tool {
	t.Helper()
	tool, err := NewTool("weather", "What the weather is.", map[string]any{
		"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}}, "required": []string{"city"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return tool
}

// A model is told of tools, its calls come in pieces, and their results go back to it.
func TestTools(t *testing.T) {
	m := openChat(t, hermes)
	messages := []Message{{Role: User, Content: "Is it cold?"}}
	const call = `<think>
Hm.
</think>

I look.
<tool_call>
{"name": "weather", "arguments": {"city": "Oslo"}}
</tool_call>`
	var calls []CallPiece
	var raw strings.Builder
	c := collected{}
	for e, err := range m.Chat(t.Context(), Request{Messages: messages, Tools: []*Tool{weather(t)}, Constraint: says(call)}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Prompt != nil && !strings.Contains(e.Prompt.Text, `"description": "What the weather is."`) {
			t.Errorf("the prompt does not tell of the tool: %q", e.Prompt.Text)
		}
		if e.Call != nil {
			calls = append(calls, *e.Call)
		}
		raw.WriteString(e.Raw)
		c.text, c.thought, c.end = c.text+e.Text, c.thought+e.Reasoning, e.End
	}
	if c.thought != "Hm." || c.text != "I look." || raw.String() != call {
		t.Errorf("thinks %q, says %q; all is %q", c.thought, c.text, raw.String())
	}
	arguments := ""
	for i, p := range calls {
		arguments += p.Arguments
		if (p.Name == "weather" && p.ID != "") != (i == 0) || p.Done != (i == len(calls)-1) || p.Void || p.Index != 0 {
			t.Errorf("piece %d of the call: %+v", i, p)
		}
	}
	if len(calls) < 4 || arguments != `{"city": "Oslo"}` {
		t.Errorf("the call came in %d pieces with the arguments %q", len(calls), arguments)
	}
	want := Message{Role: Assistant, Content: "I look.", ReasoningContent: "Hm.", ToolCalls: []ToolCall{{ID: calls[0].ID, Name: "weather", Arguments: arguments}}}
	if !reflect.DeepEqual(c.end.Message, want) || c.end.Malformed || c.end.Reason != StopEOS {
		t.Errorf("the end is %+v, want %+v", c.end, want)
	}
	messages = append(messages, c.end.Message, Message{Role: ToolResult, ToolCallID: calls[0].ID, Content: "-5 °C"})
	again := mustCollect(t, m.Chat(t.Context(), Request{Messages: messages, Tools: []*Tool{weather(t)}, MaxTokens: 1}))
	if !strings.Contains(again.prompt.Text, `{"name": "weather", "arguments": {"city": "Oslo"}}`) || !strings.Contains(again.prompt.Text, "tool\n-5 °C") {
		t.Errorf("the call and its result go back as %q", again.prompt.Text)
	}
}

// A call that is not well formed is text, with a flag; without tools nothing is a call.
func TestToolsMalformed(t *testing.T) {
	m := openChat(t, hermes)
	for _, c := range []struct {
		text      string
		tools     []*Tool
		malformed bool
	}{
		{"<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": ]}\n</tool_call>", []*Tool{weather(t)}, true},
		{"<tool_call>\nnonsense\n</tool_call>", []*Tool{weather(t)}, true},
		{"<tool_call>\n{\"name\": \"weather\", \"arguments\": {}}\n</tool_call>", nil, false},
	} {
		void := false
		for e, err := range m.Chat(t.Context(), Request{Messages: []Message{{Role: User, Content: "x"}}, Tools: c.tools, Constraint: says(c.text)}) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Call != nil {
				void = e.Call.Void
			}
			if end := e.End; end != nil && (end.Message.Content != c.text || end.Malformed != c.malformed || void != c.malformed || end.Message.ToolCalls != nil) {
				t.Errorf("%q: %+v, void %v", c.text, end, void)
			}
		}
	}
}

func TestToolErrors(t *testing.T) {
	if _, err := NewTool("", "", nil); err == nil {
		t.Error("a tool without a name")
	}
	tools, err := ReadTools(strings.NewReader(`[{"type": "function", "function": {"name": "f"}}, {"name": "g", "parameters": {}}]`))
	if err != nil || len(tools) != 2 || tools[1].Name() != "g" {
		t.Errorf("%v, %v", tools, err)
	}
	m := openChat(t, "{% for m in messages %}{{ m.content }}{% endfor %}")
	if _, err := m.Chat(t.Context(), Request{Messages: []Message{{Role: User, Content: "x"}}, Tools: []*Tool{weather(t)}}).Wait(); !errors.Is(err, ErrNoTools) {
		t.Errorf("a template without tools: %v", err)
	}
	m = openChat(t, "{{ raise_exception('no system here') }}")
	_, err = m.Chat(t.Context(), Request{Messages: []Message{{Role: User, Content: "x"}}}).Wait()
	if e, ok := errors.AsType[*TemplateError](err); !ok || !e.Refused || !strings.HasSuffix(e.Error(), "no system here") {
		t.Errorf("a template that refuses: %v", err)
	}
	raw, err := json.Marshal(Message{Role: ToolResult, ToolCallID: "a", Content: "b"})
	if err != nil || string(raw) != `{"role":"tool","content":"b","tool_call_id":"a"}` {
		t.Errorf("%s, %v", raw, err)
	}
}

// A constraint bounds the answer and not the thinking before it, which the model may leave out.
func TestConstraintAndThinking(t *testing.T) {
	m := openChat(t, hermes)
	answer := says("Yes.")
	answer.all = false
	for name, biased := range map[string]bool{"thinks": true, "does not think": false} {
		r := Request{Messages: []Message{{Role: User, Content: "x"}}, Constraint: answer, MaxTokens: 20, Sampling: Sampling{Temperature: new(0.0), LogitBias: map[int32]float64{}}}
		mark, ok := m.text.TokenID("<think>")
		end, ok2 := m.text.TokenID("</think>")
		if !ok || !ok2 {
			t.Fatal("the fixture's tokenizer has no marks of reasoning")
		}
		r.Sampling.LogitBias[mark] = -60
		if biased {
			r.Sampling.LogitBias[mark], r.Sampling.LogitBias[end] = 60, 70
			r.Stop = []string{">Never"} // may begin with the mark's last character
		}
		c := mustCollect(t, m.Chat(t.Context(), r))
		if c.text != "Yes." || strings.HasPrefix(c.raw, "<think></think>") != biased || c.end.Reason != StopEOS {
			t.Errorf("%s: writes %q, says %q, for %q", name, c.raw, c.text, c.end.Reason)
		}
	}
}

// Of some choices one comes, whole, also where one begins another.
func TestChoices(t *testing.T) {
	m := openChat(t, hermes)
	choices, came := []string{"yes", "yes, of course", "no", "É"}, map[string]int{}
	for seed := range uint64(40) {
		r := Request{Prompt: "Is it? ", Constraint: Choices(choices...), Sampling: Sampling{Temperature: new(2.0), Seed: new(seed)}}
		end, err := m.Generate(t.Context(), r).Wait()
		if err != nil {
			t.Fatal(err)
		}
		if came[end.Message.Content]++; !slices.Contains(choices, end.Message.Content) || end.Reason != StopEOS {
			t.Errorf("seed %d: %q for %q", seed, end.Message.Content, end.Reason)
		}
	}
	if len(came) < 3 {
		t.Errorf("came %v, want a mixture", came)
	}
	if _, err := m.Generate(t.Context(), Request{Prompt: "x", Constraint: Choices()}).Wait(); !errors.As(err, new(*RequestError)) {
		t.Errorf("nothing to choose from: %v", err)
	}
}
