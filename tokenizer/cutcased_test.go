package tokenizer

import (
	"slices"
	"strings"
	"testing"

	"github.com/dlclark/regexp2"
)

// The cases of all characters are those that the expression of Kimi K2 sees.
func TestCasesOfEveryCharacter(t *testing.T) {
	var all strings.Builder
	for r := rune(0); r < 0x110000; r++ {
		if r < 0xd800 || r >= 0xe000 {
			all.WriteRune(r)
		}
	}
	text := all.String()
	for pattern, set := range map[string]letterCase{
		`[\p{Han}]+`: han, `[\p{Lu}\p{Lt}]+`: capital, `[\p{Ll}]+`: small, `[\p{Lm}\p{Lo}\p{M}-[\p{Han}]]+`: caseless,
	} {
		slow := splitStep{pattern: regexp2.MustCompile(pattern, regexp2.None)}
		fast := splitStep{cut: func(s string) int {
			at := casing(caseApart)
			if end, _ := at.end(s, 0, set); end > 0 {
				return end
			}
			end := 0
			for end < len(s) {
				c, n := at(s, end)
				if c == set {
					break
				}
				end += n
			}
			return end
		}}
		got, want := stepPieces(t, &fast, text), stepPieces(t, &slow, text)
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %d runs of characters, want %d", pattern, len(got), len(want))
		}
		if len(want) < 2 {
			t.Errorf("%s: %d runs in all of Unicode, the comparison is empty", pattern, len(want))
		}
	}
}

// A tokenizer.json may spell the expression, too; it splits by the same cutter.
func TestKimiPatternInJSON(t *testing.T) {
	step := obj{"type": "Split", "pattern": obj{"Regex": patternKimi}, "behavior": "Isolated"}
	tok := spec{preTokenizers: []any{step}}.build(t)
	if tok.pre.splits[0].cut == nil {
		t.Error("no cutter")
	}
	step["behavior"] = "Removed"
	_, err := Parse(spec{preTokenizers: []any{step}}.json(t))
	wantUnsupported(t, err, "pre_tokenizer.pretokenizers[0].pattern.Regex")
}
