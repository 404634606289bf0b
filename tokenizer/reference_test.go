package tokenizer

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// kinds are the tokenizers with reference cases.
var kinds = []string{"qwen", "qwen35", "deepseek"}

type referenceCases struct {
	Cases []struct {
		Category           string
		Text               string
		IDs                []int32
		Decoded            string
		DecodedSkipSpecial string `json:"decoded_skip_special"`
		Pieces             []string
	}
	DecodeOnly []struct {
		IDs                []int32
		Decoded            string
		DecodedSkipSpecial string `json:"decoded_skip_special"`
	} `json:"decode_only"`
}

func mustLoad(tb testing.TB, kind string) *Tokenizer {
	tb.Helper()
	t, err := LoadDir(filepath.Join("testdata", kind))
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

func readJSON(tb testing.TB, dst any, path ...string) {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join(append([]string{"testdata"}, path...)...))
	if err != nil {
		tb.Fatal(err)
	}
	if err := json.Unmarshal(data, dst); err != nil {
		tb.Fatal(err)
	}
}

func mustCases(tb testing.TB, kind string) referenceCases {
	tb.Helper()
	var c referenceCases
	readJSON(tb, &c, kind, "cases.json")
	if len(c.Cases) < 200 || len(c.DecodeOnly) < 40 {
		tb.Fatalf("%s: %d cases and %d decode-only cases, want 200 and 40", kind, len(c.Cases), len(c.DecodeOnly))
	}
	return c
}

func mustEncode(tb testing.TB, t *Tokenizer, text string) []int32 {
	tb.Helper()
	ids, err := t.Encode(text, false)
	if err != nil {
		tb.Fatalf("Encode(%q): %v", text, err)
	}
	return ids
}

func TestReference(t *testing.T) {
	for _, kind := range kinds {
		tok, cases := mustLoad(t, kind), mustCases(t, kind)
		// The rare category has a subtest of its own, so that a failure there can be told from one
		// in plain text.
		for _, rare := range []bool{false, true} {
			name := kind + "/common"
			if rare {
				name = kind + "/rare"
			}
			t.Run(name, func(t *testing.T) {
				ran := 0
				for i, c := range cases.Cases {
					if rare != (c.Category == "rare") {
						continue
					}
					ran++
					// Twice: the second time pieces come from the cache.
					for range 2 {
						if got := mustEncode(t, tok, c.Text); !slices.Equal(got, c.IDs) {
							t.Errorf("case %d (%s): Encode(%q)\n got %v\nwant %v", i, c.Category, c.Text, got, c.IDs)
						}
					}
					if c.Pieces != nil {
						if got := spelledPieces(t, tok, c.Text); !slices.Equal(got, c.Pieces) {
							t.Errorf("case %d (%s): pieces of %q\n got %q\nwant %q", i, c.Category, c.Text, got, c.Pieces)
						}
					}
					checkDecode(t, tok, c.IDs, false, c.Decoded)
					checkDecode(t, tok, c.IDs, true, c.DecodedSkipSpecial)
				}
				if ran == 0 {
					t.Error("no case ran")
				}
			})
		}
		t.Run(kind+"/decode", func(t *testing.T) {
			for _, c := range cases.DecodeOnly {
				checkDecode(t, tok, c.IDs, false, c.Decoded)
				checkDecode(t, tok, c.IDs, true, c.DecodedSkipSpecial)
			}
		})
	}
}

// checkDecode compares Decode and a Stream with the text wanted.
func checkDecode(t *testing.T, tok *Tokenizer, ids []int32, skip bool, want string) {
	t.Helper()
	if got := tok.Decode(ids, skip); got != want {
		t.Errorf("Decode(%v, %v)\n got %q\nwant %q", ids, skip, got, want)
	}
	var got strings.Builder
	s := tok.NewStream(skip)
	for _, id := range ids {
		got.WriteString(s.Push(id))
	}
	got.WriteString(s.Flush())
	if got.String() != want {
		t.Errorf("stream of %v, skipSpecial %v\n got %q\nwant %q", ids, skip, got.String(), want)
	}
}

// spelledPieces splits text as Encode does and spells the pieces in the byte alphabet.
func spelledPieces(tb testing.TB, t *Tokenizer, text string) []string {
	tb.Helper()
	pieces := []string{t.norm.apply(text)}
	if text == "" {
		return []string{}
	}
	for i := range t.pre.splits {
		var next []string
		for _, piece := range pieces {
			next = append(next, stepPieces(tb, &t.pre.splits[i], piece)...)
		}
		pieces = next
	}
	for i, piece := range pieces {
		var spelled strings.Builder
		for _, b := range []byte(piece) {
			spelled.WriteRune(byteToChar[b])
		}
		pieces[i] = spelled.String()
	}
	return pieces
}

// stepPieces returns the pieces of one split.
func stepPieces(tb testing.TB, step *splitStep, s string) []string {
	tb.Helper()
	if step.cut == nil {
		pieces, err := step.split(s)
		if err != nil {
			tb.Fatal(err)
		}
		return pieces
	}
	var pieces []string
	for len(s) > 0 {
		n := step.cut(s)
		pieces, s = append(pieces, s[:n]), s[n:]
	}
	return pieces
}

func TestDemo(t *testing.T) {
	tok := mustLoad(t, "demo")
	var ref struct {
		Prompts []struct {
			Prompt    string
			PromptIDs []int32 `json:"prompt_ids"`
			NewIDs    []int32 `json:"new_ids"`
			Text      string
		}
		EvalIDs []int32 `json:"eval_ids"`
	}
	readJSON(t, &ref, "demo", "reference.json")
	if len(ref.Prompts) == 0 {
		t.Fatal("no prompts")
	}
	for _, p := range ref.Prompts {
		got, err := tok.Encode(p.Prompt, true)
		if err != nil || !slices.Equal(got, p.PromptIDs) {
			t.Errorf("Encode(%q, true)\n got %v, %v\nwant %v", p.Prompt, got, err, p.PromptIDs)
		}
		if got := mustEncode(t, tok, p.Prompt); !slices.Equal(got, p.PromptIDs[1:]) {
			t.Errorf("Encode(%q, false)\n got %v\nwant %v", p.Prompt, got, p.PromptIDs[1:])
		}
		checkDecode(t, tok, p.NewIDs, true, p.Text)
	}
	// Each file of the corpus was encoded on its own; the last one is cut somewhere.
	files := splitAt(ref.EvalIDs, 4093)
	for i, want := range files[:len(files)-1] {
		text := tok.Decode(want, false)
		if got := mustEncode(t, tok, text); !slices.Equal(got, want) {
			t.Errorf("file %d, %q...: got %d ids, want %d", i, text[:min(40, len(text))], len(got), len(want))
		}
	}
	if bos, ok := tok.BOS(); bos != 4093 || !ok {
		t.Errorf("BOS() = %d, %v, want 4093, true", bos, ok)
	}
	if eos, ok := tok.EOS(); eos != 4093 || !ok {
		t.Errorf("EOS() = %d, %v, want 4093, true", eos, ok)
	}
	if got := tok.VocabSize(); got != 4096 {
		t.Errorf("VocabSize() = %d, want 4096", got)
	}
}

// splitAt returns the runs of ids between separators, without empty ones.
func splitAt(ids []int32, separator int32) (runs [][]int32) {
	for len(ids) > 0 {
		n := slices.Index(ids, separator)
		if n < 0 {
			n = len(ids)
		}
		if n > 0 {
			runs = append(runs, ids[:n])
		}
		ids = ids[min(n+1, len(ids)):]
	}
	return runs
}

func TestEndToEnd(t *testing.T) {
	tok := mustLoad(t, "e2e")
	var ref struct {
		Text             string
		IDs              []int32
		DecodeIDs        []int32 `json:"decode_ids"`
		DecodeText       string  `json:"decode_text"`
		DecodeTextSpecal string  `json:"decode_text_with_special"`
	}
	readJSON(t, &ref, "e2e", "e2e.json")
	if got := mustEncode(t, tok, ref.Text); !slices.Equal(got, ref.IDs) || len(got) == 0 {
		t.Errorf("Encode(%q)\n got %v\nwant %v", ref.Text, got, ref.IDs)
	}
	// add_bos_token is false.
	if got, err := tok.Encode(ref.Text, true); err != nil || !slices.Equal(got, ref.IDs) {
		t.Errorf("Encode(%q, true)\n got %v, %v\nwant %v", ref.Text, got, err, ref.IDs)
	}
	checkDecode(t, tok, ref.DecodeIDs, true, ref.DecodeText)
	checkDecode(t, tok, ref.DecodeIDs, false, ref.DecodeTextSpecal)
	checkDecode(t, tok, ref.IDs, false, ref.Text)
}
