package tokenizer

import (
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
)

// addedToken is an entry of added_tokens: a text that becomes one id wherever it occurs.
type addedToken struct {
	id         int32
	content    string
	singleWord bool // only where no word character touches it
	lstrip     bool // takes the white space before it along
	rstrip     bool // takes the white space after it along
	normalized bool // is looked for in the normalised text, in its normalised form
	special    bool
}

// addedMatcher finds added tokens in a text. Looking at one index takes at most as long as the
// longest token there.
type addedMatcher struct {
	patterns []addedPattern // by text
	first    [256]bool      // bytes that begin a pattern
	only     int            // the one byte that begins every pattern, -1 if there are several
}

type addedPattern struct {
	text  string
	token *addedToken
}

// newAddedMatcher makes a matcher. Of two patterns with the same text (after normalisation) the
// earlier wins.
func newAddedMatcher(patterns []addedPattern) *addedMatcher {
	m := &addedMatcher{only: -1}
	for _, p := range patterns {
		if p.text != "" {
			m.patterns = append(m.patterns, p)
			m.first[p.text[0]] = true
			m.only = int(p.text[0])
		}
	}
	sort.SliceStable(m.patterns, func(i, j int) bool { return m.patterns[i].text < m.patterns[j].text })
	count := 0
	for _, is := range m.first {
		if is {
			count++
		}
	}
	if count > 1 {
		m.only = -1
	}
	return m
}

// candidate returns the first index from i on where a pattern may begin, or len(s).
func (m *addedMatcher) candidate(s string, i int) int {
	if m.only >= 0 {
		if n := strings.IndexByte(s[i:], byte(m.only)); n >= 0 {
			return i + n
		}
		return len(s)
	}
	for i < len(s) && !m.first[s[i]] {
		i++
	}
	return i
}

// longestAt returns the longest pattern that s begins with, nil if there is none. Patterns that
// agree with s so far are neighbours in sorted order, shorter ones first.
func (m *addedMatcher) longestAt(s string) *addedPattern {
	var best *addedPattern
	lo, hi := 0, len(m.patterns)
	for depth := 0; ; depth++ {
		for first := true; lo < hi && len(m.patterns[lo].text) == depth; lo++ {
			if first {
				best, first = &m.patterns[lo], false
			}
		}
		if lo == hi || depth == len(s) {
			return best
		}
		c, group := s[depth], m.patterns[lo:hi]
		end := sort.Search(len(group), func(i int) bool { return group[i].text[depth] > c })
		begin := sort.Search(end, func(i int) bool { return group[i].text[depth] >= c })
		lo, hi = lo+begin, lo+end
	}
}

// split calls token for each added token in s and text for each non-empty part between them, in
// order. Matches are leftmost, then longest; a match that should be a single word and is not is
// passed over as a whole. An error of text or token ends the split.
func (m *addedMatcher) split(s string, text func(string) error, token func(*addedToken) error) error {
	if len(m.patterns) == 0 {
		if s == "" {
			return nil
		}
		return text(s)
	}
	done, spaceEnd := 0, 0
	for i := m.candidate(s, 0); i < len(s); i = m.candidate(s, i) {
		p := m.longestAt(s[i:])
		if p == nil {
			i++
			continue
		}
		start, stop := i, i+len(p.text)
		i = stop
		t := p.token
		if t.singleWord && (endsInWord(s[:start]) || beginsWithWord(s[stop:])) {
			continue
		}
		if t.lstrip {
			start = done + len(strings.TrimRightFunc(s[done:max(start, done)], unicode.IsSpace))
		}
		if t.rstrip {
			// Tokens of white space would scan the same run again and again.
			if spaceEnd <= stop {
				spaceEnd = len(s) - len(strings.TrimLeftFunc(s[stop:], unicode.IsSpace))
			}
			stop = spaceEnd
		}
		if done < start {
			if err := text(s[done:start]); err != nil {
				return err
			}
		}
		if err := token(t); err != nil {
			return err
		}
		// A token within white space that rstrip took counts all the same, as in the reference.
		done = stop
	}
	if done < len(s) {
		return text(s[done:])
	}
	return nil
}

func endsInWord(s string) bool {
	r, n := utf8.DecodeLastRuneInString(s)
	return n > 0 && isWord(r)
}

func beginsWithWord(s string) bool {
	r, n := utf8.DecodeRuneInString(s)
	return n > 0 && isWord(r)
}

// isWord reports whether r is a word character by Unicode's rules for regular expressions.
func isWord(r rune) bool {
	return unicode.In(r, unicode.L, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc, unicode.Other_Alphabetic, unicode.Join_Control)
}
