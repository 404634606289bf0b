package tokenizer

import (
	"slices"
	"strings"
	"testing"
)

// Guarded text has no special tokens and loses nothing, whatever it has of them; what stands around
// it does.
func TestGuard(t *testing.T) {
	for _, kind := range []string{"qwen", "qwen35", "deepseek", "kimi", "demo"} {
		tok, err := LoadDir("testdata/" + kind)
		if err != nil {
			t.Fatal(err)
		}
		specials := 0
		for id := range int32(tok.VocabSize()) {
			if !tok.IsSpecial(id) {
				continue
			}
			specials++
			special := tok.Decode([]int32{id}, false)
			for _, text := range []string{special, "a" + special + "b", special + special, "x " + special + " y", special[:1] + special, guard + special} {
				ids, err := tok.EncodeGuarded(tok.Guard(text))
				if err != nil {
					t.Fatal(err)
				}
				if slices.ContainsFunc(ids, tok.IsSpecial) {
					t.Errorf("%s: %q becomes special tokens: %v", kind, text, ids)
				}
				if got, want := tok.Decode(ids, false), strings.ReplaceAll(text, guard, ""); got != want {
					t.Errorf("%s: %q becomes %q", kind, text, got)
				}
				around, err := tok.EncodeGuarded(special + tok.Guard(text) + special)
				if err != nil || len(around) < 2 || around[0] != id || around[len(around)-1] != id {
					t.Errorf("%s: between two %q, %q becomes %v, %v", kind, special, text, around, err)
				}
			}
		}
		if specials == 0 {
			t.Errorf("%s has no special tokens", kind)
		}
		for _, text := range []string{"", "plain text, <b>bold</b>", "a < b | c", "日本語 <|", "\n\n  x"} {
			want, err := tok.Encode(text, false)
			got, err2 := tok.EncodeGuarded(tok.Guard(text))
			if err != nil || err2 != nil || !slices.Equal(got, want) {
				t.Errorf("%s: %q: %v, %v; unguarded %v, %v", kind, text, got, err2, want, err)
			}
		}
	}
}
