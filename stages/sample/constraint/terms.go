package constraint

import (
	"errors"
	"fmt"
	"slices"
)

// term is a set of JSON values that need not be worked out before it is known to be needed, as
// schemas may contain themselves. Equal terms of a compiler are one.
type term struct {
	op     termOp
	number int
	at     *value  // the schema or the constant
	subs   []*term // of all and not
	origin keyword // of not: what asks for it

	state  termState
	values *values
	err    error
	empty  bool // it is sure that it has no value
	full   bool // it is sure that it has one
}

type termOp uint8

const (
	termAny termOp = iota
	termNone
	termSchema
	termOwn // what a schema says but for alternatives of other schemas
	termConst
	termAll // what all subs have
	termNot // what the sub has not
)

type termState uint8

const (
	termNew termState = iota
	termOpen
	termDone
)

// keyword is a keyword of a schema.
type keyword struct {
	at   *value // the schema
	name string
}

func (k keyword) unsupported(format string, args ...any) error {
	return &UnsupportedError{Pointer: k.at.pointer(), Keyword: k.name, Why: fmt.Sprintf(format, args...)}
}

// term returns the term of a key.
func (c *schemaCompiler) term(key string, t term) *term {
	if known, ok := c.terms[key]; ok {
		return known
	}
	t.number = len(c.terms)
	c.terms[key] = &t
	return &t
}

// constant returns the term of one value.
func (c *schemaCompiler) constant(v *value) *term {
	return c.term(fmt.Sprintf("const %p", v), term{op: termConst, at: v})
}

// all returns the term of what several terms have in common.
func (c *schemaCompiler) all(terms ...*term) *term {
	var flat []*term
	for _, t := range terms {
		switch t.op {
		case termAny:
		case termNone:
			return t
		case termAll:
			flat = append(flat, t.subs...)
		default:
			flat = append(flat, t)
		}
	}
	c.left -= len(flat)
	slices.SortFunc(flat, func(a, b *term) int { return a.number - b.number })
	flat = slices.Compact(flat)
	switch len(flat) {
	case 0:
		return c.any
	case 1:
		return flat[0]
	}
	key := "all"
	for _, t := range flat {
		key += fmt.Sprint(" ", t.number)
	}
	return c.term(key, term{op: termAll, subs: flat})
}

// not returns the term of what another has not.
func (c *schemaCompiler) not(t *term, origin keyword) *term {
	switch t.op {
	case termAny:
		return c.none
	case termNone:
		return c.any
	case termNot:
		return t.subs[0]
	}
	return c.term(fmt.Sprint("not ", t.number), term{op: termNot, subs: []*term{t}, origin: origin})
}

// of returns the values of a term, which are not to be changed.
func (c *schemaCompiler) of(t *term) (*values, error) {
	switch t.state {
	case termDone:
		return t.values, t.err
	case termOpen:
		return nil, c.loop(t)
	}
	t.state = termOpen
	t.values, t.err = c.work(t)
	t.err = limited(t.err)
	t.state = termDone
	if errors.As(t.err, new(*loopError)) {
		t.state = termNew // it is an error only where it leads to itself
	}
	return t.values, t.err
}

// loopError reports a schema that leads to itself at the same place of a text.
type loopError struct{ SchemaError }

func (e *loopError) Unwrap() error { return &e.SchemaError }

func (c *schemaCompiler) loop(t *term) error {
	for t.at == nil {
		t = t.subs[0]
	}
	return &loopError{SchemaError{Pointer: t.at.pointer(), Why: "the schema leads to itself without a property or item between"}}
}

func (c *schemaCompiler) work(t *term) (*values, error) {
	switch t.op {
	case termAny:
		return c.anyValues(), nil
	case termConst:
		return c.constValues(t.at)
	case termSchema:
		return c.read(t.at, false)
	case termOwn:
		return c.read(t.at, true)
	case termAll:
		v, err := c.of(t.subs[0])
		for _, s := range t.subs[1:] {
			if err != nil {
				return nil, err
			}
			var o *values
			if o, err = c.of(s); err == nil {
				v, err = c.intersect(v, o)
			}
		}
		return v, err
	case termNot:
		v, err := c.of(t.subs[0])
		if err != nil {
			return nil, err
		}
		return c.complement(v, t.origin)
	}
	return noValues(), nil
}

// constValues returns the set of one value.
func (c *schemaCompiler) constValues(v *value) (*values, error) {
	set := noValues()
	switch v.kind {
	case kindNull:
		set.null = true
	case kindTrue:
		set.yes = true
	case kindFalse:
		set.no = true
	case kindString:
		set.strings = []stringShape{{dfa: words([]string{v.text}), most: unbounded}}
	case kindNumber:
		d, err := parseDecimal(v)
		if err != nil {
			return nil, err
		}
		set.numbers, err = c.spent(compareDFA(d, func(sign int) bool { return sign == 0 }))
		return set, err
	case kindArray:
		a := &arrayShape{rest: c.none, least: len(v.items), most: len(v.items)}
		for _, item := range v.items {
			a.prefix = append(a.prefix, c.constant(item))
		}
		set.arrays = []*arrayShape{a}
	case kindObject:
		o := &objectShape{least: len(v.names), most: len(v.names)}
		for _, name := range v.names {
			o.properties = append(o.properties, property{name, c.constant(v.member[name]), true})
		}
		set.objects = []*objectShape{o}
	}
	return set, nil
}
