package jinja

// scope holds the variables set between two tags. Loops, macros and the like open one; if does not.
type scope struct {
	parent *scope
	names  []string
	vals   []Value
}

func (s *scope) inner() *scope { return &scope{parent: s} }

func (s *scope) get(name string) (Value, bool) {
	for ; s != nil; s = s.parent {
		for i, n := range s.names {
			if n == name {
				return s.vals[i], true
			}
		}
	}
	return nil, false
}

func (s *scope) set(name string, v Value) {
	for i, n := range s.names {
		if n == name {
			s.vals[i] = v
			return
		}
	}
	s.names, s.vals = append(s.names, name), append(s.vals, v)
}

// variable is the value of a name: of a tag, of the caller, of the language, in that order.
func (r *run) variable(sc *scope, name string) Value {
	if v, ok := sc.get(name); ok {
		return v
	}
	if v, ok := r.vars.Get(name); ok {
		return v
	}
	if f, ok := globals[name]; ok {
		return f
	}
	return undefinedName(name)
}

// assign gives v to a target, item by item to several.
func (r *run) assign(sc *scope, to target, v Value) error {
	switch {
	case to.attr != "":
		ns, err := r.namespaceOf(sc, to)
		if err != nil {
			return err
		}
		ns.attrs.Set(to.attr, v)
		return r.charge(len(to.attr) + itemBytes)
	case to.items == nil:
		sc.set(to.name, v)
		return nil
	}
	it, err := r.iter(v)
	if err != nil {
		return typeErr("cannot unpack non-iterable %s object", typeName(v))
	}
	for n, item := range to.items {
		x, ok, err := it.next(r)
		if err != nil {
			return err
		}
		if !ok {
			return fail(KindValue, "not enough values to unpack (expected %d, got %d)", len(to.items), n)
		}
		if err := r.assign(sc, item, x); err != nil {
			return err
		}
	}
	if _, ok, err := it.next(r); ok || err != nil {
		if err == nil {
			err = fail(KindValue, "too many values to unpack (expected %d)", len(to.items))
		}
		return err
	}
	return nil
}

// namespaceOf is the namespace that a target is an attribute of.
func (r *run) namespaceOf(sc *scope, to target) (*namespace, error) {
	if ns, ok := r.variable(sc, to.name).(*namespace); ok {
		return ns, nil
	}
	return nil, fail(KindRuntime, "cannot assign attribute on non-namespace object")
}

// checkNamespaces fails for a target with an attribute of something else. The reference does this
// before it evaluates what is assigned.
func (r *run) checkNamespaces(sc *scope, to target) error {
	if to.attr != "" {
		_, err := r.namespaceOf(sc, to)
		return err
	}
	for _, item := range to.items {
		if err := r.checkNamespaces(sc, item); err != nil {
			return err
		}
	}
	return nil
}
