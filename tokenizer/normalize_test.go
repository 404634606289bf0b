package tokenizer

import (
	"math/rand/v2"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"
)

// The definition and x/text agree on all texts without long runs of marks.
func TestNormalFormExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	marks := []rune("\u0301\u0323\u0308\u0345\u05b0\u3099\u0bbe\u1161\u11a8\u0338\u034f")
	bases := []rune("aeo\u00e9\u1e09\u0e33\u09c7\u0bc6\uac00\u1100\uac01\u304b\u212b\u0344\u2126\ufb01\u1d15e\u0958<=xyz")
	for form := range normalForms {
		f := normalForms[form]
		for range 5000 {
			var b strings.Builder
			for range 1 + rng.IntN(4) {
				switch rng.IntN(5) {
				case 0:
					b.WriteRune(rune(rng.IntN(0xd800)))
				default:
					b.WriteRune(bases[rng.IntN(len(bases))])
				}
				for range rng.IntN(5) {
					b.WriteRune(marks[rng.IntN(len(marks))])
				}
			}
			s := b.String()
			if got, want := normalFormExact(f, s), f.String(s); got != want {
				t.Fatalf("%s of %+q\n got %+q\nwant %+q", form, s, got, want)
			}
		}
	}
}

func TestNormalizeLongRunsOfMarks(t *testing.T) {
	// 40 dots below (class 220) and one acute (230) after an e: sorted already, the first dot
	// composes.
	marks := strings.Repeat("\u0323", 40)
	for _, c := range []struct{ name, in, want string }{
		{"sorted", "e" + marks + "\u0301", "\u1eb9" + marks[2:] + "\u0301"},
		{"unsorted", "e\u0301" + marks, "\u1eb9" + marks[2:] + "\u0301"},
		{"joiner kept", "e" + marks + "\u034fe\u0301", "\u1eb9" + marks[2:] + "\u034f\u00e9"},
		{"no base", marks, marks},
	} {
		if got := normalForm(norm.NFC, c.in); got != c.want {
			t.Errorf("%s: NFC of %+q\n got %+q\nwant %+q", c.name, c.in, got, c.want)
		}
	}
}
