package tokenizer

import (
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// normalizer is a sequence of Unicode normal forms, usually none or only NFC.
type normalizer []norm.Form

func (n normalizer) apply(s string) string {
	for _, form := range n {
		s = normalForm(form, s)
	}
	return s
}

// normalForm is form.String(s) without the limit that x/text puts on runs of combining marks: past
// 30 of them in a row it puts U+034F in between, which the definition of the normal forms does not
// know.
func normalForm(form norm.Form, s string) string {
	if isASCII(s) || form.IsNormalString(s) {
		return s
	}
	out := form.String(s)
	if strings.Count(out, norm.GraphemeJoiner) == strings.Count(s, norm.GraphemeJoiner) {
		return out
	}
	return normalFormExact(form, s)
}

// normalFormExact follows the definition: decompose each character, sort each run of marks by
// combining class, compose. It is for texts with long runs of marks only.
func normalFormExact(form norm.Form, s string) string {
	decomposed := norm.NFD
	if form == norm.NFKC || form == norm.NFKD {
		decomposed = norm.NFKD
	}
	runes := make([]classedRune, 0, len(s))
	for i, r := range s {
		if r < utf8.RuneSelf {
			runes = append(runes, classedRune{r: r})
			continue
		}
		for _, d := range decomposed.String(s[i : i+utf8.RuneLen(r)]) {
			runes = append(runes, classedRune{r: d, class: norm.NFD.PropertiesString(string(d)).CCC()})
		}
	}
	sortMarks(runes)
	if form == norm.NFC || form == norm.NFKC {
		runes = compose(runes)
	}
	var b strings.Builder
	for _, c := range runes {
		b.WriteRune(c.r)
	}
	return b.String()
}

// classedRune is a character with its canonical combining class, 0 for a starter.
type classedRune struct {
	r     rune
	class uint8
}

// sortMarks sorts each run of non-starters by class and keeps the order of equals.
func sortMarks(runes []classedRune) {
	for i := 0; i < len(runes); {
		end := i
		for end < len(runes) && runes[end].class != 0 {
			end++
		}
		slices.SortStableFunc(runes[i:end], func(a, b classedRune) int { return int(a.class) - int(b.class) })
		i = end + 1
	}
}

// compose joins, in place, every character with the last starter before it where a composed
// character exists and nothing in between blocks it: something between blocks unless its class is
// lower and not 0.
func compose(runes []classedRune) []classedRune {
	starter, last := -1, uint8(0)
	out := runes[:0]
	for _, c := range runes {
		adjacent := starter == len(out)-1
		if starter >= 0 && (adjacent || last != 0 && last < c.class) {
			if r, ok := composed(out[starter].r, c.r); ok {
				out[starter].r = r
				continue
			}
		}
		if c.class == 0 {
			starter = len(out)
		}
		last = c.class
		out = append(out, c)
	}
	return out
}

// composed returns the character that a and b, both decomposed or the result of composition, make
// together.
func composed(a, b rune) (rune, bool) {
	if b < utf8.RuneSelf {
		return 0, false
	}
	s := norm.NFC.String(string([]rune{a, b}))
	r, n := utf8.DecodeRuneInString(s)
	return r, n == len(s)
}

func isASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// validText returns s with invalid UTF-8 replaced as Decode does. The reference never sees such
// text: its strings cannot hold it.
func validText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	out, _ := appendValid(make([]byte, 0, len(s)+16), []byte(s), true)
	return string(out)
}
