package jinja

// What follows a primary expression: attributes, subscripts, calls, filters, tests.

func (p *parser) postfix(x expr) (expr, error) {
	var err error
	for err == nil && p.cur().kind == tokOp {
		switch p.cur().text {
		case ".":
			x, err = p.attribute(x)
		case "[":
			x, err = p.subscript(x)
		case "(":
			x, err = p.call(x)
		default:
			return x, nil
		}
	}
	return x, err
}

func (p *parser) filtersAndTests(x expr) (expr, error) {
	var err error
	for err == nil {
		switch t := p.cur(); {
		case t.isOp("|"):
			x, err = p.filters(x, false)
		case t.isName("is"):
			x, err = p.test(x)
		case t.isOp("("):
			x, err = p.call(x)
		default:
			return x, nil
		}
	}
	return x, err
}

func (p *parser) attribute(x expr) (expr, error) {
	at := place(p.next().line)
	switch t := p.next(); t.kind {
	case tokName:
		return &attrExpr{at, x, t.text}, nil
	case tokInt:
		return &itemExpr{at, x, &constExpr{place(t.line), t.val}}, nil
	default:
		return nil, p.failAt(t.line, "expected name or number")
	}
}

// subscript reads what stands in square brackets: an expression, several as a tuple, or a slice.
func (p *parser) subscript(x expr) (expr, error) {
	at := place(p.next().line)
	var items []expr
	for !p.cur().isOp("]") {
		if len(items) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, err
			}
		}
		item, slice, err := p.subscribed(x, at)
		if err != nil {
			return nil, err
		}
		if slice != nil {
			if len(items) > 0 || !p.skipOp("]") {
				return nil, p.failAt(int(at), "a slice must be the only subscript")
			}
			return slice, nil
		}
		items = append(items, item)
	}
	p.next()
	if len(items) == 1 {
		return &itemExpr{at, x, items[0]}, nil
	}
	return &itemExpr{at, x, &tupleExpr{at, items}}, nil
}

// subscribed reads one subscript of x: an expression, or a slice.
func (p *parser) subscribed(x expr, at place) (expr, *sliceExpr, error) {
	s := &sliceExpr{place: at, obj: x}
	var err error
	if !p.cur().isOp(":") {
		if s.start, err = p.expression(); err != nil || !p.cur().isOp(":") {
			return s.start, nil, err
		}
	}
	p.next()
	part := func() (expr, error) {
		if p.cur().isOp(":") || p.cur().isOp("]") || p.cur().isOp(",") {
			return nil, nil
		}
		return p.expression()
	}
	if s.stop, err = part(); err != nil {
		return nil, nil, err
	}
	if p.skipOp(":") {
		s.step, err = part()
	}
	return nil, s, err
}

func (p *parser) call(x expr) (expr, error) {
	at := place(p.cur().line)
	args, err := p.callArgs()
	return &callExpr{at, x, args}, err
}

// callArgs reads arguments in parentheses: positional, then *star and keywords, then **dict.
func (p *parser) callArgs() (callArgs, error) {
	var a callArgs
	line := p.cur().line
	err := p.sequence(")", func() error {
		var err error
		wrong := false
		switch {
		case p.skipOp("*"):
			wrong = a.star != nil || a.dict != nil
			a.star, err = p.expression()
		case p.skipOp("**"):
			wrong = a.dict != nil
			a.dict, err = p.expression()
		case p.cur().kind == tokName && p.look().isOp("="):
			wrong = a.dict != nil
			name := p.next().text
			p.next()
			for _, k := range a.kw {
				if k.name == name {
					return p.failAt(line, "keyword argument repeated: %s", name)
				}
			}
			var v expr
			v, err = p.expression()
			a.kw = append(a.kw, kwExpr{name, v})
		default:
			wrong = a.star != nil || a.dict != nil || len(a.kw) > 0
			var v expr
			v, err = p.expression()
			a.pos = append(a.pos, v)
		}
		if err == nil && wrong {
			err = p.failAt(line, "invalid syntax for function call expression")
		}
		return err
	})
	return a, err
}

// dotted reads the name of a filter or a test.
func (p *parser) dotted() (string, error) {
	t, err := p.expect(tokName, "name")
	name := t.text
	for err == nil && p.skipOp(".") {
		t, err = p.expect(tokName, "name")
		name += "." + t.text
	}
	return name, err
}

// filters reads a chain of filters on x, which is nil for a block. inline tells that the first has
// no bar before it.
func (p *parser) filters(x expr, inline bool) (expr, error) {
	for inline || p.cur().isOp("|") {
		if !inline {
			p.next()
		}
		inline = false
		f := &filterExpr{place: place(p.cur().line), in: x}
		var err error
		if f.name, err = p.dotted(); err != nil {
			return nil, err
		}
		if p.cur().isOp("(") {
			if f.args, err = p.callArgs(); err != nil {
				return nil, err
			}
		}
		x = f
	}
	return x, nil
}

// test reads what follows x from "is" on.
func (p *parser) test(x expr) (expr, error) {
	at := place(p.next().line)
	negated := p.skipName("not")
	t := &testExpr{place: at, in: x}
	var err error
	if t.name, err = p.dotted(); err != nil {
		return nil, err
	}
	switch {
	case p.cur().isOp("("):
		t.args, err = p.callArgs()
	case p.cur().isName("is"):
		err = p.failAt(p.cur().line, "You cannot chain multiple tests with is")
	case p.startsTestArg():
		var arg expr
		if arg, err = p.primary(false); err == nil {
			arg, err = p.postfix(arg)
		}
		t.args.pos = []expr{arg}
	}
	if negated {
		return &unaryExpr{at, "not", t}, err
	}
	return t, err
}

// startsTestArg reports whether an argument without parentheses follows a test.
func (p *parser) startsTestArg() bool {
	t := p.cur()
	switch t.kind {
	case tokName:
		return t.text != "else" && t.text != "or" && t.text != "and"
	case tokString, tokInt, tokFloat:
		return true
	}
	return t.isOp("[") || t.isOp("{")
}
