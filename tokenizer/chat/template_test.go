package chat

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/tokenizer/jinja"
)

// writeDir makes a directory of files.
func writeDir(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const jinjaFile, configFile, oldFile = "chat_template.jinja", "tokenizer_config.json", "chat_template.json"

func TestLoad(t *testing.T) {
	const named = `{"chat_template": [{"name": "tool_use", "template": "tools"}, {"name": "default", "template": "plain"}]}`
	for _, c := range []struct {
		name  string
		files map[string]string
		tools *jinja.List
		want  string
	}{
		{"a file of its own", map[string]string{jinjaFile: "file", configFile: `{"chat_template": "config"}`}, nil, "file"},
		{"in the configuration", map[string]string{configFile: `{"chat_template": "config"}`, oldFile: `{"chat_template": "old"}`}, nil, "config"},
		{"in the older file", map[string]string{configFile: `{"chat_template": null}`, oldFile: `{"chat_template": "old"}`}, nil, "old"},
		{"named", map[string]string{configFile: named}, nil, "plain"},
		{"named, with tools", map[string]string{configFile: named}, jinja.NewList("f"), "tools"},
		{"named, default alone", map[string]string{configFile: `{"chat_template": [{"name": "default", "template": "plain"}]}`}, jinja.NewList("f"), "plain"},
		{"special tokens", map[string]string{jinjaFile: "{{bos_token}} {{eos_token}}", configFile: `{"bos_token": "<s>", "eos_token": {"content": "</s>", "lstrip": false}}`}, nil, "<s> </s>"},
		{"no special token", map[string]string{jinjaFile: "{{bos_token is defined}} {{eos_token is defined}}", configFile: `{"bos_token": null}`}, nil, "False False"},
	} {
		t.Run(c.name, func(t *testing.T) {
			template, err := Load(writeDir(t, c.files), Options{})
			if err != nil {
				t.Fatal(err)
			}
			got, err := template.Render(jinja.Chat{Messages: Values(nil), Tools: c.tools})
			if err != nil || got != c.want {
				t.Errorf("files %v: rendered %q, %v; want %q", c.files, got, err, c.want)
			}
		})
	}
	given, err := Load(writeDir(t, map[string]string{jinjaFile: "{{bos_token}}", configFile: `{"bos_token": "<s>"}`}), Options{BOS: "<mine>"})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := given.Render(jinja.Chat{}); err != nil || got != "<mine>" {
		t.Errorf("a BOS given in the options: rendered %q, %v; want <mine>", got, err)
	}
}

func TestLoadErrors(t *testing.T) {
	isJinja := func(err error) bool { _, ok := errors.AsType[*jinja.Error](err); return ok }
	isNone := func(err error) bool { _, ok := errors.AsType[*NoTemplateError](err); return ok }
	any := func(err error) bool { return err != nil }
	for _, c := range []struct {
		name  string
		files map[string]string
		is    func(error) bool
		want  string
	}{
		{"nothing", nil, isNone, "no chat_template.jinja"},
		{"no template", map[string]string{configFile: `{"bos_token": "<s>"}`}, isNone, "it may be no chat model"},
		{"no object", map[string]string{configFile: `[]`}, any, "not a JSON object"},
		{"bad template", map[string]string{jinjaFile: "{% if %}"}, isJinja, jinjaFile + ":1"},
		{"bad named template", map[string]string{configFile: `{"chat_template": [{"name": "default", "template": "{{"}]}`}, isJinja, "default"},
		{"a number as template", map[string]string{configFile: `{"chat_template": 7}`}, any, "neither a text nor a list"},
		{"no default", map[string]string{configFile: `{"chat_template": [{"name": "rag", "template": "x"}]}`}, any, "it has rag"},
		{"no name", map[string]string{configFile: `{"chat_template": [{"template": "x"}]}`}, any, `item 0 of chat_template lacks "name"`},
		{"a number as token", map[string]string{jinjaFile: "x", configFile: `{"bos_token": 7}`}, any, "bos_token is 7"},
		{"an object without content as token", map[string]string{jinjaFile: "x", configFile: `{"eos_token": {"id": 7}}`}, any, "eos_token is"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := Load(writeDir(t, c.files), Options{}); err == nil || !c.is(err) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("files %v: error %v, want one with %q", c.files, err, c.want)
			}
		})
	}
}

func TestTurnEnd(t *testing.T) {
	for _, c := range []struct{ template, want string }{
		{"{% for m in messages %}<{{ m.role }}>{{ m.content }}</s>\n{% endfor %}", "</s>\n"},
		{"{% for m in messages %}{{ m.content }}{% endfor %}", ""},
		{"{{ raise_exception('never') }}", ""},
		{"{{ messages[0].content }}", ""},
	} {
		template, err := Parse("test", c.template, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := template.TurnEnd(); got != c.want {
			t.Errorf("%q: turns end with %q, want %q", c.template, got, c.want)
		}
	}
}

func TestValues(t *testing.T) {
	template, err := Parse("test", "{{ messages | tojson }}", Options{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := template.Render(jinja.Chat{Messages: Values([]Message{{Role: User, Content: "a"}, {Role: Assistant, Content: "b", ReasoningContent: "c"}})})
	if want := `[{"role": "user", "content": "a"}, {"role": "assistant", "content": "b", "reasoning_content": "c"}]`; err != nil || got != want {
		t.Errorf("rendered %q, %v; want %q", got, err, want)
	}
}

func TestReadMessages(t *testing.T) {
	got, err := ReadMessages(strings.NewReader(` [{"role": "system", "content": ""}, {"content": "b", "role": "assistant", "reasoning_content": "c"}] `))
	if want := (Message{Role: Assistant, Content: "b", ReasoningContent: "c"}); err != nil || len(got) != 2 || !got[0].Equal(Message{Role: System}) || !got[1].Equal(want) {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, c := range []struct{ in, want string }{
		{``, "not a JSON list"}, {`{}`, "not a JSON list"}, {`[] []`, "something follows"}, {`[{"role": "critic", "content": "x"}]`, `message 0: the role is "critic"`},
		{`[{"role": "user", "content": 7}]`, "content is 7"}, {`[{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "u"}}]}]`, `part 0 of content has the type "image_url"`},
		{`[{"role": "user", "content": "x", "tool_calls": [{"function": {"name": "f"}}]}]`, "only the assistant calls"}, {`[{}]`, `the role is ""`},
		{`[{"role": "assistant", "function_call": {}}]`, "function_call"}, {`[{"role": "user", "content": "x", "mood": "good"}]`, "mood"},
		{`[{"role": "assistant", "tool_calls": [{"type": "custom"}]}]`, `type is "custom"`}, {`[{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": [1]}}]}]`, "arguments are [1]"},
	} {
		if _, err := ReadMessages(strings.NewReader(c.in)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.in, err, c.want)
		}
	}
}
