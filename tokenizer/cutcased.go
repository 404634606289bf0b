package tokenizer

import (
	"unicode"
	"unicode/utf8"
)

// patternKimi is the splitting expression of Kimi K2, which its tokenization_kimi.py applies.
const patternKimi = `[\p{Han}]+` +
	`|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?` +
	`|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?` +
	`|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`

// patternO200K is the splitting expression of gpt-oss and of others with OpenAI's newer
// vocabularies; GGUF files call it gpt-4o.
const patternO200K = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?` +
	`|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?` +
	`|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`

// letterCase is what the expressions tell apart among letters and marks. Characters of no case go
// with capitals and with small letters.
type letterCase uint8

const (
	capital  letterCase = 1 << iota // \p{Lu} and \p{Lt}
	small                           // \p{Ll}
	caseless                        // \p{Lm}, \p{Lo} and \p{M}
	han                             // \p{Han}, whatever else the character is
)

// casing returns case and length of the character at i, case 0 for one of no such kind.
type casing func(s string, i int) (letterCase, int)

// caseApart is the casing of patternKimi, where Han is a case of its own.
func caseApart(s string, i int) (letterCase, int) {
	if s[i] >= utf8.RuneSelf {
		if r, n := utf8.DecodeRuneInString(s[i:]); unicode.Is(unicode.Han, r) {
			return han, n
		}
	}
	return caseAt(s, i)
}

// caseAt is the casing of patternO200K.
func caseAt(s string, i int) (letterCase, int) {
	if c := s[i]; c < utf8.RuneSelf {
		switch {
		case c >= 'A' && c <= 'Z':
			return capital, 1
		case c >= 'a' && c <= 'z':
			return small, 1
		}
		return 0, 1
	}
	r, n := utf8.DecodeRuneInString(s[i:])
	switch {
	case unicode.Is(unicode.Ll, r):
		return small, n
	case unicode.Is(unicode.Lu, r), unicode.Is(unicode.Lt, r):
		return capital, n
	case unicode.Is(unicode.L, r), unicode.Is(unicode.M, r):
		return caseless, n
	}
	return 0, n
}

// end returns the end of the characters from i on that are of a case in set, and the end of the
// last caseless one among them, 0 if there is none.
func (at casing) end(s string, i int, set letterCase) (end, lastCaseless int) {
	for i < len(s) {
		c, n := at(s, i)
		if c&set == 0 {
			break
		}
		i += n
		if c == caseless {
			lastCaseless = i
		}
	}
	return i, lastCaseless
}

// cutKimi is patternKimi.
func cutKimi(s string) int {
	at := casing(caseApart)
	if end, _ := at.end(s, 0, han); end > 0 {
		return end
	}
	return at.cut(s, func(end int) int { return runEnd(s, end, newline) })
}

// cutO200K is patternO200K.
func cutO200K(s string) int {
	return casing(caseAt).cut(s, func(end int) int {
		for end < len(s) && (s[end] == '\r' || s[end] == '\n' || s[end] == '/') {
			end++
		}
		return end
	})
}

// cut is what the two expressions have in common. after returns the end of what follows upon
// characters that are none of letters, numbers and spaces, and belongs to them.
func (at casing) cut(s string, after func(end int) int) int {
	c, n := classAt(s, 0)
	if end := at.word(s, c, n); end > 0 {
		if end < len(s) && s[end] == '\'' {
			end += contraction(s[end:], true)
		}
		return end
	}
	const notOther = space | number | letter
	switch {
	case c&number != 0:
		return cutNumbers3(s)
	case c&notOther == 0, s[0] == ' ' && n < len(s) && !isAt(s, n, notOther):
		return after(otherEnd(s, n, notOther))
	}
	return cutSpace(s)
}

// word returns the end of the word at 0 without its contraction, 0 if there is none. s begins with
// a character of class c and n bytes. A word ends in a small letter if that is possible in any way,
// and any one character before a word belongs to it if that is possible.
func (at casing) word(s string, c class, n int) int {
	starts := [2]int{n, 0}
	first := 0
	if c&(newline|letter|number) != 0 {
		first = 1
	}
	for _, i := range starts[first:] {
		if end := at.smallEnd(s, i); end > i {
			return end
		}
	}
	for _, i := range starts[first:] {
		if end, _ := at.end(s, i, capital|caseless); end > i {
			return end
		}
	}
	return 0
}

// smallEnd returns the end of capitals and then at least one small letter from i on, 0 if it is not
// so. Where no small letter follows, the last character of no case stands for it.
func (at casing) smallEnd(s string, i int) int {
	end, lastCaseless := at.end(s, i, capital|caseless)
	if smalls, _ := at.end(s, end, small|caseless); smalls > end {
		return smalls
	}
	return lastCaseless
}
