package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/jsonlines"
)

// chatCases is where the template language's own conversations lie, with what the reference
// implementation makes of them.
const chatCases = "../../tokenizer/jinja/testdata/chat"

// All conversations of the reference, through the command, to the byte. Each template gets all of
// its own in one call.
func TestChatTemplateAsTheReference(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(chatCases, "cases.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		BOS   string            `json:"bos_token"`
		EOS   string            `json:"eos_token"`
		Cases []json.RawMessage `json:"cases"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	type result struct{ Expected, Error *string }
	in, want := map[string]*bytes.Buffer{}, map[string][]result{}
	for _, raw := range file.Cases {
		var c struct {
			Template string
			result
		}
		if err := json.Unmarshal(raw, &c); err != nil {
			t.Fatal(err)
		}
		if in[c.Template] == nil {
			in[c.Template] = &bytes.Buffer{}
		}
		// The keys that the command does not know are none of its business.
		if err := json.Compact(in[c.Template], raw); err != nil {
			t.Fatal(err)
		}
		in[c.Template].WriteByte('\n')
		want[c.Template] = append(want[c.Template], c.result)
	}
	cases := 0
	for name, conversations := range in {
		o := mustCall(t, conversations.String(), "chat-template", "--template", filepath.Join(chatCases, name), "--bos", file.BOS, "--eos", file.EOS)
		lines := strings.Split(strings.TrimSuffix(o.stdout, "\n"), "\n")
		if len(lines) != len(want[name]) {
			t.Fatalf("%s: %d lines for %d conversations", name, len(lines), len(want[name]))
		}
		for i, line := range lines {
			cases++
			got := struct{ Text, Error *string }{}
			dec := json.NewDecoder(strings.NewReader(line))
			dec.DisallowUnknownFields()
			if err := dec.Decode(&got); err != nil {
				t.Fatalf("%s, line %d: %v in %q", name, i+1, err, line)
			}
			if !sameText(got.Text, want[name][i].Expected) || !sameText(got.Error, want[name][i].Error) {
				w, _ := json.Marshal(want[name][i])
				t.Errorf("%s, line %d:\n got %s\nwant %s", name, i+1, line, w)
			}
		}
	}
	if cases != 58 {
		t.Errorf("%d conversations, want 58", cases)
	}
}

func sameText(a, b *string) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }

func TestChatTemplateOfAModel(t *testing.T) {
	model, ref := loadE2E(t)
	const hello = `{"messages": [{"role": "user", "content": "Hello"}], "add_generation_prompt": true}` + "\n"
	const chatML = `{"text":"<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n"}` + "\n"
	for _, args := range [][]string{{"--model", model}, {"--model", fixtures.Dir(t, fixtures.Qwen35MoEQ4)}, nil} {
		if o := mustCall(t, hello, append([]string{"chat-template"}, args...)...); o.stdout != chatML {
			t.Errorf("%q: stdout %q, want %q", args, o.stdout, chatML)
		}
	}
	messages, err := json.Marshal(map[string]any{"messages": ref.Messages, "add_generation_prompt": true})
	if err != nil {
		t.Fatal(err)
	}
	o := mustCall(t, string(messages), "chat-template", "--model", model)
	var got jsonlines.Text
	if err := json.Unmarshal([]byte(o.stdout), &got); err != nil || got.Text != ref.Text {
		t.Errorf("stdout %q, %v, want the text %q", o.stdout, err, ref.Text)
	}
}

func TestChatTemplateTokens(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"chat_template.jinja": "{{ bos_token }}|{{ eos_token }}", "tokenizer_config.json": `{"bos_token": "<s>", "eos_token": "</s>"}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--model", dir}, "<s>|</s>"},
		{[]string{"--model", dir, "--eos", "END"}, "<s>|END"},
		{[]string{"--template", filepath.Join(dir, "chat_template.jinja")}, "|"},
		{[]string{"--template", filepath.Join(dir, "chat_template.jinja"), "--bos", "B"}, "B|"},
	} {
		if o := mustCall(t, `{"messages": []}`, append([]string{"chat-template"}, c.args...)...); o.stdout != `{"text":"`+c.want+`"}`+"\n" {
			t.Errorf("%q: %q, want the text %q", c.args, o.stdout, c.want)
		}
	}
}

// JSON of another shape is answered with an error in its place; the line after it is rendered.
func TestChatTemplateLines(t *testing.T) {
	file := writeFile(t, "t.jinja", "{{ messages | tojson }}{{ tools }}{{ x }}{{ add_generation_prompt }}")
	for _, c := range []struct{ in, want string }{
		{`{"messages": [{"b": 1, "a": 1.0}], "tools": null, "kwargs": {"x": 12345678901234567890}}`, `{"text":"[{\"b\": 1, \"a\": 1.0}]None12345678901234567890False"}`},
		{`{"messages": [], "tools": [], "add_generation_prompt": null, "kwargs": null}`, `{"text":"[][]False"}`},
		{`{"messages": ["<&>é` + "\u2028" + `"]}`, `{"text":"[\"<&>é\u2028\"]NoneFalse"}`},
		{`[]`, `{"error":"this is not an object with messages"}`},
		{`7`, `{"error":"this is not an object with messages"}`},
		{`{}`, `{"error":"messages is missing; it must be a list"}`},
		{`{"messages": {}}`, `{"error":"messages is not a list"}`},
		{`{"messages": [], "tools": 1}`, `{"error":"tools is not a list or null"}`},
		{`{"messages": [], "add_generation_prompt": 1}`, `{"error":"add_generation_prompt is not true or false"}`},
		{`{"messages": [], "kwargs": []}`, `{"error":"kwargs is not an object"}`},
	} {
		o := mustCall(t, c.in+"\n"+`{"messages": []}`, "chat-template", "--template", file)
		if want := c.want + "\n" + `{"text":"[]NoneFalse"}` + "\n"; o.stdout != want {
			t.Errorf("%s\n got %q\nwant %q", c.in, o.stdout, want)
		}
	}
	for _, bad := range []string{"", "{", `{"messages": []} {}`, "\"\xff\""} {
		o := call(t, `{"messages": []}`+"\n"+bad+"\n", "chat-template", "--template", file)
		if o.code != exitFailed || !strings.Contains(o.stderr, "line 2 of stdin: this is not a JSON object") || strings.Count(o.stdout, "\n") != 1 {
			t.Errorf("%q: exit %d, stdout %q, stderr %q; want %d, one line, and an error that names line 2", bad, o.code, o.stdout, o.stderr, exitFailed)
		}
	}
}
