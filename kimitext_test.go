package moeflux

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/tokenizer"
)

// asTiktoken replaces the tokenizer.json of a directory by a tiktoken.model of the same vocabulary.
// Its merges are in order of ids, so texts that both expressions split alike have the same ids.
func asTiktoken(t *testing.T, dir string) {
	t.Helper()
	name, configName := filepath.Join(dir, "tokenizer.json"), filepath.Join(dir, "tokenizer_config.json")
	tok, err := tokenizer.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	var ranks []byte
	for id := range int32(tok.VocabSize()) {
		if token, _ := tok.TokenBytes(id); id < 503 { // the added ones follow
			ranks = fmt.Appendf(ranks, "%s %d\n", base64.StdEncoding.EncodeToString(token), id)
		}
	}
	raw, err := os.ReadFile(configName)
	if err != nil {
		t.Fatal(err)
	}
	var config map[string]any
	if err := json.Unmarshal(raw, &config); err != nil {
		t.Fatal(err)
	}
	config["tokenizer_class"] = "TikTokenTokenizer"
	if raw, err = json.Marshal(config); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{name, configName} {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	write(t, configName, raw)
	write(t, filepath.Join(dir, "tiktoken.model"), ranks)
}

// A model with a tiktoken.model and no tokenizer.json writes what it writes with the latter.
func TestTiktokenModel(t *testing.T) {
	answer := func(change func(dir string)) collected {
		dir := withGeneration(t, "")
		change(dir)
		m, err := Open(t.Context(), dir, Options{Device: "host"})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close(t.Context())
		return mustCollect(t, m.Generate(t.Context(), Request{Prompt: "<|im_start|>the reader", MaxTokens: 12, Sampling: greedy}))
	}
	want := answer(func(string) {})
	got := answer(func(dir string) { asTiktoken(t, dir) })
	if len(want.ids) < 2 || !slices.Equal(got.ids, want.ids) || got.text != want.text || !slices.Equal(got.prompt.IDs, want.prompt.IDs) {
		t.Errorf("got %v %q after %v\nwant %v %q after %v", got.ids, got.text, got.prompt.IDs, want.ids, want.text, want.prompt.IDs)
	}
}
