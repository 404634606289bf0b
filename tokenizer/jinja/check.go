package jinja

import "fmt"

// maxTreeDepth bounds the depth of the tree, which chains of operators make deeper than the source
// is nested.
const maxTreeDepth = 2000

// checker looks through a tree for what the parser lets pass and rendering should not meet.
type checker struct {
	name  string
	depth int
}

// context is what surrounds a node. In a soft one, which may never run, an unknown filter is no
// error until it does.
type context struct {
	soft   bool
	inLoop bool // break and continue are allowed
	inFor  bool // in any for loop, through macros too
}

func (c context) with(soft bool) context {
	c.soft = soft
	return c
}

func (c *checker) failAt(n interface{ lineNo() int }, kind Kind, format string, args ...any) error {
	return &Error{Kind: kind, Name: c.name, Line: n.lineNo(), Msg: fmt.Sprintf(format, args...)}
}

func (c *checker) stmts(body []stmt, ctx context) error {
	for _, s := range body {
		if err := c.stmt(s, ctx); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) stmt(s stmt, ctx context) error {
	hard := ctx.with(false)
	switch s := s.(type) {
	case *printStmt:
		return c.exprs(ctx.soft, s.x)
	case *ifStmt:
		soft := ctx.with(true)
		for i, test := range s.tests {
			if err := c.both(c.exprs(true, test), c.stmts(s.bodies[i], soft)); err != nil {
				return err
			}
		}
		return c.stmts(s.other, soft)
	case *forStmt:
		return c.forStmt(s, ctx)
	case *setStmt:
		return c.both(c.target(s.to, ctx), c.exprs(ctx.soft, s.x))
	case *setBlockStmt:
		return c.both(c.target(s.to, ctx), c.exprs(false, s.filter), c.stmts(s.body, hard))
	case *macroStmt:
		return c.macro(s.def, ctx)
	case *callStmt:
		return c.both(c.macro(s.caller, ctx), c.exprs(ctx.soft, s.call))
	case *filterStmt:
		return c.both(c.exprs(false, s.filter), c.stmts(s.body, hard))
	case *withStmt:
		return c.both(c.exprs(ctx.soft, s.vals...), c.stmts(s.body, hard))
	case *generationStmt:
		return c.stmts(s.body, context{inFor: ctx.inFor})
	case *loopStmt:
		if !ctx.inLoop {
			return c.failAt(s, KindSyntax, "break or continue outside of a loop")
		}
	}
	return nil
}

// both returns the first error.
func (c *checker) both(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) forStmt(s *forStmt, ctx context) error {
	loop := context{inLoop: true, inFor: true}
	other := ctx.with(false)
	other.inFor = true
	return c.both(c.target(s.to, loop), c.exprs(ctx.soft, s.iter), c.exprs(false, s.filter),
		c.stmts(s.body, loop), c.stmts(s.other, other))
}

func (c *checker) macro(m *macroDef, ctx context) error {
	return c.both(c.exprs(false, m.defaults...), c.stmts(m.body, context{inFor: ctx.inFor}))
}

func (c *checker) target(t target, ctx context) error {
	if ctx.inFor && t.name == "loop" && t.attr == "" {
		return c.failAt(t, KindAssertion, "Can't assign to special loop variable in for-loop target")
	}
	for _, item := range t.items {
		if err := c.target(item, ctx); err != nil {
			return err
		}
	}
	return nil
}

// exprs checks expressions; those that are nil are left out.
func (c *checker) exprs(soft bool, list ...expr) error {
	for _, x := range list {
		if x == nil {
			continue
		}
		c.depth++
		if c.depth > maxTreeDepth {
			return c.failAt(x, KindSyntax, "an expression more than %d levels deep", maxTreeDepth)
		}
		if err := c.expr(soft, x); err != nil {
			return err
		}
		c.depth--
	}
	return nil
}

func (c *checker) expr(soft bool, x expr) error {
	switch x := x.(type) {
	case *attrExpr:
		return c.exprs(soft, x.obj)
	case *itemExpr:
		return c.exprs(soft, x.obj, x.arg)
	case *sliceExpr:
		return c.exprs(soft, x.obj, x.start, x.stop, x.step)
	case *callExpr:
		return c.both(c.exprs(soft, x.fn), c.args(soft, x.args))
	case *filterExpr:
		if _, ok := filters[x.name]; !ok && !soft {
			return c.failAt(x, unknownKind(unsupportedFilters, x.name), "%s", unknownFilter(x.name))
		}
		return c.both(c.exprs(soft, x.in), c.args(soft, x.args))
	case *testExpr:
		if _, ok := tests[x.name]; !ok && !soft {
			return c.failAt(x, KindAssertion, "No test named %s.", reprString(x.name))
		}
		return c.both(c.exprs(soft, x.in), c.args(soft, x.args))
	case *unaryExpr:
		return c.exprs(soft, x.x)
	case *binaryExpr:
		return c.exprs(soft, x.l, x.r)
	case *logicExpr:
		return c.exprs(soft, x.l, x.r)
	case *compareExpr:
		err := c.exprs(soft, x.first)
		for _, o := range x.rest {
			err = c.both(err, c.exprs(soft, o.x))
		}
		return err
	case *concatExpr:
		return c.exprs(soft, x.parts...)
	case *condExpr:
		return c.exprs(true, x.test, x.then, x.other)
	case *tupleExpr:
		return c.exprs(soft, x.items...)
	case *listExpr:
		return c.exprs(soft, x.items...)
	case *dictExpr:
		return c.both(c.exprs(soft, x.keys...), c.exprs(soft, x.vals...))
	}
	return nil
}

func (c *checker) args(soft bool, a callArgs) error {
	err := c.both(c.exprs(soft, a.pos...), c.exprs(soft, a.star, a.dict))
	for _, k := range a.kw {
		err = c.both(err, c.exprs(soft, k.x))
	}
	return err
}
