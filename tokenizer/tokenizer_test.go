package tokenizer

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

func TestInvalidUTF8(t *testing.T) {
	tok := spec{}.build(t)
	// From the Unicode standard, table 3-8 and its neighbours: one U+FFFD for each longest
	// beginning of a character.
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"a\xf1\x80\x80\xe1\x80\xc2b\x80c\x80\xbfd", "a\ufffd\ufffd\ufffdb\ufffdc\ufffd\ufffdd"},
		{"\xc0\xaf\xe0\x80\xbf\xf0\x81\x82A", "\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffdA"},
		{"\xed\xa0\x80\xed\xbf\xbfA", strings.Repeat("\ufffd", 6) + "A"},
		{"\xf4\x91\x92\x93\xff\x41\x80\xbf\x42", "\ufffd\ufffd\ufffd\ufffd\ufffdA\ufffd\ufffdB"},
		{"\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41", "\ufffd\ufffd\ufffd\ufffdA"},
		{"\xe2\x82", "\ufffd"},
		{"\xf0\x9f\x98", "\ufffd"},
		{"\xf0\x9f\x98\x80\xf0\x9f", "😀\ufffd"},
		{"\ufffd", "\ufffd"},
	} {
		var ids []int32
		for _, b := range []byte(c.in) {
			ids = append(ids, int32(b))
		}
		checkDecode(t, tok, ids, false, c.want)
		if got := tok.Decode(mustEncode(t, tok, c.in), false); got != c.want {
			t.Errorf("Encode(%q) decodes to %q, want %q", c.in, got, c.want)
		}
	}
}

// Random ids, cut into characters anywhere: the stream gives what Decode gives, never an unfinished
// character, and holds back no more than that.
func TestStreamIsDecode(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for _, kind := range kinds {
		tok := mustLoad(t, kind)
		text := strings.Repeat("né 😀 한국 <think>x</think> ", 3)
		base := mustEncode(t, tok, text)
		for round := range 3000 {
			ids := slices.Clone(base[:rng.IntN(len(base))])
			if round%3 == 0 {
				ids = make([]int32, rng.IntN(30))
			}
			for i := range ids {
				if round%3 == 0 || rng.IntN(8) == 0 {
					ids[i] = int32(rng.IntN(tok.VocabSize()+20) - 10)
				}
			}
			skip := round%2 == 0
			want := tok.Decode(ids, skip)
			s := tok.NewStream(skip)
			var got strings.Builder
			for i, id := range ids {
				part := s.Push(id)
				if !utf8.ValidString(part) {
					t.Fatalf("%s: Push gave %q after %v", kind, part, ids[:i+1])
				}
				got.WriteString(part)
				whole := tok.Decode(ids[:i+1], skip)
				if held := strings.TrimPrefix(whole, got.String()); held != "" && held != "\ufffd" {
					t.Fatalf("%s: after %v the stream holds back %q", kind, ids[:i+1], held)
				}
			}
			got.WriteString(s.Flush())
			if got.String() != want {
				t.Fatalf("%s: stream of %v\n got %q\nwant %q", kind, ids, got.String(), want)
			}
			if again := s.Flush(); again != "" {
				t.Fatalf("%s: a second Flush gave %q", kind, again)
			}
		}
	}
}

func TestTokenAccess(t *testing.T) {
	tok := mustLoad(t, "qwen")
	if got := tok.VocabSize(); got != 1000 {
		t.Errorf("VocabSize() = %d, want 1000", got)
	}
	for _, c := range []struct {
		content string
		bytes   string
		special bool
	}{{"Ġt", " t", false}, {"<|im_end|>", "<|im_end|>", true}, {"<think>", "<think>", false}, {"Ċ", "\n", false}} {
		id, ok := tok.TokenID(c.content)
		if !ok {
			t.Errorf("TokenID(%q): none", c.content)
			continue
		}
		b, ok := tok.TokenBytes(id)
		if !ok || string(b) != c.bytes || tok.IsSpecial(id) != c.special {
			t.Errorf("id %d: TokenBytes %q, %v, special %v, want %q, special %v", id, b, ok, tok.IsSpecial(id), c.bytes, c.special)
		}
		b[0] = 'X'
		if again, _ := tok.TokenBytes(id); string(again) != c.bytes {
			t.Errorf("writing to the result of TokenBytes changed the token to %q", again)
		}
	}
	for _, id := range []int32{-1, 1000, 1 << 30, -1 << 31} {
		if b, ok := tok.TokenBytes(id); ok || b != nil || tok.IsSpecial(id) {
			t.Errorf("id %d: got %q, %v, want nothing", id, b, ok)
		}
		checkDecode(t, tok, []int32{id, 0, id}, false, "!")
	}
	if id, ok := tok.TokenID("no such token"); ok {
		t.Errorf("TokenID of what is no token: %d", id)
	}
	for _, get := range []func() (int32, bool){tok.BOS, tok.EOS} {
		if id, ok := get(); ok {
			t.Errorf("tokenizer.json alone names no bos or eos, got %d", id)
		}
	}
	// An id between others that nobody has.
	gap := spec{added: []map[string]any{added(400, "<x>")}}.build(t)
	if b, ok := gap.TokenBytes(350); ok || gap.VocabSize() != 401 {
		t.Errorf("unused id: got %q, %v, VocabSize %d, want nothing and 401", b, ok, gap.VocabSize())
	}
}

func TestByteLevelOptions(t *testing.T) {
	word := obj{"type": "Split", "pattern": obj{"String": "|"}, "behavior": "Removed", "invert": false}
	ids := func(s string) []int32 {
		out := []int32{}
		for _, b := range []byte(s) {
			out = append(out, int32(b))
		}
		return out
	}
	tok := spec{byteLevel: obj{"add_prefix_space": true}, preTokenizers: []any{word}, added: []map[string]any{added(300, "<x>")}}.build(t)
	for _, c := range []struct {
		text string
		want []int32
	}{
		{"", []int32{}},
		{"a|b| c", ids(" a b c")},
		{"<x>a", append([]int32{300}, ids(" a")...)},
	} {
		if got := mustEncode(t, tok, c.text); !slices.Equal(got, c.want) {
			t.Errorf("add_prefix_space: Encode(%q) = %v, want %v", c.text, got, c.want)
		}
	}
	// With use_regex, "a" and " b" are pieces of their own and "a b" does not merge across.
	merges := [][2]string{{"a", "Ġ"}, {"Ġ", "b"}}
	for _, c := range []struct {
		regex any
		want  []int32
	}{{false, []int32{256, 'b'}}, {true, []int32{'a', 257}}, {nil, []int32{'a', 257}}} {
		tok := spec{merges: merges, byteLevel: obj{"use_regex": c.regex}}.build(t)
		if got := mustEncode(t, tok, "a b"); !slices.Equal(got, c.want) {
			t.Errorf("use_regex %v (nil: true): got %v, want %v", c.regex, got, c.want)
		}
	}
}

func TestUnencodable(t *testing.T) {
	vocab := obj{"a": 0, "b": 1}
	tok := spec{modelKeys: obj{"vocab": vocab}}.build(t)
	_, err := tok.Encode("ab\x00", false)
	if got := (*UnencodableError)(nil); !errors.As(err, &got) || got.Byte != 0 {
		t.Errorf("got error %v, want an *UnencodableError for byte 0", err)
	}
	if got := mustEncode(t, tok, "ab"); !slices.Equal(got, []int32{0, 1}) {
		t.Errorf("got %v, want [0 1]", got)
	}
	_, err = Parse(spec{modelKeys: obj{"vocab": vocab, "unk_token": "a"}}.json(t))
	wantUnsupported(t, err, "model.unk_token")
	_, err = Parse(spec{modelKeys: obj{"vocab": vocab, "byte_fallback": true}}.json(t))
	wantUnsupported(t, err, "model.byte_fallback")
	// With all bytes in the vocabulary nothing is unknown.
	if _, err := Parse(spec{modelKeys: obj{"unk_token": "a", "byte_fallback": true, "fuse_unk": true}}.json(t)); err != nil {
		t.Errorf("unk_token with a full vocabulary: %v", err)
	}
}

func TestConcurrentUse(t *testing.T) {
	tok, cases := mustLoad(t, "qwen35"), mustCases(t, "qwen35")
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range cases.Cases {
				c := cases.Cases[(i+g*25)%len(cases.Cases)]
				if got, err := tok.Encode(c.Text, false); err != nil || !slices.Equal(got, c.IDs) {
					t.Errorf("Encode(%q): got %v, %v, want %v", c.Text, got, err, c.IDs)
				}
				if got := tok.Decode(c.IDs, true); got != c.DecodedSkipSpecial {
					t.Errorf("Decode(%v): got %q, want %q", c.IDs, got, c.DecodedSkipSpecial)
				}
			}
		})
	}
	wg.Wait()
}

// The alphabet is that of GPT-2: its 256 characters, as one sees them in vocabularies.
func TestAlphabet(t *testing.T) {
	for b, want := range map[byte]rune{' ': 'Ġ', '\n': 'Ċ', 0: 'Ā', '!': '!', '~': '~', 0x7f: 'ġ', 0xa0: 'ł', 0xa1: '¡', 0xad: 'Ń', 0xff: 'ÿ'} {
		if got := byteToChar[b]; got != want {
			t.Errorf("byte %#x is %q, want %q", b, got, want)
		}
	}
	var all []byte
	var spelled strings.Builder
	for b := range 256 {
		all = append(all, byte(b))
		spelled.WriteRune(byteToChar[b])
	}
	if got, ok := appendSpelled(nil, spelled.String()); !ok || !bytes.Equal(got, all) {
		t.Errorf("the alphabet backwards gives %v, %v", got, ok)
	}
	if got, ok := appendSpelled([]byte("x"), "Ġ｜"); ok || string(got) != "xĠ｜" {
		t.Errorf("an entry outside the alphabet gives %q, %v, want it literally", got, ok)
	}
}
