package constraint

import (
	"fmt"
	"strings"
)

// jsonPlain is the characters that stand for themselves in a JSON string.
var jsonPlain = newSet(runeRange{0, 0x1f}, runeRange{'"', '"'}, runeRange{'\\', '\\'}).not()

// jsonEscapes are the characters with an escape of two characters, and what comes second.
var jsonEscapes = map[rune]rune{'"': '"', '\\': '\\', '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't'}

// jsonChar is any character of a JSON string.
var jsonChar = alt(runes(jsonPlain), jsonEscaped(jsonPlain.not()))

// jsonEscaped returns how the characters of a set, none of which stands for itself, are written:
// each in one way, but for the case of a hexadecimal digit.
func jsonEscaped(set runeSet) *expr {
	var second []runeRange
	var low [2][]runeRange // the last digits of \u000 and \u001
	for _, r := range set {
		for c := r.lo; c <= r.hi; c++ {
			if s, ok := jsonEscapes[c]; ok {
				second = append(second, runeRange{s, s})
				continue
			}
			digit := fmt.Sprintf("%x", c&15)
			low[c>>4] = append(low[c>>4], setOf(digit+strings.ToUpper(digit))...)
		}
	}
	alts := []*expr{runes(newSet(second...))}
	for high, digits := range low {
		if len(digits) > 0 {
			alts = append(alts, cat(text(fmt.Sprintf("u00%d", high)), runes(newSet(digits...))))
		}
	}
	return cat(text(`\`), alt(alts...))
}

// quote returns a text as a JSON string.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		c, short := jsonEscapes[r]
		switch {
		case short:
			b.WriteRune('\\')
			b.WriteRune(c)
		case r < ' ':
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// escape is a set of characters that are escaped, and where they lead: many sets share theirs.
type escape struct {
	set string
	to  int32
}

// escapes adds the escapes of those characters of a set that need one.
func (b *builder) escapes(set runeSet, from, to int32) {
	if set = set.and(jsonPlain.not()); len(set) == 0 {
		return
	}
	key := escape{fmt.Sprint(set), to}
	first, ok := b.escape[key]
	if !ok {
		first = b.node()
		b.escape[key] = first
		b.link(jsonEscaped(set), first, to)
	}
	b.eps(from, first)
}
