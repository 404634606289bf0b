package gguf

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/tokenizer"
)

// tokenizerOf makes the tokenizer of a file.
func tokenizerOf(t *testing.T, name string) *tokenizer.Tokenizer {
	t.Helper()
	v, err := open(t, name).Metadata().Tokenizer()
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.FromGGUF(v)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// Ids and texts from the metadata are those that the reference gives for the tokenizer.json from
// which make_gguf.py took it.
func TestTokenizer(t *testing.T) {
	for _, kind := range []string{"qwen", "qwen35", "deepseek"} {
		tok := tokenizerOf(t, "tokenizer-"+kind+".gguf")
		raw, err := os.ReadFile("../../tokenizer/testdata/" + kind + "/cases.json")
		if err != nil {
			t.Fatal(err)
		}
		var reference struct {
			Cases []struct {
				Text, Decoded string
				IDs           []int32
				Skipped       string `json:"decoded_skip_special"`
			}
		}
		if err := json.Unmarshal(raw, &reference); err != nil {
			t.Fatal(err)
		}
		if len(reference.Cases) < 200 {
			t.Fatalf("%s: %d cases", kind, len(reference.Cases))
		}
		for _, c := range reference.Cases {
			ids, err := tok.Encode(c.Text, false)
			if err != nil || !slices.Equal(ids, c.IDs) {
				t.Errorf("%s: %q\n got %v, %v\nwant %v", kind, c.Text, ids, err, c.IDs)
			}
			if got := tok.Decode(c.IDs, false); got != c.Decoded {
				t.Errorf("%s: %v is %q, want %q", kind, c.IDs, got, c.Decoded)
			}
			if got := tok.Decode(c.IDs, true); got != c.Skipped {
				t.Errorf("%s: %v without special tokens is %q, want %q", kind, c.IDs, got, c.Skipped)
			}
		}
	}
}

// Begin and end of a text, special and unused tokens, and the template are the file's.
func TestTokenizerEnds(t *testing.T) {
	tok := tokenizerOf(t, "tokenizer-deepseek.gguf")
	bos, hasBOS := tok.BOS()
	eos, hasEOS := tok.EOS()
	ids, err := tok.Encode("a", true)
	if err != nil || !hasBOS || !hasEOS || bos != 991 || eos != 992 || !slices.Equal(ids, []int32{991, 64}) {
		t.Errorf("BOS %d, EOS %d, ids %v, %v", bos, eos, ids, err)
	}
	if !tok.IsSpecial(991) || tok.IsSpecial(994) || tok.VocabSize() != 1000 {
		t.Errorf("special: 991 %v, 994 %v; %d ids", tok.IsSpecial(991), tok.IsSpecial(994), tok.VocabSize())
	}
	if _, used := tokenizerOf(t, "tokenizer-qwen35.gguf").TokenBytes(900); used {
		t.Error("id 900 of qwen35, which fills a gap, is a token")
	}
	if template, _ := open(t, "moe-v2.gguf").Metadata().Text("tokenizer.chat_template"); template != "{{ messages }}" {
		t.Errorf("template %q", template)
	}
}

// What a tokenizer lacks, or has of another type, is said with its key.
func TestTokenizerErrors(t *testing.T) {
	text := func(f *forged, key, value string) { f.text("tokenizer.ggml." + key).u32(8).text(value) }
	array := func(f *forged, key string, elem uint32, n uint64) *forged {
		return f.text("tokenizer.ggml." + key).u32(9).u32(elem).u64(n)
	}
	for want, c := range map[string]struct {
		keys uint64
		add  func(f *forged)
	}{
		"tokenizer.ggml.tokens is missing":                {1, func(f *forged) { text(f, "model", "gpt2") }},
		"tokenizer.ggml.tokens is no array of strings":    {1, func(f *forged) { text(f, "tokens", "a") }},
		"tokenizer.ggml.model is no string":               {1, func(f *forged) { f.text("tokenizer.ggml.model").u32(4).u32(1) }},
		"tokenizer.ggml.token_type is missing":            {1, func(f *forged) { array(f, "tokens", 8, 1).text("a") }},
		"tokenizer.ggml.token_type is no array":           {2, func(f *forged) { array(f, "tokens", 8, 1).text("a"); array(f, "token_type", 5, 1).u32(1 << 31) }},
		"tokenizer.ggml.bos_token_id is no id of a token": {3, func(f *forged) { array(f, "tokens", 8, 0); array(f, "token_type", 5, 0); text(f, "bos_token_id", "1") }},
		"tokenizer.ggml.add_bos_token is no truth value":  {3, func(f *forged) { array(f, "tokens", 8, 0); array(f, "token_type", 5, 0); text(f, "add_bos_token", "1") }},
		"tokenizer.ggml.merges is no array of strings":    {3, func(f *forged) { array(f, "tokens", 8, 0); array(f, "token_type", 5, 0); array(f, "merges", 5, 0) }},
	} {
		f := forge(3, 0, c.keys)
		c.add(f)
		h, err := Parse("file", f.Bytes())
		if err != nil {
			t.Fatal(want, err)
		}
		if _, err := h.Metadata.Tokenizer(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
