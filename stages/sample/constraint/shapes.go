package constraint

import "slices"

// values is a set of JSON values, by type.
type values struct {
	null, yes, no bool
	strings       []stringShape // the union
	numbers       *dfa          // without exponents; anyNumber stands for those, too
	arrays        []*arrayShape
	objects       []*objectShape
}

// stringShape is the strings of least to most characters that an automaton matches.
type stringShape struct {
	dfa         *dfa
	least, most int
	narrow      bool // the automaton gives less than the schema, so that nothing tells what is not in it
}

// arrayShape is arrays of least to most items: the first ones each of their term, the others of
// rest.
type arrayShape struct {
	prefix      []*term
	rest        *term
	least, most int
	unique      keyword // what says that items differ, if anything does
}

// objectShape is objects of least to most members. Members that no property names are of the
// class that has their name; the classes are disjoint, and what no class has may not be.
type objectShape struct {
	properties  []property
	classes     []nameClass
	least, most int
	atLeast     keyword // what says least
	some        []witness
}

// witness says that some member has a name and a value of a class.
type witness struct {
	nameClass
	origin keyword
}

type property struct {
	name     string
	value    *term // none if it may not be
	required bool
}

// nameClass is names but for those of the shape's properties.
type nameClass struct {
	names *dfa
	value *term
}

var anyStringShape = stringShape{dfa: anyString, most: unbounded}

func (c *schemaCompiler) anyValues() *values {
	return &values{
		null: true, yes: true, no: true, strings: []stringShape{anyStringShape}, numbers: anyNumber(),
		arrays: []*arrayShape{c.anyArray()}, objects: []*objectShape{c.anyObject()},
	}
}

func (c *schemaCompiler) anyArray() *arrayShape {
	return &arrayShape{rest: c.any, most: unbounded}
}

func (c *schemaCompiler) anyObject() *objectShape {
	return &objectShape{classes: []nameClass{{anyString, c.any}}, most: unbounded}
}

func noValues() *values { return &values{numbers: noString} }

// open reports whether members that no property names may be any.
func (o *objectShape) open(c *schemaCompiler) bool {
	return len(o.classes) == 1 && o.classes[0].names == anyString && o.classes[0].value == c.any
}

// lookup returns what a member of a name must be.
func (o *objectShape) lookup(c *schemaCompiler, name string) property {
	for _, p := range o.properties {
		if p.name == name {
			return p
		}
	}
	for _, k := range o.classes {
		if k.names.matches(name) {
			return property{name: name, value: k.value}
		}
	}
	return property{name: name, value: c.none}
}

// with returns the shape with one property changed or, after the others, added.
func (o *objectShape) with(p property) *objectShape {
	n := *o
	n.properties = slices.Clone(o.properties)
	for i := range n.properties {
		if n.properties[i].name == p.name {
			n.properties[i] = p
			return &n
		}
	}
	n.properties = append(n.properties, p)
	return &n
}

// item returns what an item must be.
func (a *arrayShape) item(i int) *term {
	if i < len(a.prefix) {
		return a.prefix[i]
	}
	return a.rest
}

// include adds the values of another set.
func (c *schemaCompiler) include(v, o *values) error {
	v.null, v.yes, v.no = v.null || o.null, v.yes || o.yes, v.no || o.no
	for _, s := range o.strings {
		if !slices.Contains(v.strings, s) {
			v.strings = append(v.strings, s)
		}
	}
	v.arrays = append(v.arrays, o.arrays...)
	v.objects = append(v.objects, o.objects...)
	var err error
	if v.numbers == anyNumber() || o.numbers == anyNumber() {
		v.numbers = anyNumber()
	} else {
		v.numbers, err = c.or(v.numbers, o.numbers)
	}
	if err != nil {
		return err
	}
	return c.bounded(v)
}

// bounded returns an error if a set has too many shapes, and takes the work for them.
func (c *schemaCompiler) bounded(v *values) error {
	n := 1 + len(v.strings) + len(v.arrays) + len(v.objects)
	if n > maxAlternatives {
		return &LimitError{What: "alternatives of one schema", Limit: maxAlternatives}
	}
	return c.spend(n)
}
