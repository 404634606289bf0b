package jinja

// The statements, except loops and macros.

// exec runs statements one after the other until one breaks or continues the loop around them.
func (r *run) exec(body []stmt, sc *scope, out *buffer) (flow, error) {
	if err := r.enter(); err != nil {
		return flowNext, err
	}
	defer r.leave()
	for _, s := range body {
		if err := r.step(1); err != nil {
			return flowNext, at(err, r.name, s.lineNo())
		}
		f, err := s.exec(r, sc, out)
		if err != nil {
			return flowNext, at(err, r.name, s.lineNo())
		}
		if f != flowNext {
			return f, nil
		}
	}
	return flowNext, nil
}

// capture runs body in a scope of its own and returns what it writes.
func (r *run) capture(body []stmt, sc *scope) (string, flow, error) {
	out := &buffer{run: r}
	f, err := r.exec(body, sc, out)
	return out.String(), f, err
}

func (s *textStmt) exec(r *run, _ *scope, out *buffer) (flow, error) {
	return flowNext, out.write(s.text)
}

func (s *printStmt) exec(r *run, sc *scope, out *buffer) (flow, error) {
	v, err := r.value(s.x, sc)
	if err != nil {
		return flowNext, err
	}
	text, err := r.str(v)
	if err != nil {
		return flowNext, err
	}
	return flowNext, out.write(text)
}

func (s *ifStmt) exec(r *run, sc *scope, out *buffer) (flow, error) {
	for i, test := range s.tests {
		v, err := r.value(test, sc)
		if err != nil {
			return flowNext, err
		}
		if truth(v) {
			return r.exec(s.bodies[i], sc, out)
		}
	}
	return r.exec(s.other, sc, out)
}

func (s *setStmt) exec(r *run, sc *scope, _ *buffer) (flow, error) {
	if err := r.checkNamespaces(sc, s.to); err != nil {
		return flowNext, err
	}
	v, err := r.value(s.x, sc)
	if err != nil {
		return flowNext, err
	}
	return flowNext, r.assign(sc, s.to, v)
}

func (s *setBlockStmt) exec(r *run, sc *scope, _ *buffer) (flow, error) {
	inner := sc.inner()
	text, f, err := r.capture(s.body, inner)
	if err != nil || f != flowNext {
		return f, err
	}
	v, err := r.filtered(s.filter, text, inner)
	if err != nil {
		return flowNext, err
	}
	return flowNext, r.assign(sc, s.to, v)
}

func (s *filterStmt) exec(r *run, sc *scope, out *buffer) (flow, error) {
	inner := sc.inner()
	text, f, err := r.capture(s.body, inner)
	if err != nil || f != flowNext {
		return f, err
	}
	v, err := r.filtered(s.filter, text, inner)
	if err != nil {
		return flowNext, err
	}
	t, err := r.str(v)
	if err != nil {
		return flowNext, err
	}
	return flowNext, out.write(t)
}

// filtered applies the filters of a block, of which the innermost gets text.
func (r *run) filtered(filter expr, text string, sc *scope) (Value, error) {
	if filter == nil {
		return text, nil
	}
	const block = " the text of the block" // no variable can have this name
	inner := sc.inner()
	inner.set(block, text)
	return r.value(withInput(filter.(*filterExpr), &nameExpr{filter.(*filterExpr).place, block}), inner)
}

// withInput is the chain f with x as the input of its first filter.
func withInput(f *filterExpr, x expr) *filterExpr {
	c := *f
	if in, ok := f.in.(*filterExpr); ok {
		c.in = withInput(in, x)
	} else {
		c.in = x
	}
	return &c
}

func (s *withStmt) exec(r *run, sc *scope, out *buffer) (flow, error) {
	inner := sc.inner()
	for i, to := range s.to {
		v, err := r.value(s.vals[i], sc)
		if err != nil {
			return flowNext, err
		}
		if err := r.assign(inner, to, v); err != nil {
			return flowNext, err
		}
	}
	return r.exec(s.body, inner, out)
}

// A generation block marks the text that the model wrote. It renders as its body, in a scope of its
// own.
func (s *generationStmt) exec(r *run, sc *scope, out *buffer) (flow, error) {
	return r.exec(s.body, sc.inner(), out)
}

func (s *loopStmt) exec(*run, *scope, *buffer) (flow, error) { return s.flow, nil }
