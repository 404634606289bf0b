package tokenizer

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// tinyGGUF is a tokenizer of four letters, one merge, a special and a user's token, and a gap.
func tinyGGUF() *GGUF {
	return &GGUF{
		Model: "gpt2", Pre: "qwen2",
		Tokens: []string{"a", "b", "ab", "Ġ", "<end>", "a b", "unused"}, Types: []int32{1, 1, 1, 1, 3, 4, 5},
		Merges: []string{"a b"}, BOS: -1, EOS: 4,
	}
}

func TestFromGGUF(t *testing.T) {
	v := tinyGGUF()
	v.AddEOS = true
	tok, err := FromGGUF(v)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]int32{"ab ba": {2, 3, 1, 0, 4}, "<end>": {4, 4}, "aa bb": {0, 5, 1, 4}} {
		if got, err := tok.Encode(text, true); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: got %v, %v, want %v", text, got, err, want)
		}
	}
	if got := tok.Decode([]int32{5, 4, 6, 2}, true); got != "a bab" {
		t.Errorf("decoded %q", got)
	}
	if _, ok := tok.TokenID("unused"); ok {
		t.Error("a gap is a token")
	}
}

// What is unknown is refused by name, and what cannot be is an error that says so.
func TestFromGGUFErrors(t *testing.T) {
	for name, c := range map[string]struct {
		change      func(v *GGUF)
		want        string
		unsupported bool
	}{
		"kind":        {func(v *GGUF) { v.Model = "llama" }, `tokenizer.ggml.model = "llama"`, true},
		"rule":        {func(v *GGUF) { v.Pre = "llama-bpe" }, `tokenizer.ggml.pre = "llama-bpe" (known: chatglm-bpe, deepseek-v3, glm4, gpt-4o, hunyuan, hunyuan-dense, joyai-llm, kimi-k2, minimax-m2, qwen2, qwen35)`, true},
		"no rule":     {func(v *GGUF) { v.Pre = "" }, `tokenizer.ggml.pre = ""`, true},
		"type":        {func(v *GGUF) { v.Types[1] = 6 }, "token_type[1] = 6", true},
		"types":       {func(v *GGUF) { v.Types = v.Types[1:] }, "6 types in tokenizer.ggml.token_type for 7 tokens", false},
		"token twice": {func(v *GGUF) { v.Tokens[1] = "a" }, `"a" has the ids 0 and 1`, false},
		"no tokens":   {func(v *GGUF) { v.Tokens, v.Types = nil, nil }, "missing or empty", false},
		"merge":       {func(v *GGUF) { v.Merges[0] = "ab" }, `"ab" is not two tokens`, false},
		"merge of 3":  {func(v *GGUF) { v.Merges[0] = "a b a" }, `"a b a" is not two tokens`, false},
		"merged":      {func(v *GGUF) { v.Merges[0] = "b a" }, `tokenizer.ggml.merges[0]: "b" and "a"`, false},
		"end":         {func(v *GGUF) { v.EOS = 7 }, "eos_token_id is 7", false},
		"end in gap":  {func(v *GGUF) { v.EOS = 6 }, "eos_token_id is 6", false},
		"no begin":    {func(v *GGUF) { v.AddBOS = true }, "add_bos_token is true", false},
	} {
		v := tinyGGUF()
		c.change(v)
		_, err := FromGGUF(v)
		var unsupported *UnsupportedError
		if err == nil || !strings.Contains(err.Error(), c.want) || errors.As(err, &unsupported) != c.unsupported {
			t.Errorf("%s: got %v, want one with %q", name, err, c.want)
		}
	}
}
