package constraint

// complement returns the values that a set has not. The origin is the keyword that needs it.
func (c *schemaCompiler) complement(v *values, origin keyword) (*values, error) {
	n := c.anyValues()
	n.null, n.yes, n.no = !v.null, !v.yes, !v.no
	var err error
	if n.numbers, err = anyNumber().minus(v.numbers); err != nil {
		return nil, err
	}
	// What each shape leaves of its type, all shapes leave together.
	for _, s := range v.strings {
		rest, err := s.complement(origin)
		if err != nil {
			return nil, err
		}
		if n, err = c.intersect(n, n.withStrings(rest)); err != nil {
			return nil, err
		}
	}
	for _, a := range v.arrays {
		rest, err := c.notArray(a, origin)
		if err != nil {
			return nil, err
		}
		if n, err = c.intersect(n, n.withArrays(rest)); err != nil {
			return nil, err
		}
	}
	for _, o := range v.objects {
		rest, err := c.notObject(o, origin)
		if err != nil {
			return nil, err
		}
		if n, err = c.intersect(n, n.withObjects(rest)); err != nil {
			return nil, err
		}
	}
	return n, nil
}

func (v values) withStrings(list []stringShape) *values { v.strings = list; return &v }
func (v values) withArrays(list []*arrayShape) *values  { v.arrays = list; return &v }
func (v values) withObjects(list []*objectShape) *values {
	v.objects = list
	return &v
}

// complement returns the strings that the shape has not.
func (s stringShape) complement(origin keyword) ([]stringShape, error) {
	if s.narrow {
		return nil, origin.unsupported("the opposite of a format is not known")
	}
	rest, err := anyString.minus(s.dfa)
	if err != nil {
		return nil, err
	}
	var list []stringShape
	if !rest.none() {
		list = append(list, stringShape{dfa: rest, most: unbounded})
	}
	if s.least > 0 {
		list = append(list, stringShape{dfa: anyString, most: s.least - 1})
	}
	if s.most != unbounded {
		list = append(list, stringShape{dfa: anyString, least: s.most + 1, most: unbounded})
	}
	return list, nil
}

// notArray returns the arrays that the shape has not: too short, too long, or with a wrong item.
func (c *schemaCompiler) notArray(a *arrayShape, origin keyword) ([]*arrayShape, error) {
	if a.rest != c.any && a.most > len(a.prefix) {
		return nil, origin.unsupported("the opposite of a schema for all items of an array is no set of alternatives")
	}
	var list []*arrayShape
	if a.least > 0 {
		list = append(list, &arrayShape{rest: c.any, most: a.least - 1})
	}
	if a.most != unbounded {
		list = append(list, &arrayShape{rest: c.any, least: a.most + 1, most: unbounded})
	}
	for i, t := range a.prefix {
		wrong := c.not(t, origin)
		if wrong == c.none {
			continue
		}
		prefix := make([]*term, i+1)
		for j := range prefix {
			prefix[j] = c.any
		}
		prefix[i] = wrong
		list = append(list, &arrayShape{prefix: prefix, rest: c.any, least: i + 1, most: unbounded})
	}
	return list, nil
}

// notObject returns the objects that the shape has not: with too few or too many members, without
// one that is required, or with a wrong one.
func (c *schemaCompiler) notObject(o *objectShape, origin keyword) ([]*objectShape, error) {
	if !o.open(c) {
		return nil, origin.unsupported("the opposite of a schema for members that it does not name is no set of alternatives")
	}
	var list []*objectShape
	if o.least > 0 {
		few := c.anyObject()
		few.most = o.least - 1
		list = append(list, few)
	}
	if o.most != unbounded {
		many := c.anyObject()
		many.least, many.atLeast = o.most+1, origin
		list = append(list, many)
	}
	for _, p := range o.properties {
		if p.required {
			list = append(list, c.anyObject().with(property{name: p.name, value: c.none}))
		}
		if wrong := c.not(p.value, origin); wrong != c.none {
			list = append(list, c.anyObject().with(property{p.name, wrong, true}))
		}
	}
	return list, nil
}
