package jinja

// value computes x.
func (r *run) value(x expr, sc *scope) (Value, error) {
	if err := r.step(1); err != nil {
		return nil, at(err, r.name, x.lineNo())
	}
	if err := r.enter(); err != nil {
		return nil, at(err, r.name, x.lineNo())
	}
	v, err := x.eval(r, sc)
	r.leave()
	if err != nil {
		return nil, at(err, r.name, x.lineNo())
	}
	return v, nil
}

// values computes several expressions.
func (r *run) values(xs []expr, sc *scope) ([]Value, error) {
	if len(xs) == 0 {
		return nil, nil
	}
	out := make([]Value, len(xs))
	for i, x := range xs {
		v, err := r.value(x, sc)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

func (x *constExpr) eval(*run, *scope) (Value, error) { return x.val, nil }

func (x *nameExpr) eval(r *run, sc *scope) (Value, error) { return r.variable(sc, x.name), nil }

// The parser keeps these to the left side of assignments.
func (x *nsRefExpr) eval(*run, *scope) (Value, error) {
	panic("jinja: an assignment target was evaluated")
}

func (x *attrExpr) eval(r *run, sc *scope) (Value, error) {
	obj, err := r.value(x.obj, sc)
	if err != nil {
		return nil, err
	}
	return r.getAttr(obj, x.name)
}

func (x *itemExpr) eval(r *run, sc *scope) (Value, error) {
	obj, err := r.value(x.obj, sc)
	if err != nil {
		return nil, err
	}
	arg, err := r.value(x.arg, sc)
	if err != nil {
		return nil, err
	}
	return r.getItem(obj, arg)
}

func (x *sliceExpr) eval(r *run, sc *scope) (Value, error) {
	obj, err := r.value(x.obj, sc)
	if err != nil {
		return nil, err
	}
	var bounds [3]Value // nil where nothing is given, which is None
	for i, b := range []expr{x.start, x.stop, x.step} {
		if b == nil {
			continue
		}
		if bounds[i], err = r.value(b, sc); err != nil {
			return nil, err
		}
	}
	return r.slice(obj, bounds)
}

func (x *callExpr) eval(r *run, sc *scope) (Value, error) { return r.call(x, sc, nil) }

// call evaluates a call. caller, if there is one, is the body of the call block around it.
func (r *run) call(x *callExpr, sc *scope, caller *macro) (Value, error) {
	fn, err := r.value(x.fn, sc)
	if err != nil {
		return nil, err
	}
	a, err := r.arguments(x.args, sc)
	if err != nil {
		return nil, err
	}
	if caller != nil {
		for _, k := range a.kw {
			if k.name == "caller" {
				return nil, typeErr("got multiple values for keyword argument 'caller'")
			}
		}
		a.kw = append(a.kw, keyword{"caller", caller})
	}
	return r.apply(fn, a)
}

// apply calls fn.
func (r *run) apply(fn Value, a arguments) (Value, error) {
	if err := r.enter(); err != nil {
		return nil, err
	}
	defer r.leave()
	switch fn := fn.(type) {
	case *method:
		return fn.fn(r, fn.recv, a)
	case *function:
		return fn.fn(r, a)
	case *macro:
		return fn.call(r, a)
	case *joiner:
		return fn.call(), nil
	case *loopContext:
		v, err := a.bind("loop", 1, "iterable")
		if err != nil {
			return nil, err
		}
		if fn.again == nil {
			return nil, typeErr("The loop must have the 'recursive' marker to be called recursively.")
		}
		return fn.again(r, v[0], fn.depth0+1)
	case *undefined:
		return nil, fn.fail()
	}
	return nil, typeErr("'%s' object is not callable", typeName(fn))
}

// arguments computes the arguments of a call.
func (r *run) arguments(c callArgs, sc *scope) (arguments, error) {
	var a arguments
	var err error
	if a.pos, err = r.values(c.pos, sc); err != nil {
		return a, err
	}
	if c.star != nil {
		v, err := r.value(c.star, sc)
		if err != nil {
			return a, err
		}
		items, err := r.items(v)
		if err != nil {
			return a, err
		}
		a.pos = append(a.pos, items...)
	}
	for _, k := range c.kw {
		v, err := r.value(k.x, sc)
		if err != nil {
			return a, err
		}
		a.kw = append(a.kw, keyword{k.name, v})
	}
	if c.dict == nil {
		return a, nil
	}
	v, err := r.value(c.dict, sc)
	if err != nil {
		return a, err
	}
	return a, r.addKeywords(&a, v)
}

// addKeywords adds what **v gives.
func (r *run) addKeywords(a *arguments, v Value) error {
	d, ok := v.(*Dict)
	if !ok {
		return typeErr("argument after ** must be a mapping, not %s", typeName(v))
	}
	for _, e := range d.entries {
		name, ok := asString(e.key)
		if !ok {
			return typeErr("keywords must be strings")
		}
		for _, k := range a.kw {
			if k.name == name {
				return typeErr("got multiple values for keyword argument %s", reprString(name))
			}
		}
		a.kw = append(a.kw, keyword{name, e.val})
	}
	return r.step(len(d.entries) * len(a.kw))
}

func (x *filterExpr) eval(r *run, sc *scope) (Value, error) {
	in, err := r.value(x.in, sc)
	if err != nil {
		return nil, err
	}
	a, err := r.arguments(x.args, sc)
	if err != nil {
		return nil, err
	}
	if filters[x.name] == nil && !unsupportedFilters[x.name] {
		return nil, fail(KindRuntime, "No filter named %s found.", reprString(x.name))
	}
	return r.filter(x.name, in, a)
}

func (x *testExpr) eval(r *run, sc *scope) (Value, error) {
	in, err := r.value(x.in, sc)
	if err != nil {
		return nil, err
	}
	a, err := r.arguments(x.args, sc)
	if err != nil {
		return nil, err
	}
	if _, ok := tests[x.name]; !ok {
		return nil, fail(KindRuntime, "No test named %s found.", reprString(x.name))
	}
	return r.test(x.name, in, a)
}

func (x *unaryExpr) eval(r *run, sc *scope) (Value, error) {
	v, err := r.value(x.x, sc)
	if err != nil {
		return nil, err
	}
	if x.op == "not" {
		return !truth(v), nil
	}
	return r.unary(x.op, v)
}

func (x *binaryExpr) eval(r *run, sc *scope) (Value, error) {
	a, err := r.value(x.l, sc)
	if err != nil {
		return nil, err
	}
	b, err := r.value(x.r, sc)
	if err != nil {
		return nil, err
	}
	return r.binary(x.op, a, b)
}

func (x *logicExpr) eval(r *run, sc *scope) (Value, error) {
	v, err := r.value(x.l, sc)
	if err != nil {
		return nil, err
	}
	if truth(v) == x.or {
		return v, nil
	}
	return r.value(x.r, sc)
}

func (x *compareExpr) eval(r *run, sc *scope) (Value, error) {
	a, err := r.value(x.first, sc)
	if err != nil {
		return nil, err
	}
	for _, o := range x.rest {
		b, err := r.value(o.x, sc)
		if err != nil {
			return nil, err
		}
		yes, err := r.compare(o.op, a, b)
		if !yes || err != nil {
			return false, err
		}
		a = b
	}
	return true, nil
}

func (x *concatExpr) eval(r *run, sc *scope) (Value, error) {
	out := &buffer{run: r}
	for _, part := range x.parts {
		v, err := r.value(part, sc)
		if err != nil {
			return nil, err
		}
		s, err := r.str(v)
		if err != nil {
			return nil, err
		}
		if err := out.write(s); err != nil {
			return nil, err
		}
	}
	return out.String(), nil
}

func (x *condExpr) eval(r *run, sc *scope) (Value, error) {
	v, err := r.value(x.test, sc)
	if err != nil {
		return nil, err
	}
	switch {
	case truth(v):
		return r.value(x.then, sc)
	case x.other != nil:
		return r.value(x.other, sc)
	}
	return undefinedHint("the inline if-expression evaluated to false and no else section was defined."), nil
}

func (x *tupleExpr) eval(r *run, sc *scope) (Value, error) {
	items, err := r.values(x.items, sc)
	if err == nil {
		err = r.chargeItems(len(items))
	}
	return &Tuple{items: items}, err
}

func (x *listExpr) eval(r *run, sc *scope) (Value, error) {
	return r.newList(r.values(x.items, sc))
}

func (x *dictExpr) eval(r *run, sc *scope) (Value, error) {
	d := NewDict()
	for i := range x.keys {
		k, err := r.value(x.keys[i], sc)
		if err != nil {
			return nil, err
		}
		v, err := r.value(x.vals[i], sc)
		if err != nil {
			return nil, err
		}
		hash, err := r.keyOf(k)
		if err != nil {
			return nil, err
		}
		d.put(k, hash, v)
	}
	return d, r.chargeItems(2 * d.Len())
}
