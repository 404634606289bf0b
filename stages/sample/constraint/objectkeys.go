package constraint

import "errors"

// members reads the keywords of objects. It returns nil if no object is possible.
func (r *reader) members() (*objectShape, error) {
	o := r.c.anyObject()
	var err error
	if o.least, err = r.number("minProperties", 0); err != nil {
		return nil, err
	}
	o.atLeast = keyword{r.at, "minProperties"}
	if o.most, err = r.number("maxProperties", unbounded); err != nil {
		return nil, err
	}
	patterns, err := r.patterns()
	if err != nil {
		return nil, err
	}
	names, err := r.names()
	if err != nil {
		return nil, err
	}
	if o.properties, err = r.properties(patterns, names); err != nil {
		return nil, err
	}
	if o.classes, err = r.classes(patterns, names); err != nil {
		return nil, err
	}
	return r.required(o)
}

// patterns reads patternProperties: classes that need not be disjoint.
func (r *reader) patterns() ([]nameClass, error) {
	v := r.at.member["patternProperties"]
	if v == nil {
		return nil, nil
	}
	if err := v.is(kindObject); err != nil {
		return nil, err
	}
	var list []nameClass
	for _, p := range v.names {
		t, err := r.sub(v.member[p])
		if err != nil {
			return nil, err
		}
		d, err := r.c.pattern(p, keyword{r.at, "patternProperties"})
		if err != nil {
			return nil, err
		}
		list = append(list, nameClass{d, t})
	}
	return list, nil
}

// names reads propertyNames.
func (r *reader) names() (*dfa, error) {
	v := r.at.member["propertyNames"]
	if v == nil {
		return anyString, nil
	}
	t, err := r.sub(v)
	if err != nil {
		return nil, err
	}
	set, err := r.c.of(t)
	if err != nil {
		return nil, err
	}
	names := noString
	for _, s := range set.strings {
		d, err := r.c.spent(s.dfa.lengths(s.least, s.most))
		if err == nil {
			names, err = r.c.or(names, d)
		}
		if err != nil {
			return nil, err
		}
	}
	return names, nil
}

func (r *reader) properties(patterns []nameClass, names *dfa) ([]property, error) {
	v := r.at.member["properties"]
	if v == nil {
		return nil, nil
	}
	if err := v.is(kindObject); err != nil {
		return nil, err
	}
	var list []property
	for _, name := range v.names {
		t, err := r.sub(v.member[name])
		if err != nil {
			return nil, err
		}
		for _, p := range patterns {
			if p.names.matches(name) {
				t = r.c.all(t, p.value)
			}
		}
		if !names.matches(name) {
			t = r.c.none
		}
		list = append(list, property{name: name, value: t})
	}
	return list, nil
}

// classes splits the names by the patterns that they match.
func (r *reader) classes(patterns []nameClass, names *dfa) ([]nameClass, error) {
	others := names // that no pattern matches
	var list []nameClass
	for _, p := range patterns {
		var split []nameClass
		for _, k := range append(list, nameClass{others, r.c.any}) {
			in, err := r.c.and(k.names, p.names)
			if err != nil {
				return nil, err
			}
			if split = append(split, nameClass{in, r.c.all(k.value, p.value)}); k.names == others {
				continue
			}
			out, err := r.c.minus(k.names, p.names)
			if err != nil {
				return nil, err
			}
			split = append(split, nameClass{out, k.value})
		}
		var err error
		if others, err = r.c.minus(others, p.names); err != nil {
			return nil, err
		}
		if list = possible(split, r.c); len(list) > maxAlternatives {
			return nil, &LimitError{What: "classes of names", Limit: maxAlternatives}
		}
	}
	rest := r.c.any
	if v := r.at.member["additionalProperties"]; v != nil {
		var err error
		if rest, err = r.sub(v); err != nil {
			return nil, err
		}
	}
	return possible(append(list, nameClass{others, rest}), r.c), nil
}

// possible returns the classes that have names. A class whose members may not be is of no use:
// what no class has may not be, either.
func possible(classes []nameClass, c *schemaCompiler) []nameClass {
	var list []nameClass
	for _, k := range classes {
		if !k.names.none() && k.value != c.none {
			list = append(list, k)
		}
	}
	return list
}

func (r *reader) required(o *objectShape) (*objectShape, error) {
	v := r.at.member["required"]
	if v == nil {
		return o, nil
	}
	names, err := v.strings()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		p := o.lookup(r.c, name)
		if p.value == r.c.none {
			return nil, nil
		}
		p.required = true
		o = o.with(p)
	}
	return o, nil
}

// pattern returns the automaton of a pattern.
func (c *schemaCompiler) pattern(expression string, k keyword) (*dfa, error) {
	if d, ok := c.patterns[expression]; ok {
		return d, nil
	}
	d, err := c.spent(patternDFA(expression))
	switch {
	case errors.Is(err, errTooLarge) || errors.As(err, new(*LimitError)):
		return nil, err
	case err != nil:
		return nil, k.unsupported("%q: %v", expression, err)
	}
	c.patterns[expression] = d
	return d, nil
}
