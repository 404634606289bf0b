package tokenizer

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// added returns an entry of added_tokens that is looked for in the raw text.
func added(id int, content string, flags ...string) obj {
	entry := obj{"id": id, "content": content, "normalized": false}
	for _, f := range flags {
		entry[f] = true
	}
	return entry
}

// Texts as ids: letters stand for themselves, 300 and up are added tokens.
func TestAddedTokens(t *testing.T) {
	bytesOf := func(s string) []int32 {
		ids := []int32{}
		for _, b := range []byte(s) {
			ids = append(ids, int32(b))
		}
		return ids
	}
	for _, c := range []struct {
		name   string
		tokens []map[string]any
		text   string
		want   []any // string for bytes, int for an id
	}{
		{"longest", []obj{added(300, "<a>"), added(301, "<a><b>"), added(60, "<")}, "<a><b><a><", []any{301, 300, 60}},
		{"leftmost", []obj{added(300, "bcd"), added(301, "ab")}, "abcd", []any{301, "cd"}},
		{"shorter after a failed longer", []obj{added(300, "ab"), added(301, "abcd")}, "abcab", []any{300, "c", 300}},
		{"several first bytes", []obj{added(300, "x!"), added(301, "日")}, "a日x!x", []any{"a", 301, 300, "x"}},
		{"lstrip", []obj{added(300, "<m>", "lstrip")}, "a \n\u3000<m> b", []any{"a", 300, " b"}},
		{"lstrip after a token and text", []obj{added(300, "<m>", "lstrip")}, "<m>abc <m>", []any{300, "abc", 300}},
		{"lstrip at the beginning", []obj{added(300, "<m>", "lstrip")}, "  <m>  <m>", []any{300, 300}},
		{"rstrip", []obj{added(300, "<m>", "rstrip")}, "a <m> \n\tb <m>  ", []any{"a ", 300, "b ", 300}},
		{"both", []obj{added(300, "<m>", "rstrip", "lstrip")}, " <m> <m> ", []any{300, 300}},
		{"single word", []obj{added(300, "ab", "single_word")}, "ab cab abc é ab, _ab ab", []any{300, " cab abc é ", 300, ", _ab ", 300}},
		{"single word and marks", []obj{added(300, "ab", "single_word")}, "ab\u0301 ab\u200d ab\u20ac", []any{"ab\u0301 ab\u200d ", 300, "€"}},
		{"white space token in stripped space", []obj{added(300, "<m>", "rstrip"), added(301, " ")}, "<m> a", []any{300, 301, "a"}},
		{"special and plain alike", []obj{added(300, "<s>", "special"), added(301, "<t>")}, "<s><t>", []any{300, 301}},
		{"same entry twice", []obj{added(300, "<s>"), added(300, "<s>")}, "<s>", []any{300}},
	} {
		want := []int32{}
		for _, w := range c.want {
			switch w := w.(type) {
			case string:
				want = append(want, bytesOf(w)...)
			case int:
				want = append(want, int32(w))
			}
		}
		if got := mustEncode(t, spec{added: c.tokens}.build(t), c.text); !slices.Equal(got, want) {
			t.Errorf("%s: Encode(%q)\n got %v\nwant %v", c.name, c.text, got, want)
		}
	}
}

// A normalized token is found in the normalised text, whatever its own form; others only as they
// are.
func TestAddedTokensAndNormalizer(t *testing.T) {
	tok := spec{
		normalizer: obj{"type": "Sequence", "normalizers": []obj{{"type": "NFC"}}},
		added: []map[string]any{
			{"id": 300, "content": "e\u0301!", "normalized": true},
			{"id": 301, "content": "o\u0301!", "normalized": false},
			{"id": 302, "content": "\u1112\u1161", "normalized": true},
			{"id": 303, "content": "\ud558", "normalized": true, "special": true},
			// Without the key, a token is normalized unless it is special.
			{"id": 304, "content": "i\u0301!"},
			{"id": 305, "content": "a\u0301!", "special": true},
		},
	}.build(t)
	for _, c := range []struct {
		text string
		want []int32
	}{
		{"e\u0301!", []int32{300}},
		{"\u00e9!", []int32{300}},
		{"o\u0301!", []int32{301}},
		{"\u00f3!", []int32{0xc3, 0xb3, '!'}},
		{"\u1112\u1161\ud558", []int32{303, 303}}, // of two that become one text, the special one
		{"\u00ed!i\u0301!", []int32{304, 304}},
		{"\u00e1!a\u0301!", []int32{0xc3, 0xa1, '!', 305}},
		{"u\u0301", []int32{0xc3, 0xba}},
		// The raw token divides the text before it is normalised.
		{"e" + "o\u0301!" + "\u0301", []int32{'e', 301, 0xcc, 0x81}},
	} {
		if got := mustEncode(t, tok, c.text); !slices.Equal(got, c.want) {
			t.Errorf("Encode(%+q)\n got %v\nwant %v", c.text, got, c.want)
		}
	}
	if got := tok.Decode([]int32{300, 301}, true); got != "e\u0301!o\u0301!" {
		t.Errorf("added tokens decode to %+q, want them literally", got)
	}
}

// longestAt agrees with trying every pattern.
func TestLongestAt(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	word := func(n int) string {
		b := make([]byte, 1+rng.IntN(n))
		for i := range b {
			b[i] = 'a' + byte(rng.IntN(3))
		}
		return string(b)
	}
	for range 300 {
		var patterns []addedPattern
		for range rng.IntN(30) {
			patterns = append(patterns, addedPattern{word(6), &addedToken{}})
		}
		m := newAddedMatcher(patterns)
		for range 30 {
			s := word(10)
			var want *addedToken
			longest := 0
			for _, p := range patterns {
				if strings.HasPrefix(s, p.text) && len(p.text) > longest {
					want, longest = p.token, len(p.text)
				}
			}
			got := m.longestAt(s)
			if (got == nil) != (want == nil) || got != nil && got.token != want {
				t.Fatalf("longestAt(%q) among %v: got %v, want one of length %d", s, patterns, got, longest)
			}
		}
	}
}

// White space that every token takes along is scanned once, not once a token.
func TestStrippingTokensAreLinear(t *testing.T) {
	tok := spec{added: []map[string]any{added(300, " ", "rstrip", "lstrip")}}.build(t)
	const n = 1 << 20
	if got := len(mustEncode(t, tok, strings.Repeat(" ", n))); got != n {
		t.Errorf("%d spaces became %d tokens, want as many", n, got)
	}
}
