package tokenizer

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// benchTexts are Go source, the reference texts of many scripts, and words that never repeat, for
// which the piece cache is of no use.
func benchTexts(b *testing.B) map[string]string {
	b.Helper()
	var ref struct {
		EvalIDs []int32 `json:"eval_ids"`
	}
	readJSON(b, &ref, "demo", "reference.json")
	var mixed, words strings.Builder
	for _, c := range mustCases(b, "qwen").Cases {
		mixed.WriteString(c.Text)
		mixed.WriteByte('\n')
	}
	rng := rand.New(rand.NewPCG(15, 16))
	for words.Len() < 1<<20 {
		for range 2 + rng.IntN(10) {
			words.WriteByte("eeettaaoinshrdlcumwfgypbvk"[rng.IntN(26)])
		}
		words.WriteByte(' ')
	}
	return map[string]string{"go": mustLoad(b, "demo").Decode(ref.EvalIDs, true), "mixed": mixed.String(), "words": words.String()}
}

func BenchmarkEncode(b *testing.B) {
	texts := benchTexts(b)
	for _, kind := range append([]string{"demo"}, kinds...) {
		tok := mustLoad(b, kind)
		for _, name := range []string{"go", "mixed", "words"} {
			b.Run(fmt.Sprintf("kind=%s/text=%s", kind, name), func(b *testing.B) {
				text := texts[name]
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := tok.Encode(text, false); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkEncodeParallel is one Tokenizer used by all processors.
func BenchmarkEncodeParallel(b *testing.B) {
	tok, text := mustLoad(b, "qwen35"), benchTexts(b)["go"]
	b.SetBytes(int64(len(text)))
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := tok.Encode(text, false); err != nil {
				b.Error(err)
			}
		}
	})
}

// BenchmarkSplit is the splitting alone: by hand against the expression.
func BenchmarkSplit(b *testing.B) {
	text := benchTexts(b)["mixed"]
	for name, pattern := range map[string]string{"qwen": patternQwen2, "qwen35": patternQwen35, "deepseek": patternDeepSeekWords} {
		re, err := compilePattern("pattern", pattern)
		if err != nil {
			b.Fatal(err)
		}
		for by, step := range map[string]splitStep{"hand": {cut: knownPatterns[pattern]}, "regexp2": {pattern: re}} {
			b.Run(fmt.Sprintf("kind=%s/by=%s", name, by), func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					stepPieces(b, &step, text)
				}
			})
		}
	}
}

func BenchmarkLongPiece(b *testing.B) {
	tok, text := mustLoad(b, "qwen"), strings.Repeat("thequickbrownfox", 1<<16)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := tok.Encode(text, false); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, kind := range append([]string{"demo"}, kinds...) {
		tok := mustLoad(b, kind)
		text := benchTexts(b)["mixed"]
		ids, err := tok.Encode(text, false)
		if err != nil {
			b.Fatal(err)
		}
		b.Run("kind="+kind, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				tok.Decode(ids, true)
			}
		})
		b.Run("stream/kind="+kind, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			s := tok.NewStream(true)
			for b.Loop() {
				for _, id := range ids {
					s.Push(id)
				}
				s.Flush()
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	data := spec{}.json(b)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(data); err != nil {
			b.Fatal(err)
		}
	}
}
