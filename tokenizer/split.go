package tokenizer

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/dlclark/regexp2"
)

// maxPatternBytes bounds a splitting expression. Those in use have at most a few hundred bytes.
const maxPatternBytes = 1 << 14

// behavior says what happens to the matches of a Split pre-tokenizer.
type behavior uint8

const (
	isolated       behavior = iota // a piece of its own
	removed                        // dropped
	mergedWithPrev                 // the end of the piece before it
	mergedWithNext                 // the beginning of the piece after it
	contiguous                     // a piece of its own together with matches that follow at once
)

var behaviors = map[string]behavior{
	"Isolated": isolated, "Removed": removed, "MergedWithPrevious": mergedWithPrev,
	"MergedWithNext": mergedWithNext, "Contiguous": contiguous,
}

// splitStep is one Split pre-tokenizer. Exactly one of cut, literal and pattern is set.
type splitStep struct {
	cut      cutter // stands for an expression with behaviour isolated
	literal  string
	pattern  *regexp2.Regexp
	behavior behavior
	invert   bool // what lies between the matches is taken for the matches
}

// span is a part of a text that is a match or lies between two.
type span struct {
	start, end int
	match      bool
}

// split returns the pieces of s, none of them empty.
func (p *splitStep) split(s string) ([]string, error) {
	spans, err := p.spans(s)
	if err != nil {
		return nil, err
	}
	var pieces []string
	for _, sp := range p.join(spans) {
		if sp.start < sp.end {
			pieces = append(pieces, s[sp.start:sp.end])
		}
	}
	return pieces, nil
}

// spans covers s with matches and what lies between them.
func (p *splitStep) spans(s string) ([]span, error) {
	var spans []span
	end := 0
	add := func(from, to int) {
		if from > end {
			spans = append(spans, span{end, from, p.invert})
		}
		spans = append(spans, span{from, to, !p.invert})
		end = to
	}
	if p.pattern == nil {
		for i := strings.Index(s, p.literal); i >= 0; i = strings.Index(s[end:], p.literal) {
			add(end+i, end+i+len(p.literal))
		}
	} else if err := p.eachMatch(s, add); err != nil {
		return nil, err
	}
	if end < len(s) {
		spans = append(spans, span{end, len(s), p.invert})
	}
	return spans, nil
}

// eachMatch calls add with the byte offsets of each match in order. regexp2 counts in runes.
func (p *splitStep) eachMatch(s string, add func(from, to int)) error {
	m, err := p.pattern.FindStringMatch(s)
	at, runes := 0, 0 // byte offset of a rune index
	for ; m != nil && err == nil; m, err = p.pattern.FindNextMatch(m) {
		from := at + runeOffset(s[at:], m.Index-runes)
		to := from + runeOffset(s[from:], m.Length)
		// An empty match right after another match is none.
		if to > from || from > at || from == 0 {
			add(from, to)
		}
		at, runes = to, m.Index+m.Length
	}
	if err != nil {
		return fmt.Errorf("tokenizer: splitting by %s: %w", excerpt(p.pattern.String()), err)
	}
	return nil
}

// runeOffset returns the length in bytes of the first n characters of s.
func runeOffset(s string, n int) int {
	i := 0
	for ; n > 0 && i < len(s); n-- {
		_, size := utf8.DecodeRuneInString(s[i:])
		i += size
	}
	return i
}

// join applies the behaviour to spans, in place.
func (p *splitStep) join(spans []span) []span {
	out := spans[:0]
	switch p.behavior {
	case isolated:
		return spans
	case removed:
		for _, sp := range spans {
			if !sp.match {
				out = append(out, sp)
			}
		}
	case contiguous:
		for _, sp := range spans {
			if n := len(out); n > 0 && out[n-1].match == sp.match {
				out[n-1].end = sp.end
				continue
			}
			out = append(out, sp)
		}
	case mergedWithPrev:
		// Of matches that follow each other only the first joins what is before it.
		before := false
		for _, sp := range spans {
			join := sp.match && !before && len(out) > 0
			before = sp.match
			if join {
				out[len(out)-1].end = sp.end
				continue
			}
			out = append(out, sp)
		}
	case mergedWithNext:
		// The same from the end: kept spans move to the back of the slice.
		after, first := false, len(spans)
		for i := len(spans) - 1; i >= 0; i-- {
			sp := spans[i]
			join := sp.match && !after && first < len(spans)
			after = sp.match
			if join {
				spans[first].start = sp.start
				continue
			}
			first--
			spans[first] = sp
		}
		return spans[first:]
	}
	return out
}

// compilePattern compiles an expression written for Oniguruma with Ruby syntax, which the reference
// uses. Constructs that regexp2 would understand otherwise are refused. One difference stays:
// ignoring case, the reference also takes the long s (U+017F) for an s and the Kelvin sign for a k.
func compilePattern(key, pattern string) (*regexp2.Regexp, error) {
	if len(pattern) > maxPatternBytes {
		return nil, fmt.Errorf("tokenizer: %s has %d bytes, the limit is %d", key, len(pattern), maxPatternBytes)
	}
	if part := dialectPart(pattern); part != "" {
		return nil, &UnsupportedError{Key: key, Value: fmt.Sprintf("%q, for %q in it", excerpt(pattern), part)}
	}
	// ^ and $ are those of lines in Ruby.
	re, err := regexp2.Compile(pattern, regexp2.Multiline)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %s: %w", key, err)
	}
	return re, nil
}

// sameEscapes are the escapes of letters and digits that both dialects read alike.
const sameEscapes = "pPsSdDrntfxuA"

// sameGroups are the beginnings of groups that both dialects read alike.
var sameGroups = []string{"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?i:", "(?>"}

// dialectPart returns the first part of the pattern that the two dialects may read differently, ""
// if there is none.
func dialectPart(pattern string) string {
	inClass := false
	for i := 0; i < len(pattern); i++ {
		rest := pattern[i:]
		switch c := pattern[i]; {
		case c == '\\' && len(rest) > 1:
			if alnum := isASCIILetter(rest[1]) || rest[1] >= '0' && rest[1] <= '9'; alnum && !strings.Contains(sameEscapes, rest[1:2]) {
				return rest[:2]
			}
			i++
		case inClass && (c == '[' || strings.HasPrefix(rest, "&&")):
			return rest[:1]
		case inClass && c == ']':
			inClass = false
		case inClass:
		case c == '[':
			inClass = true
			if strings.HasPrefix(rest, "[]") || strings.HasPrefix(rest, "[^]") {
				return "[]"
			}
		case strings.HasPrefix(rest, "{,"):
			return "{,"
		case strings.HasPrefix(rest, "(?") && !hasAnyPrefix(rest, sameGroups):
			return rest[:min(3, len(rest))]
		}
	}
	return ""
}

func hasAnyPrefix(s string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}

// excerpt cuts a text of a file to a length that an error message can carry.
func excerpt(s string) string {
	const limit = 120
	if len(s) <= limit {
		return s
	}
	return validText(s[:limit]) + "..."
}
