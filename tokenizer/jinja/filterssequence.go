package jinja

// Filters that take a sequence apart or put one together.

func filterLength(r *run, in Value, a arguments) (Value, error) {
	if _, err := a.bind("len", 0); err != nil {
		return nil, err
	}
	if l, ok := in.(*loopContext); ok {
		n, err := l.count(r)
		return int64(n), err
	}
	n, ok := length(in)
	if !ok {
		return nil, typeErr("object of type '%s' has no len()", typeName(in))
	}
	return int64(n), nil
}

func filterFirst(r *run, in Value, a arguments) (Value, error) {
	if _, err := a.bind("first", 0); err != nil {
		return nil, err
	}
	it, err := r.iter(in)
	if err != nil {
		return nil, err
	}
	v, ok, err := it.next(r)
	if !ok && err == nil {
		return undefinedHint("No first item, sequence was empty."), nil
	}
	return v, err
}

func filterLast(r *run, in Value, a arguments) (Value, error) {
	if _, err := a.bind("last", 0); err != nil {
		return nil, err
	}
	g, ok, err := r.reversed(in)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, typeErr("'%s' object is not reversible", typeName(in))
	}
	v, ok, err := g.next(r)
	if !ok && err == nil {
		return undefinedHint("No last item, sequence was empty."), nil
	}
	return v, err
}

func filterList(r *run, in Value, a arguments) (Value, error) {
	if _, err := a.bind("list", 0); err != nil {
		return nil, err
	}
	return r.newList(r.items(in))
}

func filterReverse(r *run, in Value, a arguments) (Value, error) {
	if _, err := a.bind("reverse", 0); err != nil {
		return nil, err
	}
	if _, ok := asString(in); ok {
		return r.slice(in, [3]Value{nil, nil, int64(-1)})
	}
	g, ok, err := r.reversed(in)
	if ok || err != nil {
		return g, err
	}
	items, err := r.items(in)
	if err != nil {
		if hasKind(err, KindType) {
			return nil, fail(KindFilterArg, "argument must be iterable")
		}
		return nil, err
	}
	return r.slice(&List{items}, [3]Value{nil, nil, int64(-1)})
}

func filterItems(_ *run, in Value, a arguments) (Value, error) {
	if _, err := a.bind("items", 0); err != nil {
		return nil, err
	}
	return lazy(func(r *run) (iterator, error) {
		switch v := in.(type) {
		case *undefined:
			return &sliceIter{}, nil
		case *Dict:
			return &entryIter{v.entries, entryPair}, nil
		}
		return nil, typeErr("Can only get item pairs from a mapping.")
	}), nil
}

func filterBatch(_ *run, in Value, a arguments) (Value, error) {
	v, err := a.bind("batch", 1, "linecount", "fill_with")
	if err != nil {
		return nil, err
	}
	fill := optional(v[1], nil)
	var it iterator
	return lazy(func(r *run) (iterator, error) {
		n, err := size(v[0])
		if err != nil {
			return nil, err
		}
		if it, err = r.iter(in); err != nil {
			return nil, err
		}
		var row []Value
		return iterFunc(func(r *run) (Value, bool, error) {
			for it != nil {
				item, ok, err := it.next(r)
				if err != nil {
					return nil, false, err
				}
				done := row
				if !ok {
					it = nil
					if len(done) == 0 {
						return nil, false, nil
					}
					if fill != nil && len(done) < n {
						return fillRow(r, done, n, fill)
					}
					return &List{done}, true, nil
				}
				full := len(row) == n
				if full {
					row = nil
				}
				row = append(row, item)
				if err := r.chargeItems(1); full || err != nil {
					return &List{done}, true, err
				}
			}
			return nil, false, nil
		}), nil
	}), nil
}

// fillRow is row filled up to n items.
func fillRow(r *run, row []Value, n int, fill Value) (Value, bool, error) {
	if err := r.chargeItems(n); err != nil {
		return nil, false, err
	}
	for len(row) < n {
		row = append(row, fill)
	}
	return &List{row}, true, nil
}

func filterSlice(_ *run, in Value, a arguments) (Value, error) {
	v, err := a.bind("slice", 1, "slices", "fill_with")
	if err != nil {
		return nil, err
	}
	fill := optional(v[1], nil)
	return lazy(func(r *run) (iterator, error) {
		n, err := size(v[0])
		if err != nil {
			return nil, err
		}
		items, err := r.items(in)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return nil, fail(KindZeroDivide, "integer division or modulo by zero")
		}
		i, offset := 0, 0
		return iterFunc(func(r *run) (Value, bool, error) {
			if i >= n {
				return nil, false, nil
			}
			each, extra := len(items)/n, len(items)%n
			start := offset + i*each
			if i < extra {
				offset++
			}
			end := offset + (i+1)*each
			part := append([]Value(nil), items[start:end]...)
			if fill != nil && i >= extra {
				part = append(part, fill)
			}
			i++
			return &List{part}, true, r.chargeItems(len(part) + 1)
		}), nil
	}), nil
}

func filterSum(r *run, in Value, a arguments) (Value, error) {
	v, err := a.bind("sum", 0, "attribute", "start")
	if err != nil {
		return nil, err
	}
	sum := v[1]
	if sum == missing {
		sum = int64(0)
	}
	if _, ok := asString(sum); ok {
		return nil, typeErr("sum() can't sum strings [use ''.join(seq) instead]")
	}
	it, err := r.iter(in)
	if err != nil {
		return nil, err
	}
	p := newPath(optional(v[0], nil))
	for {
		item, ok, err := it.next(r)
		if err != nil || !ok {
			return sum, err
		}
		if item, err = r.get(p, item, nil); err != nil {
			return nil, err
		}
		if sum, err = r.binary("+", sum, item); err != nil {
			return nil, err
		}
	}
}

// filterMap applies a filter to each item, or takes an attribute of it.
func filterMap(_ *run, in Value, a arguments) (Value, error) {
	return lazy(func(r *run) (iterator, error) {
		if !truth(in) {
			return &sliceIter{}, nil
		}
		m := &mapper{}
		if err := m.prepare(a); err != nil {
			return nil, err
		}
		var err error
		m.it, err = r.iter(in)
		return m, err
	}), nil
}

type mapper struct {
	it     iterator
	filter Value // its name, or missing for an attribute
	args   arguments
	path   path
	def    Value
}

func (m *mapper) prepare(a arguments) error {
	if len(a.pos) > 0 {
		m.filter, m.args = a.pos[0], arguments{a.pos[1:], a.kw}
		return nil
	}
	m.filter = missing
	found := false
	for _, k := range a.kw {
		if k.name == "attribute" {
			m.path, found = newPath(k.val), true
		}
	}
	if !found {
		return fail(KindFilterArg, "map requires a filter argument")
	}
	for _, k := range a.kw {
		switch k.name {
		case "attribute":
		case "default":
			m.def = k.val
		default:
			return fail(KindFilterArg, "Unexpected keyword argument %s", reprString(k.name))
		}
	}
	return nil
}

func (m *mapper) next(r *run) (Value, bool, error) {
	item, ok, err := m.it.next(r)
	if !ok || err != nil {
		return nil, false, err
	}
	if m.filter == missing {
		item, err = r.get(m.path, item, m.def)
	} else if name, ok := asString(m.filter); ok {
		item, err = r.filter(name, item, m.args)
	} else {
		err = fail(KindRuntime, "No filter named %s.", reprShort(m.filter))
	}
	return item, true, err
}

// selector is select, reject, selectattr or rejectattr.
func selector(name string, attr, want bool) filterFunc {
	return func(_ *run, in Value, a arguments) (Value, error) {
		return lazy(func(r *run) (iterator, error) {
			if !truth(in) {
				return &sliceIter{}, nil
			}
			s := &sieve{want: want, test: missing}
			pos := a.pos
			if attr {
				if len(pos) == 0 {
					return nil, fail(KindFilterArg, "Missing parameter for attribute name")
				}
				s.path, pos = newPath(pos[0]), pos[1:]
			}
			if len(pos) > 0 {
				s.test, s.args = pos[0], arguments{pos[1:], a.kw}
			}
			var err error
			s.it, err = r.iter(in)
			return s, err
		}), nil
	}
}

// sieve lets those items through for which a test gives want.
type sieve struct {
	it   iterator
	path path
	test Value // its name, or missing for the truth of the item
	args arguments
	want bool
}

func (s *sieve) next(r *run) (Value, bool, error) {
	for {
		item, ok, err := s.it.next(r)
		if !ok || err != nil {
			return nil, false, err
		}
		v, err := r.get(s.path, item, nil)
		if err == nil && s.test != missing {
			if name, ok := asString(s.test); ok {
				v, err = r.test(name, v, s.args)
			} else {
				err = fail(KindRuntime, "No test named %s.", reprShort(s.test))
			}
		}
		if err != nil {
			return nil, false, err
		}
		if truth(v) == s.want {
			return item, true, nil
		}
	}
}
