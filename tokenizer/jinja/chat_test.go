package jinja

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

type chatFixture struct {
	Template            string
	Messages            json.RawMessage
	Tools               json.RawMessage
	AddGenerationPrompt bool `json:"add_generation_prompt"`
	Kwargs              json.RawMessage
	Expected            *string
	Error               string
	ErrorType           string `json:"error_type"`
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.FromSlash(path))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func readJSON(t testing.TB, path string, into any) {
	t.Helper()
	if err := json.Unmarshal(readFile(t, path), into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

func decode(t testing.TB, data []byte) Value {
	t.Helper()
	if len(data) == 0 {
		return nil
	}
	v, err := DecodeJSON(data)
	if err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return v
}

func parseFile(t testing.TB, path string) *Template {
	t.Helper()
	tmpl, err := Parse(filepath.Base(path), string(readFile(t, path)))
	if err != nil {
		t.Fatal(err)
	}
	return tmpl
}

func (c *chatFixture) chat(t testing.TB) Chat {
	t.Helper()
	chat := Chat{AddGenerationPrompt: c.AddGenerationPrompt}
	chat.Messages, _ = decode(t, c.Messages).(*List)
	chat.Tools, _ = decode(t, c.Tools).(*List)
	chat.Extra, _ = decode(t, c.Kwargs).(*Dict)
	return chat
}

func readChats(t testing.TB) (bos, eos string, cases []*chatFixture) {
	t.Helper()
	var f struct {
		BOS   string `json:"bos_token"`
		EOS   string `json:"eos_token"`
		Cases []*chatFixture
	}
	readJSON(t, "testdata/chat/cases.json", &f)
	return f.BOS, f.EOS, f.Cases
}

// The conversations come out byte for byte as transformers renders them, and what it refuses is
// refused.
func TestChatCases(t *testing.T) {
	bos, eos, cases := readChats(t)
	if len(cases) != 58 {
		t.Fatalf("%d cases, want 58", len(cases))
	}
	for i, c := range cases {
		tmpl := ChatTemplate{Template: parseFile(t, "testdata/chat/"+c.Template), BOS: bos, EOS: eos}
		got, err := tmpl.Render(c.chat(t))
		if c.Expected != nil {
			if err != nil || got != *c.Expected {
				t.Errorf("case %d, %s\n got %q, %v\nwant %q\n for %s", i, c.Template, got, err, *c.Expected, c.Messages)
			}
			continue
		}
		var e *Error
		if !errors.As(err, &e) || string(e.Kind) != c.ErrorType || c.ErrorType == string(KindTemplate) && e.Msg != c.Error {
			t.Errorf("case %d, %s\n got %q, %v\nwant %s: %s\n for %s", i, c.Template, got, err, c.ErrorType, c.Error, c.Messages)
		}
	}
}

// The prompt of the small checkpoint, from the template in its tokenizer_config.json.
func TestCheckpointTemplate(t *testing.T) {
	var config struct {
		Template string `json:"chat_template"`
		EOS      string `json:"eos_token"`
	}
	readJSON(t, "../testdata/e2e/tokenizer_config.json", &config)
	var want struct {
		Messages            json.RawMessage
		AddGenerationPrompt bool `json:"add_generation_prompt"`
		Text                string
	}
	readJSON(t, "../testdata/e2e/e2e.json", &want)
	tmpl, err := Parse("chat_template", config.Template)
	if err != nil {
		t.Fatal(err)
	}
	chat := ChatTemplate{Template: tmpl, EOS: config.EOS}
	got, err := chat.Render(Chat{Messages: decode(t, want.Messages).(*List), AddGenerationPrompt: want.AddGenerationPrompt})
	if err != nil || got != want.Text {
		t.Errorf("got %q, %v\nwant %q", got, err, want.Text)
	}
}

// The demo model's template is plain ChatML, so that what it gives can be written down.
func TestDemoTemplate(t *testing.T) {
	var config struct {
		Template string `json:"chat_template"`
	}
	readJSON(t, "../testdata/demo/tokenizer_config.json", &config)
	tmpl, err := Parse("chat_template", config.Template)
	if err != nil {
		t.Fatal(err)
	}
	chat := ChatTemplate{Template: tmpl}
	got, err := chat.Render(Chat{
		Messages:            NewList(Message("user", "Hi"), Message("assistant", " yes\n"), Message("user", "{{ x }}")),
		AddGenerationPrompt: true,
	})
	want := "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n yes\n<|im_end|>\n" +
		"<|im_start|>user\n{{ x }}<|im_end|>\n<|im_start|>assistant\n"
	if err != nil || got != want {
		t.Errorf("got %q, %v\nwant %q", got, err, want)
	}
}

// One template and one conversation serve many goroutines; the race detector looks on.
func TestConcurrentRender(t *testing.T) {
	bos, eos, cases := readChats(t)
	for _, c := range cases[30:34] {
		tmpl := ChatTemplate{Template: parseFile(t, "testdata/chat/"+c.Template), BOS: bos, EOS: eos}
		chat := c.chat(t)
		want, wantErr := tmpl.Render(chat)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 20 {
					got, err := tmpl.Render(chat)
					if got != want || (err == nil) != (wantErr == nil) {
						t.Errorf("got %q, %v\nwant %q, %v", got, err, want, wantErr)
					}
				}
			})
		}
		wg.Wait()
	}
}

func TestChatVariables(t *testing.T) {
	text := "{{ tools is none }}{{ documents is none }}{{ bos_token is defined }}{{ eos_token }}{{ add_generation_prompt }}{{ x }}"
	tmpl, err := Parse("vars", text)
	if err != nil {
		t.Fatal(err)
	}
	extra := NewDict()
	extra.Set("x", 5)
	chat := ChatTemplate{Template: tmpl, EOS: "</s>"}
	got, err := chat.Render(Chat{Messages: NewList(), Extra: extra})
	if want := "TrueTrueFalse</s>False5"; err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}
