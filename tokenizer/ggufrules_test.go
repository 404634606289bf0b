package tokenizer

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// byteGGUF is a tokenizer of the 256 bytes that splits by a rule.
func byteGGUF(pre string) *GGUF {
	v := &GGUF{Model: "gpt2", Pre: pre, BOS: -1, EOS: -1}
	for b := range 256 {
		v.Tokens, v.Types = append(v.Tokens, string(byteToChar[b])), append(v.Types, ggufNormal)
	}
	return v
}

// Each rule cuts texts as another implementation of the published expressions does, and no rule is
// left out.
func TestGGUFRules(t *testing.T) {
	var cases []struct {
		Rules  []string
		Text   string
		Pieces []string
	}
	readJSON(t, &cases, "rules", "cases.json")
	tokenizers, seen := map[string]*Tokenizer{}, map[string]int{}
	for rule := range ggufRules {
		tok, err := FromGGUF(byteGGUF(rule))
		if err != nil {
			t.Fatal(err)
		}
		tokenizers[rule] = tok
	}
	for _, c := range cases {
		for i, piece := range c.Pieces {
			c.Pieces[i] = spell(piece)
		}
		for _, rule := range c.Rules {
			tok := tokenizers[rule]
			if tok == nil {
				t.Fatalf("no rule %q", rule)
			}
			seen[rule]++
			if got := spelledPieces(t, tok, c.Text); !slices.Equal(got, c.Pieces) {
				t.Errorf("%s: pieces of %q\n got %q\nwant %q", rule, c.Text, got, c.Pieces)
			}
		}
	}
	for rule := range tokenizers {
		if seen[rule] < 90 {
			t.Errorf("%s: %d texts", rule, seen[rule])
		}
	}
}

// spell writes a text in the byte alphabet.
func spell(text string) string {
	var b strings.Builder
	for i := range len(text) {
		b.WriteRune(byteToChar[text[i]])
	}
	return b.String()
}

// Files of Kimi K2 hold merges that their converter works out from the ranks: those of two tokens
// that the tokens of lower rank leave. With them the ids are those of tiktoken, but for tokens that
// no merge makes and whose parts came later, which no training leaves: abab, bab and aba here.
func TestGGUFOfRanks(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("testdata", kimiDir, tiktokenName))
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := kimiRanks.parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	v := rankedGGUF("kimi-k2", tokens)
	for id := int32(len(tokens)); len(v.Tokens) < len(tokens)+reservedTokens; id++ {
		text := string(mustBytes(t, mustKimi(t), id))
		if i := slices.Index(v.Tokens, text); i >= 0 {
			v.Types[i] = ggufUnused // the special token takes every such text
		}
		v.Tokens, v.Types = append(v.Tokens, text), append(v.Types, ggufControl)
	}
	tok, err := FromGGUF(v)
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Text string
		IDs  []int32
	}
	readJSON(t, &cases, kimiDir, "cases.json")
	compared := 0
	for _, c := range cases {
		if strings.Contains(c.Text, "aba") || strings.Contains(c.Text, "bab") {
			continue
		}
		compared++
		if got := mustEncode(t, tok, c.Text); !slices.Equal(got, c.IDs) {
			t.Errorf("%q\n got %v\nwant %v", c.Text, got, c.IDs)
		}
	}
	if compared < 200 {
		t.Errorf("%d texts", compared)
	}
}

// rankedGGUF has tokens by rank, and the merges that a converter writes for them.
func rankedGGUF(pre string, tokens []string) *GGUF {
	v := &GGUF{Model: "gpt2", Pre: pre, BOS: -1, EOS: -1}
	lower := map[string]int32{} // tokens of lower rank
	for id, token := range tokens {
		v.Tokens, v.Types = append(v.Tokens, spell(token)), append(v.Types, ggufNormal)
		if parts := mergeRanks(lower, token); len(token) > 1 && len(parts) == 2 {
			v.Merges = append(v.Merges, spell(tokens[parts[0]])+" "+spell(tokens[parts[1]]))
		}
		lower[token] = int32(id)
	}
	return v
}

func mustBytes(tb testing.TB, t *Tokenizer, id int32) []byte {
	tb.Helper()
	b, ok := t.TokenBytes(id)
	if !ok {
		tb.Fatalf("no token %d", id)
	}
	return b
}

// The rules of tokenizers that look a piece up before they merge do so from GGUF files, too.
func TestGGUFWholePieces(t *testing.T) {
	for rule := range ggufRules {
		v := byteGGUF(rule)
		v.Tokens, v.Types = append(v.Tokens, "ab"), append(v.Types, ggufNormal)
		want := []int32{'a', 'b'}
		if slices.Contains([]string{"hunyuan", "gpt-4o", "kimi-k2"}, rule) {
			want = []int32{256}
		}
		tok, err := FromGGUF(v)
		if err != nil {
			t.Fatal(err)
		}
		file, _, err := v.JSON()
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(file)
		if err != nil {
			t.Fatal(err)
		}
		if got, written := mustEncode(t, tok, "ab"), mustEncode(t, again, "ab"); !slices.Equal(got, want) || !slices.Equal(written, want) {
			t.Errorf("%s: got %v, as JSON %v, want %v", rule, got, written, want)
		}
	}
}
