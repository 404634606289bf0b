package jinja

import "strings"

// Expressions, loosest binding first: inline if, or, and, not, comparison, + -, ~, * / // %, **,
// unary, postfix.

// tupleOptions say how a tuple without brackets is read.
type tupleOptions struct {
	cond      bool   // inline if is allowed
	simple    bool   // names and literals only, as on the left of an assignment
	namespace bool   // and attributes of namespaces
	end       string // a name that ends the tuple
	parens    bool   // inside parentheses, where it may be empty
}

// tuple reads an expression, or several with commas between as a tuple.
func (p *parser) tuple(o tupleOptions) (expr, error) {
	line := p.cur().line
	var items []expr
	comma := false
	for {
		if t := p.cur(); t.kind == tokVarEnd || t.kind == tokBlockEnd || t.isOp(")") || o.end != "" && t.isName(o.end) {
			break
		}
		x, err := p.tupleItem(o)
		if err != nil {
			return nil, err
		}
		items = append(items, x)
		if !p.skipOp(",") {
			break
		}
		comma = true
	}
	if !comma {
		if len(items) > 0 {
			return items[0], nil
		}
		if !o.parens {
			return nil, p.failAt(p.cur().line, "Expected an expression, got '%s'", p.cur().describe())
		}
	}
	return &tupleExpr{place(line), items}, nil
}

func (p *parser) tupleItem(o tupleOptions) (expr, error) {
	switch {
	case o.simple:
		return p.primary(o.namespace)
	case o.cond || o.parens:
		return p.expression()
	}
	return p.or()
}

func (p *parser) expression() (expr, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	line := p.cur().line
	x, err := p.or()
	for err == nil && p.skipName("if") {
		c := &condExpr{place: place(line), then: x}
		if c.test, err = p.or(); err != nil {
			break
		}
		if p.skipName("else") {
			c.other, err = p.expression()
		}
		x = c
	}
	return x, err
}

func (p *parser) or() (expr, error)  { return p.logic("or", p.and) }
func (p *parser) and() (expr, error) { return p.logic("and", p.not) }

func (p *parser) logic(word string, sub func() (expr, error)) (expr, error) {
	line := p.cur().line
	x, err := sub()
	for err == nil && p.skipName(word) {
		var y expr
		y, err = sub()
		x = &logicExpr{place(line), word == "or", x, y}
	}
	return x, err
}

func (p *parser) not() (expr, error) {
	t := p.cur()
	if !p.skipName("not") {
		return p.compare()
	}
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	x, err := p.not()
	return &unaryExpr{place(t.line), "not", x}, err
}

// compareOp reads a comparison operator, or returns "".
func (p *parser) compareOp() string {
	t := p.cur()
	switch {
	case t.kind == tokOp:
		switch t.text {
		case "==", "!=", "<", "<=", ">", ">=":
			return p.next().text
		}
	case t.isName("in"):
		return p.next().text
	case t.isName("not") && p.look().isName("in"):
		p.next()
		p.next()
		return "notin"
	}
	return ""
}

func (p *parser) compare() (expr, error) {
	line := p.cur().line
	x, err := p.sum()
	if err != nil {
		return nil, err
	}
	var rest []operand
	for op := p.compareOp(); op != ""; op = p.compareOp() {
		y, err := p.sum()
		if err != nil {
			return nil, err
		}
		rest = append(rest, operand{op, y})
	}
	if rest == nil {
		return x, nil
	}
	return &compareExpr{place(line), x, rest}, nil
}

func (p *parser) sum() (expr, error)     { return p.binary(p.concat, "+", "-") }
func (p *parser) product() (expr, error) { return p.binary(p.power, "*", "/", "//", "%") }
func (p *parser) power() (expr, error) {
	return p.binary(func() (expr, error) { return p.unary(true) }, "**")
}

// binary reads a chain of operators that associate to the left; ** does too, as in the reference.
func (p *parser) binary(sub func() (expr, error), ops ...string) (expr, error) {
	line := p.cur().line
	x, err := sub()
	for err == nil {
		op := ""
		for _, o := range ops {
			if p.cur().isOp(o) {
				op = o
			}
		}
		if op == "" {
			break
		}
		p.next()
		var y expr
		y, err = sub()
		x = &binaryExpr{place(line), op, x, y}
	}
	return x, err
}

func (p *parser) concat() (expr, error) {
	line := p.cur().line
	x, err := p.product()
	if err != nil || !p.cur().isOp("~") {
		return x, err
	}
	parts := []expr{x}
	for p.skipOp("~") {
		if x, err = p.product(); err != nil {
			return nil, err
		}
		parts = append(parts, x)
	}
	return &concatExpr{place(line), parts}, nil
}

// unary reads signs, a primary and what follows it. filters tells whether filters and tests may
// follow.
func (p *parser) unary(filters bool) (expr, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	t := p.cur()
	var x expr
	var err error
	if t.isOp("-") || t.isOp("+") {
		p.next()
		if x, err = p.unary(false); err == nil {
			x = &unaryExpr{place(t.line), t.text, x}
		}
	} else {
		x, err = p.primary(false)
	}
	if err == nil {
		x, err = p.postfix(x)
	}
	if err == nil && filters {
		x, err = p.filtersAndTests(x)
	}
	return x, err
}

// isConstName reports whether name is a constant and can be no variable.
func isConstName(name string) bool {
	switch name {
	case "true", "false", "none", "True", "False", "None":
		return true
	}
	return false
}

// primary reads a name, a literal or something in brackets.
func (p *parser) primary(namespace bool) (expr, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	t := p.cur()
	at := place(t.line)
	switch t.kind {
	case tokName:
		p.next()
		return p.nameOrConst(t, namespace)
	case tokString:
		var b strings.Builder // adjacent literals are one
		for p.cur().kind == tokString {
			b.WriteString(p.next().text)
		}
		return &constExpr{at, b.String()}, nil
	case tokInt, tokFloat:
		p.next()
		return &constExpr{at, t.val}, nil
	case tokOp:
		switch t.text {
		case "(":
			p.next()
			x, err := p.tuple(tupleOptions{parens: true})
			if err == nil {
				err = p.expectOp(")")
			}
			return x, err
		case "[":
			return p.listLiteral()
		case "{":
			return p.dictLiteral()
		}
	}
	return nil, p.failAt(t.line, "unexpected '%s'", t.describe())
}

func (p *parser) nameOrConst(t token, namespace bool) (expr, error) {
	at := place(t.line)
	switch {
	case t.text == "none" || t.text == "None":
		return &constExpr{at, nil}, nil
	case isConstName(t.text):
		return &constExpr{at, t.text == "true" || t.text == "True"}, nil
	case namespace && p.skipOp("."):
		attr, err := p.expect(tokName, "name")
		return &nsRefExpr{at, t.text, attr.text}, err
	}
	p.useName(t.text)
	return &nameExpr{at, t.text}, nil
}

// sequence reads items with commas between, a last one allowed, up to the bracket end.
func (p *parser) sequence(end string, item func() error) error {
	p.next()
	for n := 0; !p.cur().isOp(end); n++ {
		if n > 0 {
			if err := p.expectOp(","); err != nil {
				return err
			}
			if p.cur().isOp(end) {
				break
			}
		}
		if err := item(); err != nil {
			return err
		}
	}
	p.next()
	return nil
}

func (p *parser) listLiteral() (expr, error) {
	l := &listExpr{place: place(p.cur().line)}
	return l, p.sequence("]", func() error {
		x, err := p.expression()
		l.items = append(l.items, x)
		return err
	})
}

func (p *parser) dictLiteral() (expr, error) {
	d := &dictExpr{place: place(p.cur().line)}
	return d, p.sequence("}", func() error {
		k, err := p.expression()
		if err != nil {
			return err
		}
		if err := p.expectOp(":"); err != nil {
			return err
		}
		v, err := p.expression()
		d.keys, d.vals = append(d.keys, k), append(d.vals, v)
		return err
	})
}
