package tokenizer

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const hunyuanDir = "hunyuan"

// hunyuanBase is how many tokens testdata/hunyuan has before the special ones.
const hunyuanBase = 493

type rankedCase struct {
	Text string
	IDs  []int32
}

// The ids are those of tiktoken, called as the code of Hunyuan's tokenizer does.
func TestHunyuanReference(t *testing.T) {
	var cases []rankedCase
	readJSON(t, &cases, hunyuanDir, "cases.json")
	if len(cases) < 250 {
		t.Fatalf("%d cases", len(cases))
	}
	tok := mustLoad(t, hunyuanDir)
	for _, c := range cases {
		if got := mustEncode(t, tok, c.Text); !slices.Equal(got, c.IDs) {
			t.Errorf("%q\n got %v\nwant %v", c.Text, got, c.IDs)
		}
	}
	if tok.VocabSize() != hunyuanBase+210 {
		t.Errorf("%d ids, want 210 after %d", tok.VocabSize(), hunyuanBase)
	}
	for text, want := range map[string]int32{"<|endoftext|>": hunyuanBase, "<|eos|>": hunyuanBase + 3, "<|extra_204|>": hunyuanBase + 209} {
		if id, ok := tok.TokenID(text); !ok || id != want || !tok.IsSpecial(id) {
			t.Errorf("%s: %d, %v, special %v, want %d", text, id, ok, tok.IsSpecial(id), want)
		}
	}
	if bos, ok := tok.BOS(); !ok || bos != hunyuanBase+1 {
		t.Errorf("begins with %d, %v", bos, ok)
	}
}

// A GGUF file of the same tokens, with the merges that its converter works out, has the same ids.
// It looks for special tokens before text comes to normal form C, so that one with a combining
// character behind it stays one.
func TestHunyuanAsGGUF(t *testing.T) {
	var cases []rankedCase
	readJSON(t, &cases, hunyuanDir, "cases.json")
	tok := mustLoad(t, hunyuanDir)
	v := rankedGGUF("hunyuan", tok.bytes[:hunyuanBase])
	for _, text := range tok.bytes[hunyuanBase:] {
		v.Tokens, v.Types = append(v.Tokens, text), append(v.Types, ggufControl)
	}
	file, err := FromGGUF(v)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		if got := mustEncode(t, file, c.Text); !slices.Equal(got, c.IDs) && !strings.Contains(c.Text, "|>\u0338") {
			t.Errorf("%q\n got %v\nwant %v", c.Text, got, c.IDs)
		}
	}
}

// A line that repeats a token has no rank, and what the file says of ranks does not count.
func TestHunyuanLines(t *testing.T) {
	const class = `{"tokenizer_class": "HYTokenizer"}`
	for _, c := range []struct {
		name, file, config string
		ranks              int
		want               string
	}{
		{"repeated", "YQ== 0\nYg== 1\nYQ== 2\nYWI= 3\n", class, 3, ""},
		{"ranks that do not count", "YQ== 9\nYg== x\nYWI= 9\n", class, 3, ""},
		{"no base64", "YQ== 0\n!!!! 1\n", class, 0, "hy.tiktoken, line 2"},
		{"another class", "YQ== 0\n", `{"tokenizer_class": "TikTokenTokenizer"}`, 0, `"TikTokenTokenizer" beside a hy.tiktoken`},
		{"no config", "YQ== 0\n", "", 0, "hy.tiktoken lacks the tokenizer_config.json"},
		{"a token that the class lacks", "YQ== 0\n", `{"tokenizer_class": "HYTokenizer", "added_tokens_decoder": {"3": {"content": "<|im_end|>"}}}`, 0, `"<|im_end|>" with id 3`},
		{"an id that the class lacks", "YQ== 0\n", `{"tokenizer_class": "HYTokenizer", "added_tokens_decoder": {"211": {"content": "<|eos|>"}}}`, 0, `"<|eos|>" with id 211`},
	} {
		dir := t.TempDir()
		for name, content := range map[string]string{hunyuanName: c.file, configName: c.config} {
			if content == "" {
				continue
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		tok, err := LoadDir(dir)
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: got %v, want %q", c.name, err, c.want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got, want := mustEncode(t, tok, "ab<|bos|>"), []int32{int32(c.ranks) - 1, int32(c.ranks) + 2}; !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", c.name, got, want)
		}
	}
}
