package jinja

import (
	"math/big"
	"strings"
	"unicode"
)

// parseInt is Python's int(s, base): blanks around, a sign, a prefix that fits the base, single
// underscores between digits, digits of any script.
func parseInt(s string, base int) (Value, error) {
	bad := fail(KindValue, "invalid literal for int() with base %d: %s", base, reprString(s))
	if base != 0 && (base < 2 || base > 36) {
		return nil, fail(KindValue, "int() base must be >= 2 and <= 36, or 0")
	}
	text, negative := strings.TrimFunc(s, isSpace), false
	if text != "" && (text[0] == '+' || text[0] == '-') {
		negative, text = text[0] == '-', text[1:]
	}
	text = asciiDigits(text)
	prefixed := false
	if len(text) > 2 && text[0] == '0' {
		if b := map[byte]int{'x': 16, 'o': 8, 'b': 2}[text[1]|0x20]; b != 0 && (base == b || base == 0) {
			base, text, prefixed = b, strings.TrimPrefix(text[2:], "_"), true
		}
	}
	if base == 0 {
		if text != "" && text[0] == '0' && strings.Trim(text, "0_") != "" {
			return nil, bad
		}
		base = 10
	}
	if text == "" || text[0] == '_' || strings.HasSuffix(text, "_") || strings.Contains(text, "__") ||
		text[0] == '+' || text[0] == '-' {
		return nil, bad
	}
	digits := strings.ReplaceAll(text, "_", "")
	if len(digits) > maxIntDigits && !prefixed {
		return nil, fail(KindValue, "Exceeds the limit (%d digits) for integer string conversion", maxIntDigits)
	}
	if len(digits) > maxIntBits/4 {
		return nil, fail(KindLimit, "an int of %d digits", len(digits))
	}
	n, ok := new(big.Int).SetString(digits, base)
	if !ok {
		return nil, bad
	}
	if negative {
		n.Neg(n)
	}
	return normInt(n), nil
}

// asciiDigits replaces the decimal digits of other scripts.
func asciiDigits(s string) string {
	if isASCII(s) {
		return s
	}
	return strings.Map(func(c rune) rune {
		if c < 0x80 || !unicode.Is(unicode.Nd, c) {
			return c
		}
		zero := c
		for unicode.Is(unicode.Nd, zero-1) { // digits come in tens, in order
			zero--
		}
		return '0' + (c-zero)%10
	}, s)
}
