package tools

import "strings"

// find returns where the first of the marks is in text, and which: the longest if two are there.
func find(text string, marks []string) (at int, mark string) {
	at = -1
	for _, m := range marks {
		if i := strings.Index(text, m); i >= 0 && (at < 0 || i < at || i == at && len(m) > len(mark)) {
			at, mark = i, m
		}
	}
	return at, mark
}

// overlap returns the length of the longest end of text that begins the mark without being it.
func overlap(text, mark string) int {
	for n := min(len(mark)-1, len(text)); n > 0; n-- {
		if strings.HasSuffix(text, mark[:n]) {
			return n
		}
	}
	return 0
}

func overlaps(text string, marks []string) int {
	n := 0
	for _, m := range marks {
		n = max(n, overlap(text, m))
	}
	return n
}

const space = " \t\r\n"

// next skips white space and looks which of the marks follows. ok is false if that cannot be told
// yet; mark is empty if it is none of them.
func (p *Parser) next(marks ...string) (mark string, ok bool) {
	p.take(len(p.buf) - len(strings.TrimLeft(p.buf, space)))
	return p.here(marks...)
}

// here is next without the white space.
func (p *Parser) here(marks ...string) (mark string, ok bool) {
	partial := false
	for _, m := range marks {
		if strings.HasPrefix(p.buf, m) {
			return m, true
		}
		partial = partial || strings.HasPrefix(m, p.buf)
	}
	return "", !partial || p.final
}
