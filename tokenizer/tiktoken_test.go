package tokenizer

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/moeflux/moeflux-actor/internal/testenv"
)

const kimiDir = "kimi"

func mustKimi(tb testing.TB) *Tokenizer {
	tb.Helper()
	tok, err := LoadDir(filepath.Join("testdata", kimiDir))
	if err != nil {
		tb.Fatal(err)
	}
	return tok
}

// The ids are those of tiktoken.
func TestTiktokenReference(t *testing.T) {
	var cases []struct {
		Text string
		IDs  []int32
	}
	readJSON(t, &cases, kimiDir, "cases.json")
	if len(cases) < 250 {
		t.Fatalf("%d cases", len(cases))
	}
	tok := mustKimi(t)
	for _, c := range cases {
		if got := mustEncode(t, tok, c.Text); !slices.Equal(got, c.IDs) {
			t.Errorf("%q\n got %v\nwant %v", c.Text, got, c.IDs)
		}
		checkDecode(t, tok, c.IDs, false, c.Text)
	}
}

// Special tokens are those of the config, and every id after the vocabulary has one.
func TestTiktokenSpecial(t *testing.T) {
	tok := mustKimi(t)
	const base = 496
	if tok.VocabSize() != base+256 {
		t.Errorf("%d ids, want %d", tok.VocabSize(), base+256)
	}
	for text, want := range map[string]int32{
		"[BOS]": base, "[EOS]": base + 1, "<|im_end|>": base + 2, "<|reserved_token_501|>": 501, "[PAD]": base + 255,
	} {
		if id, ok := tok.TokenID(text); !ok || id != want || !tok.IsSpecial(id) {
			t.Errorf("%s: %d, %v, special %v, want %d", text, id, ok, tok.IsSpecial(id), want)
		}
	}
	if id, ok := tok.BOS(); !ok || id != base {
		t.Errorf("begins with %d, %v", id, ok)
	}
	if id, ok := tok.EOS(); !ok || id != base+1 {
		t.Errorf("ends with %d, %v", id, ok)
	}
	if tok.IsSpecial(base + 11) {
		t.Error("the mark of tool calls is special")
	}
	if _, ok := tok.TokenID(fmt.Sprintf("<|reserved_token_%d|>", base+256)); ok {
		t.Error("a reserved token beyond the 256")
	}
}

// mergeRanks is the definition: of the neighbours whose joined bytes are a token, the two of lowest
// rank become one, the leftmost of equals, until there are none.
func mergeRanks(ranks map[string]int32, piece string) (ids []int32) {
	if id, ok := ranks[piece]; ok {
		return []int32{id}
	}
	parts := make([]string, len(piece))
	for i := range parts {
		parts[i] = piece[i : i+1]
	}
	for {
		best := -1
		for i := range len(parts) - 1 {
			if id, ok := ranks[parts[i]+parts[i+1]]; ok && (best < 0 || id < ranks[parts[best]+parts[best+1]]) {
				best = i
			}
		}
		if best < 0 {
			break
		}
		parts[best] += parts[best+1]
		parts = slices.Delete(parts, best+1, best+2)
	}
	for _, p := range parts {
		ids = append(ids, ranks[p])
	}
	return ids
}

// Vocabularies whose tokens merge in many ways give what the definition gives, in short and long
// pieces.
func TestTiktokenFollowsDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 4))
	letters := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = 'a' + byte(rng.IntN(3))
		}
		return string(b)
	}
	for range testenv.Rounds(20, 80, 2000) {
		tokens := []string{"a", "b", "c"}
		for range 60 {
			if tok := letters(2 + rng.IntN(5)); !slices.Contains(tokens, tok) {
				tokens = append(tokens, tok)
			}
		}
		rng.Shuffle(len(tokens), func(i, j int) { tokens[i], tokens[j] = tokens[j], tokens[i] })
		ranks := map[string]int32{}
		for id, tok := range tokens {
			ranks[tok] = int32(id)
		}
		tok, err := parseRanked(tiktokenName, rankLines(tokens...), &config{class: "TikTokenTokenizer"})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{1, 3, 7, shortPiece - 1, shortPiece + 1, 150} {
			piece := letters(n)
			if got, want := mustEncode(t, tok, piece), mergeRanks(ranks, piece); !slices.Equal(got, want) {
				t.Fatalf("%q\n got %v\nwant %v\nof %q", piece, got, want, tokens)
			}
		}
	}
}

func rankLines(tokens ...string) []byte {
	var b []byte
	for rank, tok := range tokens {
		b = fmt.Appendf(b, "%s %d\n", base64.StdEncoding.EncodeToString([]byte(tok)), rank)
	}
	return b
}

func TestRankErrors(t *testing.T) {
	for _, c := range []struct {
		name, file string
		line       int
		want       string
	}{
		{"empty", "\n \n", 1, "empty"},
		{"no space", "YQ== 0\nYg==\n", 2, "no space"},
		{"no base64", "YQ== 0\n!!!! 1\n", 2, "not base64"},
		{"base64 with bits left", "YR== 0\n", 1, "not base64"},
		{"no token", " 0 1\n\n 0\n", 1, "not base64"},
		{"no rank", "YQ== x\n", 1, `rank is "x"`},
		{"a third word", "YQ== 0 0\n", 1, `rank is "0 0"`},
		{"a negative rank", "YQ== -1\n", 1, "not 0 to 0"},
		{"a gap", "YQ== 0\n\nYg== 2\n", 3, "not 0 to 1"},
		{"a rank twice", "YQ== 0\nYg== 0\n", 2, "rank 0 is also in line 1"},
		{"a token twice", "YQ== 0\r\n\r\nYQ== 1\r\n", 3, "also in line 1"},
		{"a long token", string(rankLines("a", strings.Repeat("b", maxRankedBytes+1))), 2, "4097 bytes"},
	} {
		_, err := parseRanked(tiktokenName, []byte(c.file), &config{class: "TikTokenTokenizer"})
		rank := (*RankError)(nil)
		if !errors.As(err, &rank) || rank.Line != c.line || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want line %d and %q", c.name, err, c.line, c.want)
		}
	}
	tok, err := parseRanked(tiktokenName, []byte("Yg== 1\r\nYQ== 0"), &config{class: "TikTokenTokenizer"})
	if err != nil || !slices.Equal(mustEncode(t, tok, "ab"), []int32{0, 1}) {
		t.Errorf("lines in another order, with carriage returns: %v", err)
	}
}

// Without its config the file does not say enough. A tokenizer.json comes first.
func TestTiktokenDirectory(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, data []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := LoadDir(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty directory: %v", err)
	}
	write(tiktokenName, rankLines("a", "b", "ab"))
	if _, err := LoadDir(dir); err == nil || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "copy the checkpoint's") {
		t.Errorf("no config: %v", err)
	}
	write(configName, []byte(`{"tokenizer_class": "GPT2Tokenizer"}`))
	_, err := LoadDir(dir)
	wantUnsupported(t, err, "tokenizer_config.json.tokenizer_class")
	write(configName, []byte(`{"tokenizer_class": "TikTokenTokenizer", "eos_token": "[EOS]"}`))
	if _, err := LoadDir(dir); err == nil || !strings.Contains(err.Error(), "[EOS]") {
		t.Errorf("an end that is not there: %v", err)
	}
	write(configName, []byte(`{"tokenizer_class": "TikTokenTokenizer", "added_tokens_decoder": {"259": {"content": "<x>"}}}`))
	if _, err := LoadDir(dir); err == nil || !strings.Contains(err.Error(), "259") {
		t.Errorf("an id beyond the reserved ones: %v", err)
	}
	write(configName, []byte(`{"tokenizer_class": "TikTokenTokenizer", "added_tokens_decoder": {"258": {"content": "<x>"}}}`))
	for name, load := range map[string]func() (*Tokenizer, error){
		"the directory": func() (*Tokenizer, error) { return LoadDir(dir) },
		"the file":      func() (*Tokenizer, error) { return Load(filepath.Join(dir, tiktokenName)) },
	} {
		tok, err := load()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := mustEncode(t, tok, "ab<x>"); !slices.Equal(got, []int32{2, 258}) {
			t.Errorf("%s: got %v", name, got)
		}
	}
	write(jsonName, spec{}.json(t))
	if tok, err := LoadDir(dir); err != nil || tok.VocabSize() != 259 {
		t.Errorf("beside a tokenizer.json: %v", err)
	}
}

// Any file is parsed or refused with a line; what is parsed takes a text apart and puts it
// together.
func FuzzTiktoken(f *testing.F) {
	f.Add(rankLines("a", "b", "ab", "é", " "))
	f.Add([]byte("YQ== 0\r\n\r\nYg== 1"))
	f.Add([]byte("Yg== 1\nYQ== 0\n/w== 3\nW0JPU10= 2\n"))
	f.Add([]byte("YQ== 9"))
	f.Fuzz(func(t *testing.T, data []byte) {
		cfg := &config{class: "TikTokenTokenizer", bos: "[BOS]", added: []*addedToken{{id: 0x10000, content: "[BOS]", special: true}}}
		if tokens, err := kimiRanks.parse(data); err == nil {
			cfg.added[0].id = int32(len(tokens))
		}
		tok, err := parseRanked(tiktokenName, data, cfg)
		if err != nil {
			if rank := (*RankError)(nil); !errors.As(err, &rank) || rank.Line < 1 || tok != nil {
				t.Fatalf("a Tokenizer %v and error %v", tok != nil, err)
			}
			return
		}
		const text = "[BOS]ab é abba' 's\n"
		ids, err := tok.Encode(text, true)
		if unknown := (*UnencodableError)(nil); err != nil {
			if !errors.As(err, &unknown) {
				t.Fatal(err)
			}
			return
		}
		if got := tok.Decode(ids, false); got != text || !utf8.ValidString(got) {
			t.Errorf("%q comes back as %q", text, got)
		}
	})
}
