package jinja

// The tags, each parsed from after its name on.

func (p *parser) ifTag(at place) (stmt, error) {
	s := &ifStmt{place: at}
	for {
		test, err := p.tuple(tupleOptions{})
		if err != nil {
			return nil, err
		}
		body, err := p.block("elif", "else", "endif")
		if err != nil {
			return nil, err
		}
		s.tests, s.bodies = append(s.tests, test), append(s.bodies, body)
		switch p.next().text {
		case "else":
			s.other, err = p.lastBlock("endif")
			return s, err
		case "endif":
			return s, nil
		}
	}
}

func (p *parser) forTag(at place) (stmt, error) {
	s := &forStmt{place: at}
	var err error
	if s.to, err = p.target(tupleOptions{end: "in"}); err != nil {
		return nil, err
	}
	if t := p.cur(); !p.skipName("in") {
		return nil, p.failAt(t.line, "expected token 'in', got '%s'", t.describe())
	}
	if s.iter, err = p.tuple(tupleOptions{end: "recursive"}); err != nil {
		return nil, err
	}
	if p.skipName("if") {
		if s.filter, err = p.expression(); err != nil {
			return nil, err
		}
	}
	s.recursive = p.skipName("recursive")
	if s.body, err = p.block("endfor", "else"); err != nil {
		return nil, err
	}
	if p.next().text == "else" {
		s.other, err = p.lastBlock("endfor")
	}
	return s, err
}

func (p *parser) setTag(at place) (stmt, error) {
	to, err := p.target(tupleOptions{namespace: true})
	if err != nil {
		return nil, err
	}
	if p.skipOp("=") {
		x, err := p.tuple(tupleOptions{cond: true})
		return &setStmt{at, to, x}, err
	}
	filter, err := p.filters(nil, false)
	if err != nil {
		return nil, err
	}
	body, err := p.lastBlock("endset")
	return &setBlockStmt{at, to, filter, body}, err
}

func (p *parser) macroTag(at place) (stmt, error) {
	name, err := p.storeName()
	if err != nil {
		return nil, err
	}
	def := &macroDef{name: name}
	if err := p.signature(def); err != nil {
		return nil, err
	}
	return &macroStmt{at, def}, p.macroBody(at, def, "endmacro")
}

func (p *parser) callTag(at place) (stmt, error) {
	def := &macroDef{}
	if p.cur().isOp("(") {
		if err := p.signature(def); err != nil {
			return nil, err
		}
	}
	x, err := p.expression()
	if err != nil {
		return nil, err
	}
	call, ok := x.(*callExpr)
	if !ok {
		return nil, p.failAt(int(at), "expected call")
	}
	return &callStmt{at, def, call}, p.macroBody(at, def, "endcall")
}

// signature reads the parameters of a macro.
func (p *parser) signature(def *macroDef) error {
	if err := p.expectOp("("); err != nil {
		return err
	}
	for !p.cur().isOp(")") {
		if len(def.params) > 0 {
			if err := p.expectOp(","); err != nil {
				return err
			}
		}
		line := p.cur().line
		name, err := p.storeName()
		if err != nil {
			return err
		}
		for _, other := range def.params {
			if other == name {
				return p.failAt(line, "duplicate argument '%s' in function definition", name)
			}
		}
		def.params = append(def.params, name)
		if p.skipOp("=") {
			x, err := p.expression()
			if err != nil {
				return err
			}
			def.defaults = append(def.defaults, x)
		} else if len(def.defaults) > 0 {
			return p.failAt(line, "non-default argument follows default argument")
		}
	}
	p.next()
	return nil
}

// specialNames tells which of the names that a macro gets on demand its body reads before setting
// them.
type specialNames struct{ used, set map[string]bool }

func isSpecial(name string) bool { return name == "caller" || name == "varargs" || name == "kwargs" }

// useName and setName note a name for the macros around it.
func (p *parser) useName(name string) {
	for _, u := range p.uses {
		if isSpecial(name) && !u.set[name] {
			u.used[name] = true
		}
	}
}

func (p *parser) setName(name string) {
	for _, u := range p.uses {
		if isSpecial(name) && !u.used[name] {
			u.set[name] = true
		}
	}
}

// macroBody reads the body of def up to the tag end.
func (p *parser) macroBody(at place, def *macroDef, end string) (err error) {
	u := &specialNames{map[string]bool{}, map[string]bool{}}
	p.uses = append(p.uses, u)
	def.body, err = p.lastBlock(end)
	p.uses = p.uses[:len(p.uses)-1]
	if err != nil {
		return err
	}
	has := func(name string) bool { return def.paramIndex(name) >= 0 }
	def.usesCaller = u.used["caller"]
	def.usesVarargs = u.used["varargs"] && !has("varargs")
	def.usesKwargs = u.used["kwargs"] && !has("kwargs")
	if i := def.paramIndex("caller"); def.usesCaller && i >= 0 && i < len(def.params)-len(def.defaults) {
		return &Error{Kind: KindAssertion, Name: p.name, Line: int(at),
			Msg: `When defining macros or call blocks the special "caller" argument must be omitted or be given a default.`}
	}
	return nil
}

// paramIndex is the place of a parameter, or -1.
func (d *macroDef) paramIndex(name string) int {
	for i, param := range d.params {
		if param == name {
			return i
		}
	}
	return -1
}

func (p *parser) filterTag(at place) (stmt, error) {
	filter, err := p.filters(nil, true)
	if err != nil {
		return nil, err
	}
	body, err := p.lastBlock("endfilter")
	return &filterStmt{at, filter, body}, err
}

func (p *parser) withTag(at place) (stmt, error) {
	s := &withStmt{place: at}
	for p.cur().kind != tokBlockEnd {
		if len(s.to) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, err
			}
		}
		to, err := p.target(tupleOptions{})
		if err != nil {
			return nil, err
		}
		if err := p.expectOp("="); err != nil {
			return nil, err
		}
		x, err := p.expression()
		if err != nil {
			return nil, err
		}
		s.to, s.vals = append(s.to, to), append(s.vals, x)
	}
	var err error
	s.body, err = p.lastBlock("endwith")
	return s, err
}

func (p *parser) printTag(at place) ([]stmt, error) {
	var out []stmt
	for p.cur().kind != tokBlockEnd {
		if len(out) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, err
			}
		}
		x, err := p.expression()
		if err != nil {
			return nil, err
		}
		out = append(out, &printStmt{at, x})
	}
	return out, nil
}

// storeName reads one name that is assigned to.
func (p *parser) storeName() (string, error) {
	t, err := p.expect(tokName, "name")
	if err != nil {
		return "", err
	}
	if isConstName(t.text) {
		return "", p.failAt(t.line, "can't assign to 'name'")
	}
	p.setName(t.text)
	return t.text, nil
}

// target reads what a tag assigns to.
func (p *parser) target(o tupleOptions) (target, error) {
	o.simple = true
	n := len(p.uses)
	p.uses = p.uses[:0] // what is read here is set, not used
	x, err := p.tuple(o)
	p.uses = p.uses[:n]
	if err != nil {
		return target{}, err
	}
	return p.asTarget(x)
}

// asTarget takes an expression as something to assign to.
func (p *parser) asTarget(x expr) (target, error) {
	what := "operation"
	switch x := x.(type) {
	case *nameExpr:
		p.setName(x.name)
		return target{place: x.place, name: x.name}, nil
	case *nsRefExpr:
		return target{place: x.place, name: x.name, attr: x.attr}, nil
	case *tupleExpr:
		t := target{place: x.place, items: make([]target, 0, len(x.items))}
		for _, item := range x.items {
			to, err := p.asTarget(item)
			if err != nil {
				return t, err
			}
			t.items = append(t.items, to)
		}
		return t, nil
	case *constExpr:
		what = "const"
	case *listExpr:
		what = "list"
	case *dictExpr:
		what = "dict"
	}
	return target{}, p.failAt(x.lineNo(), "can't assign to '%s'", what)
}
