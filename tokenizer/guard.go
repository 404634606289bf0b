package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// guard is put inside of what looks like a special token in a text that is not to have any. It is a
// noncharacter, which Unicode keeps for such uses; one that is in the text already is dropped.
const guard = "\uFDD0"

// Guard returns a text that EncodeGuarded takes for plain text: what looks like a special token in
// it does not become one. Text of people goes through it before a chat template puts the model's
// own marks around it.
func (t *Tokenizer) Guard(text string) string {
	text = strings.ReplaceAll(text, guard, "")
	for _, m := range []*addedMatcher{t.rawAdded, t.normAdded} {
		text = m.guard(text)
	}
	return text
}

// guard breaks every special token in s.
func (m *addedMatcher) guard(s string) string {
	var b strings.Builder
	done := 0
	for i := m.candidate(s, 0); len(m.patterns) > 0 && i < len(s); i = m.candidate(s, i) {
		p := m.longestAt(s[i:])
		_, size := utf8.DecodeRuneInString(s[i:])
		i += size
		if p != nil && p.token.special {
			b.WriteString(s[done:i] + guard)
			done = i
		}
	}
	if done == 0 {
		return s
	}
	return b.String() + s[done:]
}

// EncodeGuarded is Encode, without special tokens around the text, of one whose parts went through
// Guard.
func (t *Tokenizer) EncodeGuarded(text string) ([]int32, error) {
	return t.encode(text, false, strings.Contains(text, guard))
}

// Unguard returns what a text was whose parts went through Guard.
func (t *Tokenizer) Unguard(text string) string { return strings.ReplaceAll(text, guard, "") }
