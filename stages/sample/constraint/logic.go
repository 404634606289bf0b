package constraint

func readNot(r *reader, v *value, k keyword) error {
	t, err := r.sub(v)
	if err != nil {
		return err
	}
	return r.add(r.c.not(t, k))
}

// readOneOf takes each schema without what another of the list has. Nothing need be taken away
// from schemas that have nothing in common.
func readOneOf(r *reader, v *value, k keyword) error {
	terms, err := r.list(v)
	if err != nil {
		return err
	}
	own := r.ownTerm()
	alone := make([]*term, len(terms))
	for i, t := range terms {
		alone[i] = r.c.all(own, t)
		for j, other := range terms {
			if i == j {
				continue
			}
			empty, err := r.c.isEmpty(r.c.all(own, t, other))
			if err != nil {
				return err
			}
			if !empty {
				alone[i] = r.c.all(alone[i], r.c.not(other, k))
			}
		}
	}
	set, err := r.c.union(alone)
	r.also = append(r.also, set)
	return err
}

func readIf(r *reader, v *value, k keyword) error {
	branch := func(name string) (*term, error) {
		if b := r.at.member[name]; b != nil {
			return r.sub(b)
		}
		return r.c.any, nil
	}
	then, err := branch("then")
	if err != nil {
		return err
	}
	other, err := branch("else")
	if err != nil {
		return err
	}
	if then == other {
		return r.add(then)
	}
	t, err := r.sub(v)
	if err != nil {
		return err
	}
	if then == other { // whatever the answer
		return r.add(then)
	}
	set, err := r.c.union([]*term{r.c.all(t, then), r.c.all(r.c.not(t, k), other)})
	r.also = append(r.also, set)
	return err
}

// readDependent reads what members ask for: names, or a schema of the whole object.
func readDependent(r *reader, v *value, _ keyword) error {
	if err := v.is(kindObject); err != nil {
		return err
	}
	for _, name := range v.names {
		set, err := r.dependent(name, v.member[name])
		if err != nil {
			return err
		}
		r.also = append(r.also, set)
	}
	return nil
}

// dependent returns the values that do not have a member, or have what it asks for.
func (r *reader) dependent(name string, asked *value) (*values, error) {
	c := r.c
	without := c.anyValues()
	without.objects = []*objectShape{c.anyObject().with(property{name: name, value: c.none})}
	o := c.anyObject().with(property{name, c.any, true})
	with := noValues()
	if asked.kind == kindArray {
		names, err := asked.strings()
		if err != nil {
			return nil, err
		}
		for _, n := range names {
			o = o.with(property{n, c.any, true})
		}
		with.objects = []*objectShape{o}
	} else {
		t, err := r.sub(asked)
		if err != nil {
			return nil, err
		}
		v, err := c.of(t)
		if err != nil {
			return nil, err
		}
		with.objects = []*objectShape{o}
		if with, err = c.intersect(with, v); err != nil {
			return nil, err
		}
	}
	return without, c.include(without, with)
}

func readMultipleOf(r *reader, v *value, k keyword) error {
	if err := v.is(kindNumber); err != nil {
		return err
	}
	d, err := parseDecimal(v)
	if err != nil {
		return err
	}
	if d.negative || d.whole == "0" && d.fraction == "" {
		return v.wrong("%s is not above 0", v.text)
	}
	modulus, digits, ok := d.modulus()
	if !ok {
		return k.unsupported("the digits of %s are more than %d", v.text, maxMultipleOf)
	}
	multiples, err := r.c.spent(multipleDFA(modulus, digits))
	if err == nil {
		r.numbers, err = r.c.and(r.numbers, multiples)
	}
	return err
}

func readPattern(r *reader, v *value, k keyword) error {
	if err := v.is(kindString); err != nil {
		return err
	}
	d, err := r.c.pattern(v.text, k)
	if err == nil {
		r.string.dfa, err = r.c.and(r.string.dfa, d)
	}
	return err
}

func readFormat(r *reader, v *value, k keyword) error {
	if err := v.is(kindString); err != nil {
		return err
	}
	if v.text == "regex" {
		return k.unsupported("no automaton can tell whether a text is an expression")
	}
	d, err := formatDFA(v.text)
	if err != nil || d == nil {
		return err
	}
	r.string.narrow = true
	r.string.dfa, err = r.c.and(r.string.dfa, d)
	return err
}
