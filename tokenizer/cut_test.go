package tokenizer

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dlclark/regexp2"

	"github.com/moeflux/moeflux-actor/internal/testenv"
)

// interesting are characters of each class that the expressions tell apart, and the neighbours of
// their ranges.
var interesting = []rune("aZsStTrRvVeEmMlLdD'''     \t\v\r\n\n\u0085\u00a0\u2003\u2028\u3000" +
	"019٣Ⅷ²𝟘!.,-_(<//`~\"$+^|=€©∑😀“…一龥龦㐀ぁゟヿ゠\u30ff\u3100한éßſKАبका\u0301\u094d\u20dd" +
	"\x00\x1b\x7f\u200b\u200d\ufeff\ue000\u0378\U000e0001\U0001f1e6\u2019ʹ" +
	// Letters of title case and of no case, and Han that is a number, a symbol, a mark, a letter.
	"ǅªʰAªB〇〡⺀㊀\U00016ff0々〻\U00020000")

func randomText(rng *rand.Rand, maxRunes int) string {
	var b strings.Builder
	for range rng.IntN(maxRunes) + 1 {
		switch rng.IntN(12) {
		case 0:
			b.WriteRune(rune(rng.IntN(0xd800)))
		case 1:
			b.WriteRune(rune(0xe000 + rng.IntN(0x110000-0xe000)))
		default:
			r := interesting[rng.IntN(len(interesting))]
			for range 1 + rng.IntN(4)/3*rng.IntN(5) {
				b.WriteRune(r)
			}
		}
	}
	return b.String()
}

// The cutters are the expressions: random texts fall into the same pieces.
func TestCuttersFollowPatterns(t *testing.T) {
	rounds := testenv.Rounds(2000, 8000, 200_000)
	for pattern, cut := range knownPatterns {
		t.Run(excerpt(pattern), func(t *testing.T) {
			// The reference takes a long s for an s here, regexp2 does not.
			written := strings.ReplaceAll(pattern, "(?i:'s", "(?i:'[sſ]")
			// Both say: without Han.
			written = strings.ReplaceAll(written, `&&[^\p{Han}]]`, `-[\p{Han}]]`)
			slow := splitStep{pattern: regexp2.MustCompile(written, regexp2.None)}
			fast := splitStep{cut: cut}
			rng := rand.New(rand.NewPCG(1, 2))
			for range rounds {
				s := randomText(rng, 24)
				got, want := stepPieces(t, &fast, s), stepPieces(t, &slow, s)
				if !slices.Equal(got, want) {
					t.Fatalf("pieces of %q\n got %q\nwant %q", s, got, want)
				}
			}
		})
	}
}

// The classes of all characters are those that the expressions see.
func TestClassesOfEveryCharacter(t *testing.T) {
	var all strings.Builder
	for r := rune(0); r < 0x110000; r++ {
		if r < 0xd800 || r >= 0xe000 {
			all.WriteRune(r)
		}
	}
	text := all.String()
	for pattern, set := range map[string]class{
		`[\p{L}]+`: letter, `[\p{M}]+`: mark, `[\p{N}]+`: number, `[\p{P}]+`: punct, `[\p{S}]+`: symbol, `\s+`: space,
		`[\r\n]+`: newline, `[^\s\p{L}\p{M}\p{N}\p{P}\p{S}]+`: 0,
	} {
		slow := splitStep{pattern: regexp2.MustCompile(pattern, regexp2.None)}
		fast := splitStep{cut: func(s string) int {
			if set == 0 {
				if n := runEnd(s, 0, ^class(0)); n > 0 {
					return n
				}
				return otherEnd(s, 0, ^class(0))
			}
			return max(runEnd(s, 0, set), otherEnd(s, 0, set))
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

func TestContraction(t *testing.T) {
	for _, c := range []struct {
		text         string
		exact, loose int
	}{
		{"'s", 2, 2}, {"'S", 0, 2}, {"'ſ", 0, 3}, {"'re", 3, 3}, {"'Re", 0, 3}, {"'r", 0, 0}, {"'ll", 3, 3}, {"'l", 0, 0},
		{"'lx", 0, 0}, {"'", 0, 0}, {"'vE", 0, 3}, {"'d", 2, 2}, {"'m", 2, 2}, {"'x", 0, 0}, {"'Ŀ", 0, 0},
	} {
		if exact, loose := contraction(c.text, false), contraction(c.text, true); exact != c.exact || loose != c.loose {
			t.Errorf("contraction(%q) = %d, ignoring case %d, want %d, %d", c.text, exact, loose, c.exact, c.loose)
		}
	}
}
