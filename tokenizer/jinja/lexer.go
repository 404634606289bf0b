package jinja

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// lexer cuts a template into tokens. The rules for white space are those of trim_blocks and
// lstrip_blocks: a tag eats the newline after it and the blanks between the start of its line and
// it, unless a + says no or a - says more.
type lexer struct {
	name string
	src  string // newlines are \n, one at the very end is gone
	pos  int
	line int // of pos
	toks []token
}

// lex returns the tokens of text, the last of them tokEOF.
func lex(name, text string) ([]token, error) {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	l := &lexer{name: name, src: strings.TrimSuffix(text, "\n"), line: 1}
	for l.pos < len(l.src) {
		if err := l.root(); err != nil {
			return nil, err
		}
	}
	l.emit(token{kind: tokEOF})
	return l.toks, nil
}

func (l *lexer) failf(format string, args ...any) error {
	return &Error{Kind: KindSyntax, Name: l.name, Line: l.line, Msg: fmt.Sprintf(format, args...)}
}

func (l *lexer) emit(t token) {
	t.line = l.line
	l.toks = append(l.toks, t)
}

// advance moves to position to, counting the lines it passes.
func (l *lexer) advance(to int) {
	l.line += strings.Count(l.src[l.pos:to], "\n")
	l.pos = to
}

// spaceEnd is the end of the white space that begins at i.
func (l *lexer) spaceEnd(i int) int {
	for i < len(l.src) {
		r, n := utf8.DecodeRuneInString(l.src[i:])
		if !isSpace(r) {
			break
		}
		i += n
	}
	return i
}

// root reads text up to the next tag, and that tag.
func (l *lexer) root() error {
	tag := l.findTag()
	if tag < 0 {
		l.emit(token{kind: tokData, text: l.src[l.pos:]})
		l.advance(len(l.src))
		return nil
	}
	kind := l.src[tag+1]
	after := tag + 2
	sign := l.sign(after)
	if sign != 0 {
		after++
	}
	l.data(tag, sign, kind == '{')
	if kind == '%' {
		if body, ok := l.rawBegin(after); ok {
			return l.raw(body)
		}
	}
	switch kind {
	case '#':
		l.advance(after)
		return l.comment()
	case '%':
		l.emit(token{kind: tokBlockBegin})
	default:
		l.emit(token{kind: tokVarBegin})
	}
	l.advance(after)
	return l.code(kind == '%')
}

// findTag is the position of the next {%, {{ or {#, or -1.
func (l *lexer) findTag() int {
	for i := l.pos; ; {
		k := strings.IndexByte(l.src[i:], '{')
		if k < 0 || i+k+1 >= len(l.src) {
			return -1
		}
		i += k
		switch l.src[i+1] {
		case '%', '{', '#':
			return i
		}
		i++
	}
}

// sign is the + or - at i, or 0.
func (l *lexer) sign(i int) byte {
	if i < len(l.src) && (l.src[i] == '-' || l.src[i] == '+') {
		return l.src[i]
	}
	return 0
}

// data emits the text before the tag that begins at end, stripped as its sign and the settings
// want, and moves there.
func (l *lexer) data(end int, sign byte, variable bool) {
	text := l.src[l.pos:end]
	switch {
	case sign == '-':
		text = trimRightSpace(text)
	case sign == 0 && !variable:
		start := strings.LastIndexByte(text, '\n') + 1
		atLineStart := start > 0 || l.pos == 0 || l.src[l.pos-1] == '\n'
		if atLineStart && trimRightSpace(text[start:]) == "" {
			text = text[:start]
		}
	}
	if text != "" {
		l.emit(token{kind: tokData, text: text})
	}
	l.advance(end)
}

// rawBegin reports whether a raw tag continues at i, after {% and its sign, and where what it holds
// begins.
func (l *lexer) rawBegin(i int) (body int, ok bool) {
	i = l.spaceEnd(i)
	if !strings.HasPrefix(l.src[i:], "raw") {
		return 0, false
	}
	i = l.spaceEnd(i + len("raw"))
	if strings.HasPrefix(l.src[i:], "-%}") {
		return l.spaceEnd(i + 3), true
	}
	return i + 2, strings.HasPrefix(l.src[i:], "%}")
}

// raw reads up to the endraw tag; the text from body on is data.
func (l *lexer) raw(body int) error {
	l.advance(body)
	for i := l.pos; ; i += 2 {
		k := strings.Index(l.src[i:], "{%")
		if k < 0 {
			return l.failf("Missing end of raw directive")
		}
		i += k
		j := i + 2
		sign := l.sign(j)
		if sign != 0 {
			j++
		}
		j = l.spaceEnd(j)
		if !strings.HasPrefix(l.src[j:], "endraw") {
			continue
		}
		end, ok := l.tagEnd(l.spaceEnd(j+len("endraw")), "%}", true)
		if !ok {
			continue
		}
		l.data(i, sign, false)
		l.advance(end)
		return nil
	}
}

// comment moves past the end of a comment.
func (l *lexer) comment() error {
	k := strings.Index(l.src[l.pos:], "#}")
	if k < 0 {
		return l.failf("Missing end of comment tag")
	}
	i := l.pos + k
	if i > l.pos && (l.src[i-1] == '-' || l.src[i-1] == '+') {
		i--
	}
	end, _ := l.tagEnd(i, "#}", true)
	l.advance(end)
	return nil
}

// tagEnd reports whether a tag ends at i, and where what follows begins. plus allows +, and the
// newline to be eaten.
func (l *lexer) tagEnd(i int, mark string, plus bool) (int, bool) {
	rest := l.src[i:]
	switch {
	case strings.HasPrefix(rest, "-"+mark):
		return l.spaceEnd(i + 1 + len(mark)), true
	case plus && strings.HasPrefix(rest, "+"+mark):
		return i + 1 + len(mark), true
	case strings.HasPrefix(rest, mark+"\n") && plus:
		return i + len(mark) + 1, true
	case strings.HasPrefix(rest, mark):
		return i + len(mark), true
	}
	return 0, false
}

// code reads the inside of a tag and its end.
func (l *lexer) code(block bool) error {
	mark, endKind := "}}", tokVarEnd
	if block {
		mark, endKind = "%}", tokBlockEnd
	}
	var open []byte // the brackets to be closed; while there are any, a mark is operators
	for {
		if len(open) == 0 {
			if end, ok := l.tagEnd(l.pos, mark, block); ok {
				l.emit(token{kind: endKind})
				l.advance(end)
				return nil
			}
		}
		if l.pos >= len(l.src) {
			return nil // the parser says what is missing
		}
		var err error
		if open, err = l.inner(open); err != nil {
			return err
		}
	}
}

// inner reads one token inside a tag, or white space.
func (l *lexer) inner(open []byte) ([]byte, error) {
	c := l.src[l.pos]
	if end := l.spaceEnd(l.pos); end > l.pos {
		l.advance(end)
		return open, nil
	}
	if c >= '0' && c <= '9' {
		return open, l.number()
	}
	if c == '\'' || c == '"' {
		return open, l.quoted(c)
	}
	if end := l.nameEnd(l.pos); end > l.pos {
		l.emit(token{kind: tokName, text: l.src[l.pos:end]})
		l.advance(end)
		return open, nil
	}
	op := operatorAt(l.src[l.pos:])
	if op == "" {
		r, _ := utf8.DecodeRuneInString(l.src[l.pos:])
		return nil, l.failf("unexpected char %s at %d", reprString(string(r)), strLen(l.src[:l.pos]))
	}
	switch op {
	case "(":
		open = append(open, ')')
	case "[":
		open = append(open, ']')
	case "{":
		open = append(open, '}')
	case ")", "]", "}":
		if len(open) == 0 {
			return nil, l.failf("unexpected '%s'", op)
		}
		if want := open[len(open)-1]; want != op[0] {
			return nil, l.failf("unexpected '%s', expected '%c'", op, want)
		}
		open = open[:len(open)-1]
	}
	l.emit(token{kind: tokOp, text: op})
	l.advance(l.pos + len(op))
	return open, nil
}

// operatorAt is the operator at the start of s, or "".
func operatorAt(s string) string {
	if len(s) >= 2 {
		switch s[:2] {
		case "//", "**", "==", "!=", ">=", "<=":
			return s[:2]
		}
	}
	if strings.IndexByte("+-/*%~[](){}><=.:|,;", s[0]) >= 0 {
		return s[:1]
	}
	return ""
}

// nameEnd is the end of the identifier at i, or i.
func (l *lexer) nameEnd(i int) int {
	for first := i; i < len(l.src); {
		r, n := utf8.DecodeRuneInString(l.src[i:])
		if !isIdentRune(r, i > first) {
			break
		}
		i += n
	}
	return i
}
