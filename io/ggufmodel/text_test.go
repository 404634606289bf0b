package ggufmodel_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/tokenizer"
	"github.com/moeflux/moeflux-actor/tokenizer/chat"
)

// Tokenizer and template of a file are those that it was made with.
func TestText(t *testing.T) {
	text, err := open(t, fixtures.GGUF(t, fixtures.Qwen35MoEBF16)).Text()
	if err != nil || text.Refused != nil {
		t.Fatal(err, text.Refused)
	}
	again, err := tokenizer.Parse(text.TokenizerJSON)
	if err != nil {
		t.Fatal(err)
	}
	const line = "<|im_start|>user\nThe cat’s naïve 42 — über ßtraße<|im_end|>\n<think>"
	want, err1 := text.Tokenizer.Encode(line, false)
	got, err2 := again.Encode(line, false)
	if err1 != nil || err2 != nil || !slices.Equal(got, want) || len(want) < 20 || text.Tokenizer.Decode(want, false) != line {
		t.Errorf("%v, %v and %v, %v", want, err1, got, err2)
	}
	source := filepath.Join(fixtures.Dir(t, fixtures.Qwen35MoEQ4), "chat_template.jinja")
	raw, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	template, err := chat.FromConfig("file", text.ConfigJSON, chat.Options{})
	if err != nil || template.Source() != string(raw) {
		t.Errorf("template: %v", err)
	}
	var config map[string]any
	if err := json.Unmarshal(text.ConfigJSON, &config); err != nil || config["eos_token"] != "<|im_end|>" || config["add_bos_token"] != false {
		t.Errorf("%v, %v", config["eos_token"], config["add_bos_token"])
	}
}

// The tokenizer of gpt-oss splits as its rule says, and reads the marks of harmony.
func TestTextHarmony(t *testing.T) {
	text, err := open(t, fixtures.GGUF(t, fixtures.GptOssMXFP4)).Text()
	if err != nil || text.Refused != nil {
		t.Fatal(err, text.Refused)
	}
	const line = "<|start|>assistant<|channel|>final<|message|>The tHe path/\n/is there.<|return|>"
	ids, err := text.Tokenizer.Encode(line, false)
	if err != nil || ids[0] != 89 || ids[len(ids)-1] != 95 || text.Tokenizer.Decode(ids, false) != line {
		t.Errorf("%v, %v", ids, err)
	}
	the, _ := text.Tokenizer.TokenID("th")
	if n := len(slices.DeleteFunc(slices.Clone(ids), func(id int32) bool { return id != the })); n != 1 { // of path
		t.Errorf("%d times th in %v", n, ids)
	}
	template, err := chat.FromConfig("file", text.ConfigJSON, chat.Options{})
	if err != nil || !strings.Contains(template.Source(), "<|channel|>analysis") {
		t.Errorf("template: %v", err)
	}
}

// Templates with names are kept with them.
func TestTextTemplates(t *testing.T) {
	m := open(t, edited(t, fixtures.Qwen35MoEBF16, "tokenizer.chat_template", "tokenizer.chat_template"))
	if _, ok := m.Templates().(string); !ok {
		t.Errorf("one template is %T", m.Templates())
	}
	// The name of the model, of 14 bytes, becomes that of a second template.
	m = open(t, edited(t, fixtures.Qwen35MoEBF16, "\x0c\x00\x00\x00\x00\x00\x00\x00general.name", "\x0c\x00\x00\x00\x00\x00\x00\x00general.nama"))
	if _, ok := m.Templates().(string); !ok {
		t.Errorf("another key counts as a template: %T", m.Templates())
	}
}

// A tokenizer that nobody here knows is said, and the rest is read.
func TestTextRefused(t *testing.T) {
	m := open(t, edited(t, fixtures.Qwen35MoEBF16, "\x06\x00\x00\x00\x00\x00\x00\x00qwen35", "\x06\x00\x00\x00\x00\x00\x00\x00qwen53"))
	text, err := m.Text()
	if err != nil || text.Tokenizer != nil || text.TokenizerJSON != nil {
		t.Fatal(err)
	}
	var unknown *tokenizer.UnsupportedError
	if !errors.As(text.Refused, &unknown) || !strings.Contains(text.Refused.Error(), "qwen53") {
		t.Errorf("got %v", text.Refused)
	}
	if _, err := chat.FromConfig("file", text.ConfigJSON, chat.Options{}); err != nil {
		t.Error(err)
	}
	m = open(t, fixtures.GGUF(t, fixtures.MiniMaxM2BF16)) // has ids of ends, but no tokens
	if text, err := m.Text(); err != nil || text.Refused == nil || !strings.Contains(text.Refused.Error(), "tokenizer.ggml.tokens is missing") {
		t.Errorf("got %v", err)
	}
}
