package tokenizer

import (
	"errors"
	"math/rand/v2"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Any file is parsed or refused; what is parsed encodes and decodes a short text without a panic.
func FuzzParse(f *testing.F) {
	// Small seeds: the engine spends its time on shortening large ones.
	model := `"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2,"Ġ":3,"<s>":4},"merges":[["a","b"]],"ignore_merges":true}`
	level, decoder := `{"type":"ByteLevel","add_prefix_space":true,"use_regex":true}`, `"decoder":{"type":"ByteLevel"}`
	for _, seed := range []string{
		`{` + model + `,"pre_tokenizer":` + level + `,` + decoder + `}`,
		`{` + model + `,"pre_tokenizer":` + level + `,"decoder":{"type":"Sequence","decoders":[{"type":"ByteLevel"}]},
			"normalizer":{"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"NFKD"}]},
			"added_tokens":[{"id":4,"content":"<s>","special":true},{"id":9,"content":"<x>","single_word":true,"lstrip":true,"rstrip":true,"normalized":false}],
			"post_processor":{"type":"Sequence","processors":[{"type":"ByteLevel"},{"type":"TemplateProcessing",
				"single":[{"SpecialToken":{"id":"<s>"}},{"Sequence":{"id":"A"}}],"special_tokens":{"<s>":{"ids":[4]}}}]}}`,
		`{` + model + `,` + decoder + `,"pre_tokenizer":{"type":"Sequence","pretokenizers":[
			{"type":"Split","pattern":{"Regex":"\\s+(?!\\S)|\\p{L}*"},"behavior":"MergedWithNext","invert":true},
			{"type":"Split","pattern":{"String":"b"},"behavior":"Contiguous"},` + level + `]}}`,
		`{"model":{"vocab":{"a":0,"b":1,"ab":2},"merges":["#version","a b"]},"pre_tokenizer":{"type":"ByteLevel"},` + decoder + `}`,
	} {
		if _, err := Parse([]byte(seed)); err != nil {
			f.Fatalf("seed %s: %v", seed, err)
		}
		f.Add([]byte(seed))
	}
	f.Add([]byte(`{"model":{"vocab":{"":0}},"added_tokens":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		tok, err := Parse(data)
		if err != nil {
			if tok != nil {
				t.Errorf("a Tokenizer and error %v", err)
			}
			return
		}
		ids, err := tok.Encode("ab <x> abba b<s>", true)
		if unknown := (*UnencodableError)(nil); err != nil && !errors.As(err, &unknown) {
			t.Errorf("Encode: %v", err)
		}
		for _, id := range ids {
			if _, ok := tok.TokenBytes(id); !ok {
				t.Errorf("Encode gave id %d, which no token has", id)
			}
		}
		tok.Decode(ids, true)
		tok.Decode([]int32{-1, 0, int32(tok.VocabSize()) - 1, int32(tok.VocabSize())}, false)
	})
}

// Valid NFC text without added tokens comes back from its ids, whole and as a stream; other text
// comes back normalised.
func FuzzEncode(f *testing.F) {
	toks := map[string]*Tokenizer{}
	for _, kind := range kinds {
		toks[kind] = mustLoad(f, kind)
		for i, c := range mustCases(f, kind).Cases {
			if i%10 == 0 {
				f.Add(c.Text)
			}
		}
	}
	rng := rand.New(rand.NewPCG(13, 14))
	for range 50 {
		f.Add(randomText(rng, 60))
	}
	f.Add("e\u0301 \xff\xf0\x9f")
	f.Fuzz(func(t *testing.T, text string) {
		for kind, tok := range toks {
			ids, err := tok.Encode(text, false)
			if err != nil {
				t.Fatalf("%s: %v", kind, err)
			}
			plain := utf8.ValidString(text)
			for _, id := range ids {
				if !tok.has(id) {
					t.Fatalf("%s: Encode(%q) gave id %d, which no token has", kind, text, id)
				}
				if tok.flags[id]&flagAdded != 0 {
					plain = false // added tokens divide the text before it is normalised
				}
			}
			if plain {
				want := text
				if len(tok.norm) > 0 {
					want = normalForm(norm.NFC, text)
				}
				checkDecode(t, tok, ids, false, want)
			}
			// Encoding what was decoded changes no text.
			once := tok.Decode(ids, false)
			again, err := tok.Encode(once, false)
			if err != nil {
				t.Fatalf("%s: %v", kind, err)
			}
			if got := tok.Decode(again, false); plain && got != once {
				t.Fatalf("%s: %q becomes %q, then %q", kind, text, once, got)
			}
		}
	})
}
