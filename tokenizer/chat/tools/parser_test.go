package tools

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/tokenizer/chat"
)

// read parses an answer in pieces of n bytes and joins what belongs together.
func read(s Syntax, o Options, answer string, n int) []Event {
	p := New(s, o)
	var events []Event
	for rest := answer; rest != ""; {
		k := min(n, len(rest))
		events = append(events, p.Feed(rest[:k])...)
		rest = rest[k:]
	}
	return merge(append(events, p.End()...))
}

func merge(events []Event) []Event {
	var out []Event
	for _, e := range events {
		joins := e.Kind == Text || e.Kind == Reasoning || e.Kind == Mark || e.Kind == CallArguments
		if n := len(out); joins && n > 0 && out[n-1].Kind == e.Kind && out[n-1].Index == e.Index {
			out[n-1].Text += e.Text
			out[n-1].Raw += e.Raw
			continue
		}
		out = append(out, e)
	}
	return out
}

func message(events []Event) chat.Message {
	var b Builder
	b.Add(events...)
	return b.Message()
}

// check reads an answer whole, cut once at every byte, and byte by byte: the events are the same,
// and are the answer.
func check(t *testing.T, s Syntax, o Options, answer string) []Event {
	t.Helper()
	want := merge(Parse(s, o, answer))
	raw := ""
	for _, e := range want {
		raw += e.Raw
	}
	if raw != answer {
		t.Fatalf("%v: the events of %q are those of %q", s, answer, raw)
	}
	for n := 1; n <= min(3, len(answer)); n++ {
		if got := read(s, o, answer, n); !reflect.DeepEqual(got, want) {
			t.Fatalf("%v: %q in steps of %d:\n%+v\nas a whole:\n%+v", s, answer, n, got, want)
		}
	}
	for i := range answer {
		p := New(s, o)
		events := append(p.Feed(answer[:i]), p.Feed(answer[i:])...)
		if got := merge(append(events, p.End()...)); !reflect.DeepEqual(got, want) {
			t.Fatalf("%v: %q cut at %d:\n%+v\nas a whole:\n%+v", s, answer, i, got, want)
		}
	}
	return want
}

const toolList = `[{"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object", "properties": {
	"text": {"type": "string"}, "n": {"type": "integer"}, "x": {"type": "number"}, "yes": {"type": "boolean"}, "maybe": {"anyOf": [{"$ref": "#/$defs/o"}, {"type": "null"}]},
	"list": {"type": "array"}, "pick": {"enum": ["1", "2"]}, "any": {}, "either": {"type": ["string", "integer"]}}, "$defs": {"o": {"type": "object"}}}}},
	{"type": "function", "function": {"name": "g", "description": "d", "parameters": {"type": "object", "properties": {}}}}]`

func tools(t testing.TB) []*chat.Function {
	t.Helper()
	list, err := chat.ReadTools(strings.NewReader(toolList))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func same(t *testing.T, got, want string) bool {
	t.Helper()
	var g, w any
	if err := json.Unmarshal([]byte(got), &g); err != nil {
		t.Errorf("arguments %q: %v", got, err)
		return false
	}
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatal(err)
	}
	return reflect.DeepEqual(g, w)
}

// fixture is a conversation that transformers rendered.
type fixture struct {
	Template string
	Messages []chat.Message
	Tools    []*chat.Function
	Expected *string
}

// The calls that the reference wrote into prompts are read back out of them.
func TestFixtures(t *testing.T) {
	data, err := os.ReadFile("../../jinja/testdata/chat/cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Cases []json.RawMessage }
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	read := 0
	for i, raw := range file.Cases {
		var c fixture
		if json.Unmarshal(raw, &c) != nil || c.Expected == nil {
			continue // images, which messages refuse, and refusals
		}
		source, err := os.ReadFile("../../jinja/testdata/chat/" + c.Template)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range c.Messages {
			if len(m.ToolCalls) == 0 || c.Template == "b.jinja" && strings.Contains(strings.ReplaceAll(string(raw), " ", ""), `"arguments":"`) {
				continue // that template leaves out arguments that are given as text
			}
			s := Detect(string(source), "")
			mark := forms[s.Calls].opens()[0]
			answer := (*c.Expected)[strings.LastIndex(*c.Expected, m.Content+strings.Repeat("\n", feedsBefore(s, m))+mark):]
			end := "<|im_end|>"
			if c.Template == "c.jinja" {
				end = "<｜end▁of▁sentence｜>"
			}
			answer, _, _ = strings.Cut(answer, end)
			got := message(check(t, s, Options{Tools: c.Tools}, answer))
			ok := got.Content == m.Content && len(got.ToolCalls) == len(m.ToolCalls)
			for k := 0; ok && k < len(m.ToolCalls); k++ {
				ok = got.ToolCalls[k].Name == m.ToolCalls[k].Name && same(t, got.ToolCalls[k].Arguments, m.ToolCalls[k].Arguments)
			}
			if !ok {
				t.Errorf("case %d, %s: %q: read %+v, want %+v", i, c.Template, answer, got, m)
			}
			read++
		}
	}
	if read < 8 {
		t.Errorf("only %d calls were read", read)
	}
}

// feedsBefore is how many line feeds are between a content and its calls.
func feedsBefore(s Syntax, m chat.Message) int {
	if m.Content != "" && forms[s.Calls].lineFeeds() {
		return 1
	}
	return 0
}

// What models write beside the form, and what is malformed.
func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		name, answer  string
		format        Format
		said, thought string
		calls         []chat.ToolCall
		malformed     bool
	}{
		{"text alone", "a <tool_cal\n", Hermes, "a <tool_cal\n", "", nil, false},
		{"no form", "<tool_call>{}</tool_call>", None, "<tool_call>{}</tool_call>", "", nil, false},
		{"arguments first", "x\n\n<tool_call>{\"arguments\": {\"a\": 1}, \"name\": \"f\"}</tool_call>\ny", Hermes, "xy", "", one("f", `{"a": 1}`), false},
		{"arguments as text", `<tool_call>{"name": "f", "arguments": "{\"a\": 1}", "id": 5 }</tool_call>`, Hermes, "", "", one("f", `{"a": 1}`), false},
		{"no arguments", `<tool_call>{"name": "f"}`, Hermes, "", "", one("f", `{}`), false},
		{"a tag in a string", `<tool_call>{"name": "f", "arguments": {"a": "</tool_call>"}}</tool_call>`, Hermes, "", "", one("f", `{"a": "</tool_call>"}`), false},
		{"reasoning, then a call", "<think>\nI use <tool_call>\n</think>\n\n<tool_call>{\"name\": \"f\"}</tool_call>", Hermes, "", "I use <tool_call>", one("f", `{}`), false},
		{"not JSON", "<tool_call>{'name': 1}</tool_call>b", Hermes, "<tool_call>{'name': 1}</tool_call>b", "", nil, true},
		{"cut short", `a<tool_call>{"name": "f", "arguments": {"x": 1`, Hermes, `a<tool_call>{"name": "f", "arguments": {"x": 1`, "", nil, true},
		{"wrong, then right", `<tool_call>{"name": 1}</tool_call><tool_call>{"name": "f"}</tool_call>`, Hermes, `<tool_call>{"name": 1}</tool_call>`, "", one("f", "{}"), true},
		{"wrong within arguments", `<tool_call>{"name": "f", "arguments": {"x": b}}</tool_call>`, Hermes, `<tool_call>{"name": "f", "arguments": {"x": b}}</tool_call>`, "", nil, true},
		{"no section", "a\n<function=f>\n<parameter=text>\n\nx\n\n</parameter>\n</function>\n</tool_call>", Coder, "a", "", one("f", `{"text": "\nx\n"}`), false},
		{"types", "<tool_call><function=f><parameter=n>5</parameter><parameter=text>5</parameter><parameter=yes>True</parameter><parameter=maybe>None</parameter><parameter=either>a</parameter><parameter=none>7</parameter><parameter=n>x</parameter></function></tool_call>",
			Coder, "", "", one("f", `{"n": 5, "text": "5", "yes": true, "maybe": null, "either": "a", "none": 7, "n": "x"}`), false},
		{"no end of a parameter", "<tool_call><function=f><parameter=n>5", Coder, "<tool_call><function=f><parameter=n>5", "", nil, true},
		{"prose in a section", "<tool_call>so</tool_call>b", Coder, "<tool_call>so</tool_call>b", "", nil, true},
		{"GLM without lines", "<tool_call>f<arg_key>n</arg_key><arg_value>1</arg_value></tool_call>", GLM, "", "", one("f", `{"n": 1}`), false},
		{"GLM, no arguments", "<tool_call>f</tool_call>", GLM, "", "", one("f", `{}`), false},
		{"Mistral, two calls", `So.[TOOL_CALLS]f[ARGS]{"n": 1}[TOOL_CALLS]g[ARGS] {}`, Mistral, "So.", "",
			[]chat.ToolCall{{ID: "call_0", Name: "f", Arguments: `{"n": 1}`}, {ID: "call_1", Name: "g", Arguments: "{}"}}, false},
		{"Mistral, a mark in a string", `[TOOL_CALLS]f[ARGS]{"text": "[TOOL_CALLS]x[ARGS]{}"}`, Mistral, "", "", one("f", `{"text": "[TOOL_CALLS]x[ARGS]{}"}`), false},
		{"Mistral, text after a call", `[TOOL_CALLS]f[ARGS]{}b`, Mistral, "b", "", one("f", `{}`), false},
		{"Mistral as it once was", `[TOOL_CALLS] [{"name": "f", "arguments": {}}]`, Mistral, `[TOOL_CALLS] [{"name": "f", "arguments": {}}]`, "", nil, true},
		{"Mistral, no object, then right", `[TOOL_CALLS]f[ARGS]x[TOOL_CALLS]g[ARGS]{}`, Mistral, `[TOOL_CALLS]f[ARGS]x`, "", one("g", `{}`), true},
		{"Hy3 without lines", "<tool_calls:opensource><tool_call:opensource>f<tool_sep:opensource><arg_key:opensource>n</arg_key:opensource><arg_value:opensource>1</arg_value:opensource></tool_call:opensource></tool_calls:opensource>",
			Hunyuan, "", "", one("f", `{"n": 1}`), false},
		{"Hy3, JSON for parameters", "<tool_calls:opensource><tool_call:opensource>f<tool_sep:opensource>{}</tool_call:opensource>b", Hunyuan,
			"<tool_calls:opensource><tool_call:opensource>f<tool_sep:opensource>{}</tool_call:opensource>b", "", nil, true},
		{"A13B, thought and said", "<think>\nhm\n</think>\n<answer>\nSo,\n<b>.\n</answer>", List, "So,\n<b>.", "hm", nil, false},
		{"A13B, thought and called", "<think>\nhm\n</think>\n<answer>\n<tool_calls>[{\"name\": \"f\", \"arguments\": {\"n\": 1}}]</tool_calls>\n</answer>", List, "", "hm", one("f", `{"n": 1}`), false},
		{"A13B, no line feeds", "<think>\n\n</think>\n<answer><tool_calls>[{\"name\": \"f\", \"arguments\": {\"n\": 1}}, {\"name\": \"g\", \"arguments\": {}}]</tool_calls></answer>", List, "", "",
			[]chat.ToolCall{{ID: "call_0", Name: "f", Arguments: `{"n": 1}`}, {ID: "call_1", Name: "g", Arguments: "{}"}}, false},
		{"A13B, the prompt has closed the reasoning", "<answer>\nSo.\n</answer>", List, "So.", "", nil, false},
		{"A13B, no marks", "So <answer>.</answer>", List, "So <answer>.</answer>", "", nil, false},
		{"A13B, cut within the answer", "<think>hm</think>\n<answer>\nSo\n</ans", List, "So\n</ans", "hm", nil, false},
		{"A13B, cut within the mark", "<think>hm</think>\n\n<ans", List, "<ans", "hm", nil, false},
		{"A13B, text before and after", "I look.<tool_calls> [ {\"arguments\": {\"n\": 1} , \"name\": \"f\"} ]\n</tool_calls>b", List, "I look.b", "", one("f", `{"n": 1}`), false},
		{"A13B, no end", `<tool_calls>[{"name": "f", "arguments": {"n": 1}}`, List, "", "", one("f", `{"n": 1}`), false},
		{"A13B, no bracket", `<tool_calls>[{"name": "f"}</tool_calls>b`, List, "b", "", one("f", `{}`), false},
		{"A13B, no call", `a<tool_calls>[]</tool_calls>`, List, "a", "", nil, false},
		{"A13B, one object", `<tool_calls>{"name": "f"}</tool_calls>`, List, `<tool_calls>{"name": "f"}</tool_calls>`, "", nil, true},
		{"A13B, the second wrong", `<tool_calls>[{"name": "f"}, 5]</tool_calls>b`, List, `, 5]</tool_calls>b`, "", one("f", `{}`), true},
		{"A13B, cut within a call", `a<tool_calls>[{"name": "f", "arguments": {"n": 1`, List, `a<tool_calls>[{"name": "f", "arguments": {"n": 1`, "", nil, true},
		{"A13B, tags in a string", `<tool_calls>[{"name": "f", "arguments": {"text": "]</tool_calls>"}}]</tool_calls>`, List, "", "", one("f", `{"text": "]</tool_calls>"}`), false},
		{"two calls, the first wrong", "<minimax:tool_call><invoke name=\"f\">x</invoke><invoke name=\"g\"></invoke></minimax:tool_call>", MiniMax,
			"<minimax:tool_call><invoke name=\"f\">x</invoke>", "", []chat.ToolCall{{ID: "call_1", Name: "g", Arguments: "{}"}}, true},
		{"Step-3.5, no line feeds", "<tool_call>\n<function=f>\n<parameter=text>Paris</parameter>\n<parameter=n>\n2\n</parameter>\n</function>\n</tool_call>", Coder,
			"", "", one("f", `{"text": "Paris", "n": 2}`), false},
		{"M3, plain values", "So.\nW<tool_call>\nW<invoke name=\"f\">W<text> <b>5W</text>W<n>5W</n>W<yes>trueW</yes>W<either>aW</either>\nW</invoke>\nW</tool_call>", MiniMax3,
			"So.", "", one("f", `{"text": " <b>5", "n": 5, "yes": true, "either": "a"}`), false},
		{"M3, lists and objects", "W<tool_call>W<invoke name=\"f\">W<list>W<item>1W</item>\nW<item>W<a>xW</a>W<b>W<item>W</item>W</b>W</item>W</list>W<any>W<k>W<item>vW</item>W</k>W<item>wW</item>W</any>W</invoke>W</tool_call>", MiniMax3,
			"", "", one("f", `{"list": [1, {"a": "x", "b": [""]}], "any": {"k": ["v"], "item": "w"}}`), false},
		{"M3, empty values", "W<tool_call>W<invoke name=\"f\">W<list>W</list>W<maybe>W</maybe>W<text>W</text>W<any>W</any>W</invoke>W<invoke name=\"g\">W</invoke>W</tool_call>", MiniMax3,
			"", "", []chat.ToolCall{{ID: "call_0", Name: "f", Arguments: `{"list": [], "maybe": {}, "text": "", "any": ""}`}, {ID: "call_1", Name: "g", Arguments: "{}"}}, false},
		{"M3, text beside tags", "W<tool_call>W<invoke name=\"f\">W<list>aW<item>1W</item>W</list>W</invoke>W</tool_call>b", MiniMax3,
			"W<tool_call>W<invoke name=\"f\">W<list>aW<item>1W</item>W</list>W</invoke>b", "", nil, true},
		{"M3, tags that cross", "W<tool_call>W<invoke name=\"f\">W<any>W<a>W<b>1W</a>W</b>W</any>W</invoke>W</tool_call>", MiniMax3,
			"W<tool_call>W<invoke name=\"f\">W<any>W<a>W<b>1W</a>W</b>W</any>W</invoke>", "", nil, true},
		{"M3, a member twice", "W<tool_call>W<invoke name=\"f\">W<any>W<a>1W</a>W<a>2W</a>W</any>W</invoke>W</tool_call>", MiniMax3,
			"W<tool_call>W<invoke name=\"f\">W<any>W<a>1W</a>W<a>2W</a>W</any>W</invoke>", "", nil, true},
		{"M3, cut within a list", "W<tool_call>W<invoke name=\"f\">W<list>W<item>1W</item>", MiniMax3, "W<tool_call>W<invoke name=\"f\">W<list>W<item>1W</item>", "", nil, true},
		{"M3, as M2 writes", "W<tool_call>W<invoke name=\"f\"><parameter name=\"n\">1</parameter>W</invoke>W</tool_call>", MiniMax3,
			"W<tool_call>W<invoke name=\"f\"><parameter name=\"n\">1</parameter>W</invoke>", "", nil, true},
		{"a call ends the reasoning", "<think>hm<|tool_calls_section_begin|><|tool_call_begin|>functions.f:3<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>", Kimi,
			"", "hm", []chat.ToolCall{{ID: "functions.f:3", Name: "f", Arguments: "{}"}}, false},
		{"harmony, thought and said", "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>So.<|return|>", Harmony, "So.", "Hm.", nil, false},
		{"harmony, said without a head", "So <|be it.", Harmony, "So <|be it.", "", nil, false},
		{"harmony, thought, a word to the user, a call", "<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|channel|>commentary<|message|>I look.<|end|>" +
			"<|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{\"n\": 1}<|call|>", Harmony, "I look.", "Hm", one("f", `{"n": 1}`), false},
		{"harmony, the function first, no end", " to=functions.f<|channel|>commentary json<|message|>{\"n\": 1}", Harmony, "", "", one("f", `{"n": 1}`), false},
		{"harmony, two of a kind", "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>analysis<|message|>b<|end|><|start|>assistant<|channel|>commentary<|message|>c<|end|>" +
			"<|start|>assistant<|channel|>final<|message|>d", Harmony, "c\n\nd", "a\n\nb", nil, false},
		{"harmony, two calls", "<|channel|>commentary to=functions.f<|message|>{}<|call|><|start|>assistant<|channel|>commentary to=g<|message|><|call|>", Harmony, "", "",
			[]chat.ToolCall{{ID: "call_0", Name: "f", Arguments: "{}"}, {ID: "call_1", Name: "g", Arguments: "{}"}}, false},
		{"harmony, marks in a string", `<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"text": "<|end|>"}<|call|>`, Harmony, "", "", one("f", `{"text": "<|end|>"}`), false},
		{"harmony, no object, then right", "<|channel|>commentary to=python<|message|>1+1<|call|><|start|>assistant<|channel|>final<|message|>2", Harmony,
			"<|channel|>commentary to=python<|message|>1+1<|call|>2", "", nil, true},
		{"harmony cut within a head", "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|chan", Harmony, "<|start|>assistant<|chan", "Hm.", nil, true},
		{"harmony cut within a mark", "<|channel|>final<|message|>a<|en", Harmony, "a<|en", "", nil, false},
		{"harmony, a head without a message", "<|channel|>final<|end|><|start|>assistant<|channel|>final<|message|>a", Harmony, "<|channel|>final<|end|>a", "", nil, true},
		{"DeepSeek cut after the object", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"a\": 1}", DeepSeek, "", "", one("f", `{"a": 1}`), false},
		{"DeepSeek, a wrong fence", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>", DeepSeek,
			"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n{}<｜tool▁call▁end｜>", "", nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.format == MiniMax3 {
				c.answer, c.said = strings.ReplaceAll(c.answer, "W<", miniMaxWord+"<"), strings.ReplaceAll(c.said, "W<", miniMaxWord+"<")
			}
			s := Syntax{c.format, chat.Think}
			if c.format == List {
				s = Detect("", List)
			}
			events := check(t, s, Options{Tools: tools(t)}, c.answer)
			var b Builder
			b.Add(events...)
			got := b.Message()
			if got.Content != c.said || got.ReasoningContent != c.thought || !slices.Equal(got.ToolCalls, c.calls) || b.Malformed() != c.malformed {
				t.Errorf("%q: read %+v, malformed %v\n%+v", c.answer, got, b.Malformed(), events)
			}
		})
	}
}

func one(name, arguments string) []chat.ToolCall {
	return []chat.ToolCall{{ID: "call_0", Name: name, Arguments: arguments}}
}

// Text and arguments come as soon as they are there; what may begin a mark is held back.
func TestComesAtOnce(t *testing.T) {
	p := New(Syntax{Coder, chat.Think}, Options{Tools: tools(t)})
	for _, c := range []struct{ feed, want string }{
		{"ab <", "ab "}, {"b", "<b"}, {"\n", ""}, {"c", "\nc"}, {"<tool_call><function=f", ""}, {">", ""}, {"<parameter=text>\nx\"", `{"text": "x\"`}, {"y", "y"},
		{"\n", ""}, {"</par", ""}, {"z", `\n</parz`}, {"\n</parameter>", `"`}, {"</function>", "}"},
	} {
		got := ""
		for _, e := range p.Feed(c.feed) {
			got += e.Text
		}
		if got != c.want {
			t.Errorf("after %q: %q, want %q", c.feed, got, c.want)
		}
	}
}

// Whatever a model writes, nothing is lost, and the cuts do not matter.
func FuzzParser(f *testing.F) {
	for _, s := range []string{"<think>a</think>b<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": [1, true]}}\n</tool_call>",
		"<tool_call><function=f><parameter=text>\na\n</parameter></function></tool_call>", "<tool_call>f\n<arg_key>n</arg_key><arg_value>1</arg_value></tool_call>",
		"<minimax:tool_call><invoke name=\"f\"><parameter name=\"text\">a</parameter></invoke></minimax:tool_call>",
		strings.ReplaceAll("W<tool_call>W<invoke name=\"f\">W<list>W<item>1W</item>W<item>W<a>xW</a>W</item>W</list>W<text>aW</text>W</invoke>W</tool_call>", "W", miniMaxWord),
		"<｜tool▁calls▁begin｜>function:f\n```json\n{}\n```<｜tool▁calls▁end｜>", "<|tool_calls_section_begin|><|tool_call_begin|>f:0<|tool_call_argument_begin|>{}<|tool_call_end|>",
		"<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}<|call|>"} {
		f.Add(s, 1)
	}
	list := tools(f)
	f.Fuzz(func(t *testing.T, answer string, n int) {
		if n < 1 || len(answer) > 2000 {
			return
		}
		for format := range forms {
			s, o := Syntax{format, chat.Think}, Options{Tools: list}
			want, raw := merge(Parse(s, o, answer)), ""
			for _, e := range want {
				raw += e.Raw
			}
			if raw != answer {
				t.Fatalf("%s: the events of %q are those of %q", format, answer, raw)
			}
			if got := read(s, o, answer, n); !reflect.DeepEqual(got, want) {
				t.Fatalf("%s: %q in steps of %d:\n%+v\nas a whole:\n%+v", format, answer, n, got, want)
			}
			for _, c := range message(want).ToolCalls {
				if !json.Valid([]byte(c.Arguments)) {
					t.Fatalf("%s: %q: arguments %q", format, answer, c.Arguments)
				}
			}
		}
	})
}

// Schemas say what is within lists and objects of MiniMax M3, through references and alternatives.
func TestNestedTypes(t *testing.T) {
	list, err := chat.ReadTools(strings.NewReader(`[{"name": "order", "parameters": {"type": "object", "properties": {
		"user": {"type": "string"}, "ship": {"$ref": "#/$defs/place"}, "items": {"anyOf": [{"type": "array", "items": {"$ref": "#/$defs/line"}}, {"type": "null"}]},
		"map": {"type": "object", "additionalProperties": {"type": "string"}}, "odd": {"type": "object", "properties": {"item": {"type": "integer"}}}},
		"$defs": {"place": {"type": "object", "properties": {"zip": {"type": "string"}, "at": {"type": "array", "items": {"type": "number"}}}},
			"line": {"type": "object", "properties": {"sku": {"type": "string"}, "qty": {"type": "integer"}}}}}}]`))
	if err != nil {
		t.Fatal(err)
	}
	answer := strings.ReplaceAll(`W<tool_call>W<invoke name="order">W<user>42W</user>W<ship>W<zip>018956W</zip>W<at>W<item>1.5W</item>W<item>2W</item>W</at>W</ship>`+
		`W<items>W<item>W<sku>7W</sku>W<qty>2W</qty>W</item>W</items>W<map>W<a>1W</a>W</map>W<odd>W<item>3W</item>W</odd>W</invoke>W</tool_call>`, "W<", miniMaxWord+"<")
	got := message(check(t, Syntax{MiniMax3, chat.Marks{}}, Options{Tools: list}, answer))
	const want = `{"user": "42", "ship": {"zip": "018956", "at": [1.5, 2]}, "items": [{"sku": "7", "qty": 2}], "map": {"a": "1"}, "odd": {"item": 3}}`
	if len(got.ToolCalls) != 1 || got.ToolCalls[0].Arguments != want {
		t.Errorf("read %+v, want %s", got.ToolCalls, want)
	}
}
