package tokenizer

import (
	"unicode"
	"unicode/utf8"
)

// A cutter is a splitting expression with behaviour Isolated, written by hand: it returns the
// length of the first piece of s, which is a match at 0 or everything before the first match. s is
// not empty. Since none of the expressions looks back, cutting the rest again and again splits the
// whole.
type cutter func(s string) int

// knownPatterns are the splitting expressions with a cutter, spelled as in tokenizer.json. Tests
// compare each cutter with its expression.
var knownPatterns = map[string]cutter{
	patternQwen2:         func(s string) int { return cutQwen(s, letter, oneNumber) },
	patternQwen35:        func(s string) int { return cutQwen(s, letter|mark, oneNumber) },
	patternLlama3:        func(s string) int { return cutQwen(s, letter, cutNumbers3) },
	patternDeepSeekWords: cutDeepSeekWords,
	patternNumbers3:      cutNumbers3,
	patternCJK:           cutCJK,
	patternGPT2:          cutGPT2,
	patternKimi:          cutKimi,
	patternO200K:         cutO200K,
}

const (
	patternQwen2 = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`

	patternQwen35 = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`

	// patternLlama3 is patternQwen2 but for numbers of up to three digits. It is also that of GLM.
	patternLlama3 = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`

	patternDeepSeekWords = `[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_` + "`" + `{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`

	patternNumbers3 = `\p{N}{1,3}`

	patternCJK = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"

	// patternGPT2 is what a ByteLevel pre-tokenizer with use_regex applies.
	patternGPT2 = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
)

// class is a set of properties of a character that the expressions ask for.
type class uint8

const (
	letter  class = 1 << iota // \p{L}
	mark                      // \p{M}
	number                    // \p{N}
	punct                     // \p{P}
	symbol                    // \p{S}
	space                     // \s
	newline                   // \r or \n, which are space too
)

// asciiClass holds the classes of the characters below 0x80, the bulk of most texts.
var asciiClass = makeASCIIClass()

func makeASCIIClass() (classes [utf8.RuneSelf]class) {
	for r := range classes {
		classes[r] = slowClass(rune(r))
	}
	return classes
}

func slowClass(r rune) class {
	switch {
	case unicode.Is(unicode.L, r):
		return letter
	case r == '\r' || r == '\n':
		return space | newline
	case unicode.Is(unicode.White_Space, r):
		return space
	case unicode.Is(unicode.M, r):
		return mark
	case unicode.Is(unicode.N, r):
		return number
	case unicode.Is(unicode.P, r):
		return punct
	case unicode.Is(unicode.S, r):
		return symbol
	}
	return 0
}

// classAt returns class and length of the character at i.
func classAt(s string, i int) (class, int) {
	if c := s[i]; c < utf8.RuneSelf {
		return asciiClass[c], 1
	}
	r, n := utf8.DecodeRuneInString(s[i:])
	return slowClass(r), n
}

// isAt reports whether a character of a class in set begins at i.
func isAt(s string, i int, set class) bool {
	if i >= len(s) {
		return false
	}
	c, _ := classAt(s, i)
	return c&set != 0
}

// runEnd returns the end of the characters from i on that are of a class in set.
func runEnd(s string, i int, set class) int {
	for i < len(s) {
		c, n := classAt(s, i)
		if c&set == 0 {
			break
		}
		i += n
	}
	return i
}

// otherEnd returns the end of the characters from i on that are of no class in set.
func otherEnd(s string, i int, set class) int {
	for i < len(s) {
		c, n := classAt(s, i)
		if c&set != 0 {
			break
		}
		i += n
	}
	return i
}

// cutQwen is patternQwen2 with word = letter, patternQwen35 with word = letter|mark. numbers cuts a
// text that begins with a number.
func cutQwen(s string, word class, numbers cutter) int {
	if s[0] == '\'' {
		if n := contraction(s, true); n > 0 {
			return n
		}
	}
	c, n := classAt(s, 0)
	if c&word != 0 || c&(newline|number) == 0 && isAt(s, n, word) {
		return runEnd(s, n, word)
	}
	if c&number != 0 {
		return numbers(s)
	}
	notOther := space | number | word
	if c&notOther == 0 || s[0] == ' ' && n < len(s) && !isAt(s, n, notOther) {
		return runEnd(s, otherEnd(s, n, notOther), newline)
	}
	return cutSpace(s)
}

// oneNumber cuts one character.
func oneNumber(s string) int {
	_, n := classAt(s, 0)
	return n
}

// cutSpace is \s*[\r\n]+|\s+(?!\S)|\s+ where s begins with a space character: up to the last line
// end of the run, else all but the last character of the run, else all of it where the text ends or
// there is only one.
func cutSpace(s string) int {
	end, last, lineEnd := spaceRun(s)
	if lineEnd > 0 {
		return lineEnd
	}
	return allButLast(s, end, last)
}

// spaceRun measures the space characters that s begins with: where they end, where the last one
// begins, where the last line end among them ends (0 if there is none).
func spaceRun(s string) (end, last, lineEnd int) {
	for end < len(s) {
		c, n := classAt(s, end)
		if c&space == 0 {
			break
		}
		last = end
		end += n
		if c&newline != 0 {
			lineEnd = end
		}
	}
	return end, last, lineEnd
}

// allButLast is \s+(?!\S)|\s+ for a run of space that spaceRun measured.
func allButLast(s string, end, last int) int {
	if end == len(s) || last == 0 {
		return end
	}
	return last
}

// contraction returns the length of 's, 't, 're, 've, 'm, 'll or 'd at the beginning of s, which is
// an apostrophe; 0 if there is none. Ignoring case, the long s (U+017F) counts as an s.
func contraction(s string, ignoreCase bool) int {
	lower := func(i int) byte {
		if i >= len(s) {
			return 0
		}
		if c := s[i]; !ignoreCase || c < 'A' || c > 'Z' {
			return c
		}
		return s[i] + 'a' - 'A'
	}
	switch lower(1) {
	case 's', 't', 'm', 'd':
		return 2
	case 'r', 'v':
		if lower(2) == 'e' {
			return 3
		}
	case 'l':
		if lower(2) == 'l' {
			return 3
		}
	case 0xC5:
		if ignoreCase && lower(2) == 0xBF {
			return 3
		}
	}
	return 0
}
