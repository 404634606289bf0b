package jinja

import (
	"fmt"
	"strings"
)

// maxNest bounds how deeply statements and expressions may be nested in the source.
const maxNest = 200

// Parse reads a template. name is only for errors. The error is an *Error.
func Parse(name, text string) (*Template, error) {
	toks, err := lex(name, text)
	if err != nil {
		return nil, err
	}
	p := &parser{name: name, toks: toks}
	body, err := p.statements()
	if err != nil {
		return nil, err
	}
	c := &checker{name: name}
	if err := c.stmts(body, context{}); err != nil {
		return nil, err
	}
	return &Template{name: name, body: body}, nil
}

// parser builds the tree by recursive descent, with the grammar of the reference.
type parser struct {
	name  string
	toks  []token
	pos   int
	nest  int
	uses  []*specialNames // of the macros being read, outermost first
	opens []string        // the tags whose blocks are being read
}

func (p *parser) cur() token { return p.toks[p.pos] }

// look is the token after the current one.
func (p *parser) look() token {
	if p.pos+1 < len(p.toks) {
		return p.toks[p.pos+1]
	}
	return p.cur()
}

// next returns the current token and moves on.
func (p *parser) next() token {
	t := p.toks[p.pos]
	if p.pos+1 < len(p.toks) {
		p.pos++
	}
	return t
}

func (p *parser) failAt(line int, format string, args ...any) error {
	return &Error{Kind: KindSyntax, Name: p.name, Line: line, Msg: fmt.Sprintf(format, args...)}
}

func (p *parser) expect(kind tokenKind, what string) (token, error) {
	t := p.cur()
	if t.kind != kind {
		return t, p.failAt(t.line, "expected token '%s', got '%s'", what, t.describe())
	}
	return p.next(), nil
}

func (p *parser) expectOp(op string) error {
	if t := p.cur(); !t.isOp(op) {
		return p.failAt(t.line, "expected token '%s', got '%s'", op, t.describe())
	}
	p.next()
	return nil
}

func (p *parser) skipOp(op string) bool {
	if p.cur().isOp(op) {
		p.next()
		return true
	}
	return false
}

func (p *parser) skipName(name string) bool {
	if p.cur().isName(name) {
		p.next()
		return true
	}
	return false
}

// enter goes one level deeper; leave must follow.
func (p *parser) enter() error {
	if p.nest++; p.nest > maxNest {
		return p.failAt(p.cur().line, "nested more than %d levels deep", maxNest)
	}
	return nil
}

func (p *parser) leave() { p.nest-- }

// statements reads statements and text up to one of the end tags, or to the end of the template if
// there are none. The current token is then the name of that tag.
func (p *parser) statements(ends ...string) ([]stmt, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	var body []stmt
	for {
		t := p.cur()
		switch t.kind {
		case tokEOF:
			if len(ends) > 0 {
				return nil, p.failEnd(t.line, "Unexpected end of template.", ends, p.opens)
			}
			return body, nil
		case tokData:
			body = append(body, &textStmt{place(t.line), t.text})
			p.next()
		case tokVarBegin:
			p.next()
			x, err := p.tuple(tupleOptions{cond: true})
			if err != nil {
				return nil, err
			}
			if _, err := p.expect(tokVarEnd, "end of print statement"); err != nil {
				return nil, err
			}
			body = append(body, &printStmt{place(t.line), x})
		case tokBlockBegin:
			p.next()
			for _, end := range ends {
				if p.cur().isName(end) {
					return body, nil
				}
			}
			s, err := p.statement(ends)
			if err != nil {
				return nil, err
			}
			body = append(body, s...)
			if _, err := p.expect(tokBlockEnd, "end of statement block"); err != nil {
				return nil, err
			}
		default:
			return nil, p.failAt(t.line, "unexpected '%s'", t.describe())
		}
	}
}

// failEnd reports a tag or an end of the template where one of ends should be; opens are the tags
// still open.
func (p *parser) failEnd(line int, msg string, ends, opens []string) error {
	if len(ends) > 0 {
		msg += " Jinja was looking for the following tags: '" + strings.Join(ends, "' or '") + "'."
	}
	if n := len(opens); n > 0 {
		msg += " The innermost block that needs to be closed is '" + opens[n-1] + "'."
	}
	return p.failAt(line, "%s", msg)
}

// block reads the rest of a tag and the body after it up to one of the end tags, which becomes the
// current token.
func (p *parser) block(ends ...string) ([]stmt, error) {
	p.skipOp(":") // allowed for the sake of Python habits
	if _, err := p.expect(tokBlockEnd, "end of statement block"); err != nil {
		return nil, err
	}
	return p.statements(ends...)
}

// lastBlock is block for one end tag, which it skips.
func (p *parser) lastBlock(end string) ([]stmt, error) {
	body, err := p.block(end)
	if err == nil {
		p.next()
	}
	return body, err
}

// statement reads what a tag says. ends are the end tags that would have been right, for the error.
func (p *parser) statement(ends []string) ([]stmt, error) {
	t, err := p.expect(tokName, "name")
	if err != nil {
		return nil, p.failAt(t.line, "tag name expected")
	}
	p.opens = append(p.opens, t.text)
	defer func() { p.opens = p.opens[:len(p.opens)-1] }()
	one := func(s stmt, err error) ([]stmt, error) { return []stmt{s}, err }
	at := place(t.line)
	switch t.text {
	case "if":
		return one(p.ifTag(at))
	case "for":
		return one(p.forTag(at))
	case "set":
		return one(p.setTag(at))
	case "macro":
		return one(p.macroTag(at))
	case "call":
		return one(p.callTag(at))
	case "filter":
		return one(p.filterTag(at))
	case "with":
		return one(p.withTag(at))
	case "generation":
		body, err := p.lastBlock("endgeneration")
		return []stmt{&generationStmt{at, body}}, err
	case "break":
		return []stmt{&loopStmt{at, flowBreak}}, nil
	case "continue":
		return []stmt{&loopStmt{at, flowContinue}}, nil
	case "print":
		return p.printTag(at)
	case "include", "import", "from", "extends", "block", "autoescape":
		return nil, &Error{Kind: KindUnsupported, Name: p.name, Line: t.line,
			Msg: "the tag '" + t.text + "' is not supported in chat templates"}
	}
	return nil, p.failEnd(t.line, "Encountered unknown tag "+reprString(t.text)+".", ends, p.opens[:len(p.opens)-1])
}
