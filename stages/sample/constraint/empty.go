package constraint

import "errors"

// isEmpty reports whether it is sure that no value is in a term.
func (c *schemaCompiler) isEmpty(t *term) (bool, error) {
	return c.emptyWithin(t, map[*term]bool{})
}

// emptyWithin takes the terms that are being looked at for not empty: a value that must contain
// itself is taken for possible, which is the safe side.
func (c *schemaCompiler) emptyWithin(t *term, open map[*term]bool) (bool, error) {
	switch {
	case t == c.none || t.empty:
		return true, nil
	case t == c.any || t.full || open[t]:
		return false, nil
	}
	if err := c.spend(1); err != nil {
		return false, err
	}
	v, err := c.of(t)
	if errors.As(err, new(*loopError)) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if v.null || v.yes || v.no || !v.numbers.none() || len(v.strings) > 0 {
		t.full = true
		return false, nil
	}
	open[t] = true
	defer delete(open, t)
	for _, a := range v.arrays {
		if empty, err := c.emptyTerms(a.must(), open); err != nil || !empty {
			return false, err
		}
	}
	for _, o := range v.objects {
		if empty, err := c.emptyTerms(o.must(), open); err != nil || !empty {
			return false, err
		}
	}
	t.empty = true
	return true, nil
}

// emptyTerms reports whether it is sure that one of some terms has no value.
func (c *schemaCompiler) emptyTerms(terms []*term, open map[*term]bool) (bool, error) {
	for _, t := range terms {
		if empty, err := c.emptyWithin(t, open); err != nil || empty {
			return empty, err
		}
	}
	return false, nil
}

// must returns the terms of the items that there must be.
func (a *arrayShape) must() []*term {
	var list []*term
	for i := range min(a.least, len(a.prefix)+1) {
		list = append(list, a.item(i))
	}
	return list
}

// must returns the terms of the members that there must be.
func (o *objectShape) must() []*term {
	var list []*term
	for _, p := range o.properties {
		if p.required {
			list = append(list, p.value)
		}
	}
	return list
}
