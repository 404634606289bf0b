package tokenizer

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// What is written as tokenizer.json and tokenizer_config.json makes the ids that the GGUF file's
// own tokenizer makes.
func TestGGUFAsJSON(t *testing.T) {
	// "ab" is one token; <s> and </s> go around a text.
	letters := []string{"a", "b", "Ġ", "ab", "<s>", "</s>", "<tool>", "unused"}
	for pre := range ggufRules {
		v := &GGUF{Model: "gpt2", Pre: pre, Tokens: letters, Types: []int32{1, 1, 1, 1, 3, 3, 4, 5}, Merges: []string{"a b"}, BOS: 4, EOS: 5, AddBOS: true, AddEOS: true}
		own, err := FromGGUF(v)
		if err != nil {
			t.Fatal(err)
		}
		file, config, err := v.JSON()
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		for name, raw := range map[string][]byte{"tokenizer.json": file, "tokenizer_config.json": config} {
			if err := os.WriteFile(filepath.Join(dir, name), raw, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		again, err := LoadDir(dir)
		if err != nil {
			t.Fatalf("%s: %v", pre, err)
		}
		for _, text := range []string{"", "ab", "ba ab", "a<tool>b", "<s>ab</s> a", "aab\u0020\u0020b"} {
			want, err1 := own.Encode(text, true)
			got, err2 := again.Encode(text, true)
			if err1 != nil || err2 != nil || !slices.Equal(got, want) || want[0] != 4 || want[len(want)-1] != 5 {
				t.Errorf("%s: %q is %v, %v in the file and %v, %v as JSON", pre, text, want, err1, got, err2)
			}
			if a, b := again.Decode(got, true), own.Decode(want, true); a != b {
				t.Errorf("%s: %v is %q and %q", pre, got, b, a)
			}
		}
		if bos, ok := again.BOS(); !ok || bos != 4 || !again.IsSpecial(4) || again.IsSpecial(6) {
			t.Errorf("%s: BOS %d, %v", pre, bos, ok)
		}
	}
	if _, _, err := (&GGUF{Model: "llama"}).JSON(); err == nil {
		t.Error("a tokenizer of another kind is written")
	}
	bad := &GGUF{Model: "gpt2", Pre: "qwen2", Tokens: []string{"a", "\xff"}, Types: []int32{1, 3}, BOS: -1, EOS: -1}
	if _, _, err := bad.JSON(); err == nil {
		t.Error("a token that is no text is written")
	}
}
