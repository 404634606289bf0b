package constraint

import "slices"

// complement returns the values that a set has not. The origin is the keyword that needs it.
func (c *schemaCompiler) complement(v *values, origin keyword) (*values, error) {
	n := c.anyValues()
	n.null, n.yes, n.no = !v.null, !v.yes, !v.no
	var err error
	if n.numbers, err = c.minus(anyNumber(), v.numbers); err != nil {
		return nil, err
	}
	// What each shape leaves of its type, all shapes leave together.
	for _, s := range v.strings {
		rest, err := c.notString(s, origin)
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

// notString returns the strings that the shape has not.
func (c *schemaCompiler) notString(s stringShape, origin keyword) ([]stringShape, error) {
	if s.narrow {
		return nil, origin.unsupported("the opposite of a format is not known")
	}
	rest, err := c.minus(anyString, s.dfa)
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
	if a.unique.at != nil {
		return nil, origin.unsupported("the opposite of uniqueItems is no set of alternatives")
	}
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
	if len(o.some) > 0 {
		return nil, origin.unsupported("the opposite of the opposite of a schema for members that it does not name is not known")
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
	names := make([]string, len(o.properties))
	for i, p := range o.properties {
		names[i] = p.name
		if p.required {
			list = append(list, c.anyObject().with(property{name: p.name, value: c.none}))
		}
		if wrong := c.not(p.value, origin); wrong != c.none {
			list = append(list, c.anyObject().with(property{p.name, wrong, true}))
		}
	}
	if o.open(c) {
		return list, nil
	}
	wrong, err := c.wrongMembers(o, names, origin)
	for _, w := range wrong {
		one := c.anyObject()
		one.some = []witness{w}
		list = append(list, one)
	}
	return list, err
}

// wrongMembers returns the classes of members that are not in a shape, but for its properties.
func (c *schemaCompiler) wrongMembers(o *objectShape, names []string, origin keyword) ([]witness, error) {
	others, err := c.minus(anyString, words(names)) // that no class has
	if err != nil {
		return nil, err
	}
	var list []witness
	for _, k := range o.classes {
		in, err := c.and(others, k.names)
		if err != nil {
			return nil, err
		}
		if wrong := c.not(k.value, origin); wrong != c.none && !in.none() {
			list = append(list, witness{nameClass{in, wrong}, origin})
		}
		if others, err = c.minus(others, k.names); err != nil {
			return nil, err
		}
	}
	if !others.none() {
		list = append(list, witness{nameClass{others, c.any}, origin})
	}
	return list, nil
}

// withSome works out which properties of a shape may be the members that there must be. What also
// a member that no property names may be stays as it is, until other schemas rule that out.
func (c *schemaCompiler) withSome(o *objectShape) ([]*objectShape, error) {
	for i, w := range o.some {
		open, err := c.maybeOther(o, w)
		if err != nil {
			return nil, err
		}
		if open {
			continue
		}
		var list []*objectShape
		for _, p := range o.properties {
			if !w.names.matches(p.name) {
				continue
			}
			if value := c.all(p.value, w.value); value != c.none {
				one := o.with(property{p.name, value, true})
				one.some = slices.Delete(slices.Clone(o.some), i, i+1)
				more, err := c.withSome(one)
				if err != nil {
					return nil, err
				}
				list = append(list, more...)
			}
		}
		return list, c.spend(1 + len(list))
	}
	return []*objectShape{o}, nil
}

// maybeOther reports whether a member that no property names may be the one that there must be.
func (c *schemaCompiler) maybeOther(o *objectShape, w witness) (bool, error) {
	names := make([]string, len(o.properties))
	for i, p := range o.properties {
		names[i] = p.name
	}
	for _, k := range o.classes {
		both, err := c.and(k.names, w.names)
		if err == nil {
			both, err = c.minus(both, words(names))
		}
		if err != nil {
			return false, err
		}
		if !both.none() && c.all(k.value, w.value) != c.none {
			return true, nil
		}
	}
	return false, nil
}
