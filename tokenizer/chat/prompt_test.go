package chat

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/tokenizer/jinja"
)

// Messages and tools that were read render as transformers renders the JSON they were read from.
func TestPromptFixtures(t *testing.T) {
	data, err := os.ReadFile("../jinja/testdata/chat/cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		BOS   string `json:"bos_token"`
		EOS   string `json:"eos_token"`
		Cases []json.RawMessage
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	same := 0
	for i, raw := range file.Cases {
		var c struct {
			Template string
			Messages []Message
			Tools    []*Function
			Kwargs   json.RawMessage
			Expected *string
			Open     bool `json:"add_generation_prompt"`
		}
		err := json.Unmarshal(raw, &c)
		if err != nil && strings.Contains(err.Error(), `the type "image`) {
			continue
		}
		if err != nil {
			t.Errorf("case %d: %v", i, err)
			continue
		}
		text, err := os.ReadFile("../jinja/testdata/chat/" + c.Template)
		if err != nil {
			t.Fatal(err)
		}
		template, err := Parse(c.Template, string(text), Options{BOS: file.BOS, EOS: file.EOS})
		if err != nil {
			t.Fatal(err)
		}
		args, err := jinja.DecodeJSON(c.Kwargs)
		if err != nil {
			t.Fatal(err)
		}
		got, err := template.Prompt(Conversation{Messages: c.Messages, Tools: c.Tools, Closed: !c.Open, Args: args.(*jinja.Dict)})
		switch {
		case c.Expected == nil && err == nil:
			t.Errorf("case %d: rendered %q, want an error", i, got)
		case c.Expected == nil:
		case c.Template == "a.jinja" && c.Messages[0].Parts != nil: // it leaves out lists; a text is better
			if err != nil || !strings.Contains(got, "part one \npart two") {
				t.Errorf("case %d: rendered %q, %v", i, got, err)
			}
		case c.Template == "b.jinja" && strings.Contains(strings.ReplaceAll(string(raw), " ", ""), `"arguments":"`): // it leaves out arguments given as text
			if err != nil || !strings.Contains(got, "<parameter=query>\nraw string\n") {
				t.Errorf("case %d: rendered %q, %v", i, got, err)
			}
		case err != nil || got != *c.Expected:
			t.Errorf("case %d, %s: rendered %q, %v, want %q", i, c.Template, got, err, *c.Expected)
		default:
			same++
		}
	}
	if same < 40 {
		t.Errorf("only %d cases were compared", same)
	}
}

// Each template gets what it takes.
func TestShapes(t *testing.T) {
	const each = "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}"
	const end = "{% endfor %}{{ m.tool_call_id }}|{% endfor %}"
	for _, c := range []struct{ name, template, id, want string }{
		{"text as it is", each + "{{ c.function.name + c.function.arguments }}" + end, "1", `|f{"b":1,"a":2}|1|`},
		{"objects", each + "{{ c.function.arguments | tojson }}" + end, "1", `|{"b": 1, "a": 2}|1|`},
		{"items", each + "{% for k, v in c.function.arguments.items() %}{{ k ~ v }}{% endfor %}" + end, "1", `|b1a2|1|`},
		{"mappings alone", each + "{% if c.function.arguments is mapping %}{{ c.function.arguments | tojson }}{% endif %}" + end, "1", `|{"b": 1, "a": 2}|1|`},
		{"null content", "{% for m in messages %}{% if m.content is none %}{% for c in m.tool_calls %}{{ c.function.arguments + '' }}{% endfor %}{% endif %}|{% endfor %}", "1", `|{"b":1,"a":2}||`},
		{"IDs alone", each + "{{ c.id }}{{ c.function.arguments }}" + end, "1", `|functions.f:0{"b":1,"a":2}|functions.f:0|`},
		{"IDs alone, and right", each + "{{ c.id }}{{ c.function.arguments }}" + end, "functions.f:7", `|functions.f:7{"b":1,"a":2}|functions.f:7|`},
	} {
		template, err := Parse(c.name, c.template, Options{})
		if err != nil {
			t.Fatal(err)
		}
		messages := []Message{{Role: User}, {Role: Assistant, ToolCalls: []ToolCall{{c.id, "f", `{"b":1,"a":2}`}}}, {Role: Tool, ToolCallID: c.id}}
		if got, err := template.Prompt(Conversation{Messages: messages}); err != nil || got != c.want {
			t.Errorf("%s: rendered %q, %v, want %q", c.name, got, err, c.want)
		}
	}
	plain, err := Parse("plain", "{% for m in messages %}{{ m.role + m.content }}{% endfor %}", Options{})
	if err != nil {
		t.Fatal(err)
	}
	calls := []Message{{Role: Assistant, ToolCalls: []ToolCall{{"1", "f", "{}"}}}}
	if _, err := plain.Prompt(Conversation{Messages: calls}); !errors.Is(err, ErrNoCalls) {
		t.Errorf("calls: %v", err)
	}
	if _, err := plain.Prompt(Conversation{Tools: []*Function{{}}}); !errors.Is(err, ErrNoTools) {
		t.Errorf("tools: %v", err)
	}
	if got, err := plain.Prompt(Conversation{Messages: []Message{{Role: Developer, Parts: []Part{{"a"}, {"b"}}}}}); err != nil || got != "systema\nb" {
		t.Errorf("developer: %q, %v", got, err)
	}
}

// Messages and tools are what was read after writing and reading again.
func TestMessageJSON(t *testing.T) {
	const text = `[{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"assistant","content":null,"reasoning_content":"r","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{\"b\":1}"}}]},{"role":"tool","content":"x","tool_call_id":"1","name":"f"}]`
	messages, err := ReadMessages(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := json.Marshal(messages); err != nil || string(got) != text {
		t.Errorf("wrote %s, %v, want %s", got, err, text)
	}
	object, err := ReadMessages(strings.NewReader(`[{"role": "assistant", "tool_calls": [{"name": "f", "arguments": {"b": 1.0, "a": "é"}}]}]`))
	if want := `{"b": 1.0, "a": "é"}`; err != nil || object[0].ToolCalls[0].Arguments != want {
		t.Errorf("read %+v, %v, want arguments %s", object, err, want)
	}
	for in, want := range map[string]string{`{}`: "not a JSON list", `[{"function": {}}]`: "no name", `[{"type": "web_search", "function": {}}]`: "web_search",
		`[{"name": "f"}, {"name": "f"}]`: "two tools", `[{"name": "f", "parameters": 1}]`: "parameters of f"} {
		if _, err := ReadTools(strings.NewReader(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", in, err, want)
		}
	}
}
