package constraint

// evaluated is what members and items a schema has tried, whatever the value is.
type evaluated struct {
	names    []string
	patterns []*dfa
	members  bool // all
	prefix   int
	items    bool // all
	seen     map[*value]bool
	keyword  keyword // what asks
	reader   *reader
}

func (r *reader) evaluated(k keyword) (*evaluated, error) {
	e := &evaluated{seen: map[*value]bool{}, keyword: k, reader: r}
	return e, e.schema(r.at)
}

// schema adds what a schema tries that every value must satisfy.
func (e *evaluated) schema(v *value) error {
	if v.kind != kindObject || e.seen[v] {
		return nil
	}
	e.seen[v] = true
	for _, name := range v.names {
		if e.keyword == (keyword{v, name}) {
			continue
		}
		if err := e.read(v.member[name], keyword{v, name}); err != nil {
			return err
		}
	}
	return nil
}

func (e *evaluated) read(v *value, k keyword) error {
	switch k.name {
	case "properties":
		e.names = append(e.names, v.names...)
	case "patternProperties":
		for _, p := range v.names {
			d, err := e.reader.c.pattern(p, k)
			if err != nil {
				return err
			}
			e.patterns = append(e.patterns, d)
		}
	case "additionalProperties", "unevaluatedProperties":
		e.members = true
	case "prefixItems":
		e.prefix = max(e.prefix, len(v.items))
	case "items", "unevaluatedItems":
		e.items = true
	case "allOf":
		for _, item := range v.items {
			if err := e.schema(item); err != nil {
				return err
			}
		}
	case "$ref":
		to, err := e.reader.c.resolve(k)
		if err != nil {
			return err
		}
		return e.schema(to)
	case "anyOf", "oneOf", "if", "dependentSchemas", "$dynamicRef", "contains":
		return e.keyword.unsupported("it depends on what %s finds", k.name)
	}
	return nil
}

// readUnevaluatedProperties reads what members must be that no other schema has tried.
func readUnevaluatedProperties(r *reader, v *value, k keyword) error {
	e, err := r.evaluated(k)
	if err != nil || e.members {
		return err
	}
	rest, err := r.sub(v)
	if err != nil {
		return err
	}
	o := r.c.anyObject()
	o.classes = nil
	for _, name := range distinct(e.names) {
		o.properties = append(o.properties, property{name: name, value: r.c.any})
	}
	others := anyString
	for _, d := range e.patterns {
		in, err := r.c.and(others, d)
		if err != nil {
			return err
		}
		o.classes = append(o.classes, nameClass{in, r.c.any})
		if others, err = r.c.minus(others, d); err != nil {
			return err
		}
	}
	o.classes = possible(append(o.classes, nameClass{others, rest}), r.c)
	r.also = append(r.also, r.c.anyValues().withObjects([]*objectShape{o}))
	return nil
}

// readUnevaluatedItems reads what items must be that no other schema has tried.
func readUnevaluatedItems(r *reader, v *value, k keyword) error {
	e, err := r.evaluated(k)
	if err != nil || e.items {
		return err
	}
	a := r.c.anyArray()
	for range e.prefix {
		a.prefix = append(a.prefix, r.c.any)
	}
	if a.rest, err = r.sub(v); err != nil {
		return err
	}
	r.also = append(r.also, r.c.anyValues().withArrays([]*arrayShape{a.short(r.c)}))
	return nil
}
