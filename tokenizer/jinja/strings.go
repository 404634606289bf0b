package jinja

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Python's notions of characters, where package unicode or strings has others.

// isSpace is str.isspace for one character; strip, split and the lexer use the same set.
func isSpace(r rune) bool {
	return r >= 0x1c && r <= 0x1f || unicode.IsSpace(r)
}

// isLineEnd reports whether splitlines breaks at r.
func isLineEnd(r rune) bool {
	switch r {
	case '\n', '\r', '\v', '\f', 0x1c, 0x1d, 0x1e, 0x85, 0x2028, 0x2029:
		return true
	}
	return false
}

func isIdentRune(r rune, inside bool) bool {
	if r == '_' || unicode.IsLetter(r) || unicode.Is(unicode.Nl, r) {
		return true
	}
	return inside && r != utf8.RuneError && unicode.In(r, unicode.Nd, unicode.Mn, unicode.Mc, unicode.Pc)
}

func isDecimalRune(r rune) bool { return unicode.Is(unicode.Nd, r) }
func isDigitRune(r rune) bool   { return isDecimalRune(r) || unicode.Is(otherDigits, r) }
func isNumericRune(r rune) bool { return unicode.IsNumber(r) || unicode.Is(numericLetters, r) }
func isAlnumRune(r rune) bool   { return unicode.IsLetter(r) || isNumericRune(r) }
func isWordRune(r rune) bool    { return r == '_' || isAlnumRune(r) }

// isCased reports whether r has a case.
func isCased(r rune) bool {
	return unicode.IsUpper(r) || unicode.IsLower(r) || unicode.IsTitle(r) || unicode.In(r, unicode.Other_Lowercase, unicode.Other_Uppercase)
}

func isLowerRune(r rune) bool { return unicode.IsLower(r) || unicode.Is(unicode.Other_Lowercase, r) }
func isUpperRune(r rune) bool { return unicode.IsUpper(r) || unicode.Is(unicode.Other_Uppercase, r) }

func isASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// strLen is the number of characters of s.
func strLen(s string) int { return utf8.RuneCountInString(s) }

// byteOffset is the offset of character n of s, len(s) if there are fewer.
func byteOffset(s string, n int) int {
	i := 0
	for ; n > 0 && i < len(s); n-- {
		_, size := utf8.DecodeRuneInString(s[i:])
		i += size
	}
	return i
}

func trimLeftSpace(s string) string  { return strings.TrimLeftFunc(s, isSpace) }
func trimRightSpace(s string) string { return strings.TrimRightFunc(s, isSpace) }

func upperRune(b *strings.Builder, r rune) {
	if t, ok := upperFull[r]; ok {
		b.WriteString(t)
	} else {
		b.WriteRune(unicode.ToUpper(r))
	}
}

func titleRune(b *strings.Builder, r rune) {
	if t, ok := titleFull[r]; ok {
		b.WriteString(t)
	} else if t, ok := upperFull[r]; ok {
		b.WriteString(t)
	} else {
		b.WriteRune(unicode.ToTitle(r))
	}
}

// upper is str.upper.
func upper(s string) string {
	if isASCII(s) {
		return strings.ToUpper(s)
	}
	var b strings.Builder
	for _, r := range s {
		upperRune(&b, r)
	}
	return b.String()
}

// lower is str.lower.
func lower(s string) string {
	if isASCII(s) {
		return strings.ToLower(s)
	}
	var b strings.Builder
	for i, r := range s {
		lowerRune(&b, s, i, r)
	}
	return b.String()
}

// lowerRune writes the lower case of r, which is at i in s: a sigma at the end of a word has a form
// of its own.
func lowerRune(b *strings.Builder, s string, i int, r rune) {
	switch r {
	case 0x130:
		b.WriteString("i̇")
	case 'Σ':
		if finalSigma(s, i) {
			r = 'ς'
		} else {
			r = 'σ'
		}
		b.WriteRune(r)
	default:
		b.WriteRune(unicode.ToLower(r))
	}
}

// caseIgnorable approximates the Unicode property by its main members: marks, modifiers, formats, a
// few punctuations.
func caseIgnorable(r rune) bool {
	switch r {
	case '\'', '.', ':', '^', '`', 0xa8, 0xad, 0xaf, 0xb4, 0xb7, 0xb8, 0x2018, 0x2019, 0x2024, 0x2027:
		return true
	}
	return unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf, unicode.Lm, unicode.Sk)
}

// finalSigma reports whether the sigma at i ends a word: a cased character before it, none after
// it.
func finalSigma(s string, i int) bool {
	before := strings.TrimRightFunc(s[:i], caseIgnorable)
	r, _ := utf8.DecodeLastRuneInString(before)
	if before == "" || !isCased(r) {
		return false
	}
	after := strings.TrimLeftFunc(s[i+len("Σ"):], caseIgnorable)
	r, _ = utf8.DecodeRuneInString(after)
	return after == "" || !isCased(r)
}

// capitalize is str.capitalize.
func capitalize(s string) string {
	var b strings.Builder
	for i, r := range s {
		if i == 0 {
			titleRune(&b, r)
		} else {
			lowerRune(&b, s, i, r)
		}
	}
	return b.String()
}

// titleCase is str.title.
func titleCase(s string) string {
	var b strings.Builder
	inWord := false
	for i, r := range s {
		if inWord {
			lowerRune(&b, s, i, r)
		} else {
			titleRune(&b, r)
		}
		inWord = isCased(r)
	}
	return b.String()
}

// swapCase is str.swapcase.
func swapCase(s string) string {
	var b strings.Builder
	for i, r := range s {
		switch {
		case isUpperRune(r):
			lowerRune(&b, s, i, r)
		case isLowerRune(r):
			upperRune(&b, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// splitLines is str.splitlines.
func splitLines(s string, keepEnds bool) []string {
	var out []string
	for s != "" {
		end := strings.IndexFunc(s, isLineEnd)
		if end < 0 {
			return append(out, s)
		}
		_, n := utf8.DecodeRuneInString(s[end:])
		next := end + n
		if strings.HasPrefix(s[end:], "\r\n") {
			next = end + 2
		}
		if keepEnds {
			end = next
		}
		out = append(out, s[:end])
		s = s[next:]
	}
	return out
}

// splitSpace is str.split without a separator; max < 0 is no limit.
func splitSpace(s string, max int) []string {
	var out []string
	for s = trimLeftSpace(s); s != ""; s = trimLeftSpace(s) {
		end := strings.IndexFunc(s, isSpace)
		if end < 0 {
			return append(out, s)
		}
		if max >= 0 && len(out) == max {
			return append(out, s)
		}
		out = append(out, s[:end])
		s = s[end:]
	}
	return out
}

// rsplitSpace is str.rsplit without a separator, last part first.
func rsplitSpace(s string, max int) []string {
	var out []string
	for s = trimRightSpace(s); s != ""; s = trimRightSpace(s) {
		start := strings.LastIndexFunc(s, isSpace)
		if start < 0 {
			return append(out, s)
		}
		if max >= 0 && len(out) == max {
			return append(out, s)
		}
		_, n := utf8.DecodeRuneInString(s[start:])
		out = append(out, s[start+n:])
		s = s[:start]
	}
	return out
}
