package constraint

import "slices"

// intersect returns the values that both sets have.
func (c *schemaCompiler) intersect(a, b *values) (*values, error) {
	v := &values{null: a.null && b.null, yes: a.yes && b.yes, no: a.no && b.no}
	var err error
	if v.numbers, err = c.and(a.numbers, b.numbers); err != nil {
		return nil, err
	}
	for _, x := range a.strings {
		for _, y := range b.strings {
			s, err := c.bothStrings(x, y)
			if err != nil {
				return nil, err
			}
			if !s.none() {
				v.strings = append(v.strings, s)
			}
		}
	}
	for _, x := range a.arrays {
		for _, y := range b.arrays {
			if s := c.bothArrays(x, y); s.least <= s.most {
				v.arrays = append(v.arrays, s)
			}
		}
		if err := c.bounded(v); err != nil {
			return nil, err
		}
	}
	for _, x := range a.objects {
		for _, y := range b.objects {
			list, err := c.bothObjects(x, y)
			if err != nil {
				return nil, err
			}
			v.objects = append(v.objects, list...)
		}
		if err := c.bounded(v); err != nil {
			return nil, err
		}
	}
	return v, c.bounded(v)
}

func (s stringShape) none() bool { return s.dfa.none() || s.least > s.most }

func (c *schemaCompiler) bothStrings(a, b stringShape) (stringShape, error) {
	d, err := c.and(a.dfa, b.dfa)
	return stringShape{d, max(a.least, b.least), min(a.most, b.most), a.narrow || b.narrow}, err
}

func (c *schemaCompiler) bothArrays(a, b *arrayShape) *arrayShape {
	s := &arrayShape{rest: c.all(a.rest, b.rest), least: max(a.least, b.least), most: min(a.most, b.most), unique: a.unique}
	if b.unique.at != nil {
		s.unique = b.unique
	}
	for i := range max(len(a.prefix), len(b.prefix)) {
		s.prefix = append(s.prefix, c.all(a.item(i), b.item(i)))
	}
	return s.short(c)
}

// short returns the shape without items that cannot be.
func (a *arrayShape) short(c *schemaCompiler) *arrayShape {
	for i := range len(a.prefix) + 1 {
		if a.item(i) == c.none {
			a.most = min(a.most, i)
		}
	}
	if a.most < len(a.prefix) {
		a.prefix = a.prefix[:a.most]
	}
	return a
}

// bothObjects returns the objects of both shapes: mostly one shape, none if a member must be that
// cannot.
func (c *schemaCompiler) bothObjects(a, b *objectShape) ([]*objectShape, error) {
	if err := c.spend(1 + len(a.properties) + len(b.properties)); err != nil {
		return nil, err
	}
	s := &objectShape{least: a.least, atLeast: a.atLeast, most: min(a.most, b.most), some: slices.Concat(a.some, b.some)}
	if b.least > s.least {
		s.least, s.atLeast = b.least, b.atLeast
	}
	if !c.bothProperties(s, a, b) || s.least > s.most || s.needs() > s.most {
		return nil, nil
	}
	for _, p := range s.properties {
		if !p.required || p.value.op != termAll {
			continue
		}
		if empty, err := c.isEmpty(p.value); err != nil || empty {
			return nil, err
		}
	}
	for _, x := range a.classes {
		for _, y := range b.classes {
			names, err := c.and(x.names, y.names)
			if err != nil {
				return nil, err
			}
			if value := c.all(x.value, y.value); value != c.none && !names.none() {
				s.classes = append(s.classes, nameClass{names, value})
			}
		}
	}
	return c.withSome(s)
}

// bothProperties sets the properties of the objects of two shapes, false if one must be that
// cannot.
func (c *schemaCompiler) bothProperties(s, a, b *objectShape) bool {
	possible := true
	add := func(x, y property) {
		p := property{x.name, c.all(x.value, y.value), x.required || y.required}
		s.properties = append(s.properties, p)
		possible = possible && (p.value != c.none || !p.required)
	}
	inA, inB := a.byName(), b.byName()
	for _, x := range a.properties {
		y, ok := inB[x.name]
		if !ok {
			y = b.lookup(c, x.name)
		}
		add(x, y)
	}
	for _, y := range b.properties {
		if _, ok := inA[y.name]; !ok {
			add(a.lookup(c, y.name), y)
		}
	}
	return possible
}

func (o *objectShape) byName() map[string]property {
	m := make(map[string]property, len(o.properties))
	for _, p := range o.properties {
		m[p.name] = p
	}
	return m
}

// needs returns how many members must be.
func (o *objectShape) needs() int {
	n := 0
	for _, p := range o.properties {
		if p.required {
			n++
		}
	}
	return n
}
