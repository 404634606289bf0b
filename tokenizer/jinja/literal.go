package jinja

import (
	"math/big"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxIntDigits is Python's limit on the decimal digits of an int that is read or printed.
const maxIntDigits = 4300

// number reads an integer or a float, in Python's spelling.
func (l *lexer) number() error {
	start := l.pos
	end := digitsEnd(l.src, start)
	isFloat := false
	if start == 0 || l.src[start-1] != '.' { // a.1.5 is an index of an index
		if e := fractionEnd(l.src, end); e > end {
			end, isFloat = e, true
		}
	}
	if isFloat {
		// An error here can only be of range, and then the value is an infinity, as in Python.
		f, _ := strconv.ParseFloat(strings.ReplaceAll(l.src[start:end], "_", ""), 64)
		l.emit(token{kind: tokFloat, val: f})
		l.advance(end)
		return nil
	}
	end = intEnd(l.src, start)
	text := strings.ReplaceAll(l.src[start:end], "_", "")
	if len(text) > maxIntDigits {
		return l.failf("integer of %d digits: more than %d are not allowed", len(text), maxIntDigits)
	}
	n, ok := new(big.Int).SetString(text, 0)
	if !ok {
		return l.failf("invalid integer %s", text)
	}
	l.emit(token{kind: tokInt, val: normInt(n)})
	l.advance(end)
	return nil
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// digitsEnd is the end of the digits at i, with single underscores between them.
func digitsEnd(s string, i int) int {
	for i < len(s) && (isDigit(s[i]) || s[i] == '_' && isDigit(s[i-1]) && i+1 < len(s) && isDigit(s[i+1])) {
		i++
	}
	return i
}

// fractionEnd is the end of a fraction or an exponent at i, or i if there is none.
func fractionEnd(s string, i int) int {
	if i+1 < len(s) && s[i] == '.' && isDigit(s[i+1]) {
		i = digitsEnd(s, i+1)
	}
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		j := i + 1
		if j < len(s) && (s[j] == '+' || s[j] == '-') {
			j++
		}
		if j < len(s) && isDigit(s[j]) {
			i = digitsEnd(s, j)
		}
	}
	return i
}

// intEnd is the end of the integer at i: a prefix with its digits, digits without a leading zero,
// or zeros.
func intEnd(s string, i int) int {
	digits := "0123456789"
	if s[i] == '0' {
		digits = "0"
		if i+1 < len(s) {
			set := map[byte]string{'b': "01", 'o': "01234567", 'x': "0123456789abcdefABCDEF"}[s[i+1]|0x20]
			if end := runEnd(s, i+2, set); set != "" && end > i+2 {
				return end
			}
		}
	}
	return runEnd(s, i, digits)
}

// runEnd is the end of the characters of set at i, each of which may have one underscore before it
// (but the first).
func runEnd(s string, i int, set string) int {
	for {
		j := i
		if j > 0 && j < len(s) && s[j] == '_' {
			j++
		}
		if j >= len(s) || strings.IndexByte(set, s[j]) < 0 {
			return i
		}
		i = j + 1
	}
}

// quoted reads a string literal that begins with quote.
func (l *lexer) quoted(quote byte) error {
	for i := l.pos + 1; i < len(l.src); i++ {
		switch l.src[i] {
		case '\\':
			i++
		case quote:
			text, msg := unescape(l.src[l.pos+1 : i])
			if msg != "" {
				return l.failf("%s", msg)
			}
			l.emit(token{kind: tokString, text: text})
			l.advance(i + 1)
			return nil
		}
	}
	return l.failf("unexpected char %s at %d", reprString(string(quote)), strLen(l.src[:l.pos]))
}

var simpleEscapes = map[byte]string{
	'\n': "", '\\': "\\", '\'': "'", '"': "\"", 'a': "\a", 'b': "\b", 'f': "\f", 'n': "\n", 'r': "\r", 't': "\t", 'v': "\v",
}

// unescape resolves Python's escapes. msg tells what is wrong with one, or is "".
func unescape(s string) (text, msg string) {
	if strings.IndexByte(s, '\\') < 0 {
		return s, ""
	}
	var units []uint16 // UTF-16, so that two escaped surrogates become the character they stand for
	add := func(t string) { units = append(units, utf16.Encode([]rune(t))...) }
	for len(s) > 0 {
		k := strings.IndexByte(s, '\\')
		if k < 0 {
			k = len(s)
		}
		add(s[:k])
		if s = s[k:]; s == "" {
			break
		}
		s = s[1:]
		c := s[0] // the closing quote is not escaped, so a backslash never comes last
		if t, ok := simpleEscapes[c]; ok {
			add(t)
			s = s[1:]
			continue
		}
		switch {
		case c >= '0' && c <= '7':
			n := 1
			for n < 3 && n < len(s) && s[n] >= '0' && s[n] <= '7' {
				n++
			}
			v, _ := strconv.ParseUint(s[:n], 8, 32)
			add(string(rune(v)))
			s = s[n:]
		case c == 'x' || c == 'u' || c == 'U':
			n := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
			if len(s) < 1+n {
				return "", "truncated \\" + s[:1] + " escape"
			}
			v, err := strconv.ParseUint(s[1:1+n], 16, 32)
			if err != nil {
				return "", "truncated \\" + s[:1] + " escape"
			}
			if v > utf8.MaxRune {
				return "", "illegal Unicode character"
			}
			if v < 0x10000 {
				units = append(units, uint16(v))
			} else {
				add(string(rune(v)))
			}
			s = s[1+n:]
		case c == 'N':
			return "", "the escape \\N{...} is not supported; write the character or \\u with its number"
		default:
			s = strangeEscape(s, add)
		}
	}
	return string(utf16.Decode(units)), ""
}

// strangeEscape handles a backslash that begins no escape. Before ASCII it stands for itself. The
// reference turns other characters into escapes first, so a backslash before one of them escapes
// the backslash of that.
func strangeEscape(s string, add func(string)) string {
	r, n := utf8.DecodeRuneInString(s)
	q := strconv.QuoteToASCII(string(r))
	switch {
	case r < utf8.RuneSelf:
		add("\\" + s[:n])
	case r < 0x100:
		add("\\x" + strconv.FormatUint(uint64(r), 16))
	default:
		add(q[1 : len(q)-1])
	}
	return s[n:]
}
