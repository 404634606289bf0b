package constraint

import (
	"fmt"
	"slices"
)

// schemaCompiler makes the grammar of a schema.
type schemaCompiler struct {
	root       *value
	draft      draft
	resources  map[string]*resource // by their URI
	resourceOf map[*value]*resource
	terms      map[string]*term
	any, none  *term
	opened     map[*value]bool // references that are being followed
	left       int             // of maxSchemaWork
	patterns   map[string]*dfa
	src        *source
	rules      map[*term]int
	queue      []*term // that have a rule, but no expression yet
}

func newSchemaCompiler(root *value) *schemaCompiler {
	c := &schemaCompiler{root: root, terms: map[string]*term{}, left: maxSchemaWork, opened: map[*value]bool{}, patterns: map[string]*dfa{}}
	c.any = c.term("any", term{op: termAny})
	c.none = c.term("none", term{op: termNone})
	return c
}

// spend takes some of the work that a schema may cost.
func (c *schemaCompiler) spend(n int) error {
	if c.left -= n; c.left < 0 {
		return &LimitError{What: "steps of work to combine its parts", Limit: maxSchemaWork}
	}
	return nil
}

// and is dfa.and, at the expense of the compiler.
func (c *schemaCompiler) and(a, b *dfa) (*dfa, error) {
	switch anyNumber() {
	case a:
		return b, nil
	case b:
		return a, nil
	}
	return c.spent(a.and(b))
}

// minus is dfa.minus, or is dfa.or, at the expense of the compiler.
func (c *schemaCompiler) minus(a, b *dfa) (*dfa, error) { return c.spent(a.minus(b)) }
func (c *schemaCompiler) or(a, b *dfa) (*dfa, error)    { return c.spent(a.or(b)) }

// spent takes the work for an automaton from what the schema may cost.
func (c *schemaCompiler) spent(d *dfa, err error) (*dfa, error) {
	if err != nil {
		return nil, err
	}
	return d, c.spend(1 + d.cost)
}

// schema returns the term of a schema.
func (c *schemaCompiler) schema(v *value) (*term, error) {
	switch v.kind {
	case kindTrue:
		return c.any, nil
	case kindFalse:
		return c.none, nil
	}
	if err := v.is(kindObject); err != nil {
		return nil, err
	}
	says := slices.DeleteFunc(slices.Clone(v.names), func(name string) bool { return !c.binds(name) })
	switch {
	case len(says) == 0:
		return c.any, nil
	// In draft 7 all else beside a reference is ignored.
	case v.member["$ref"] != nil && (len(says) == 1 || c.draft == draft7) && !c.opened[v]:
		c.opened[v] = true
		defer delete(c.opened, v)
		to, err := c.resolve(keyword{v, "$ref"})
		if err != nil {
			return nil, err
		}
		return c.schema(to)
	}
	return c.term(fmt.Sprintf("schema %p", v), term{op: termSchema, at: v}), nil
}

// binds reports whether a keyword says something of values.
func (c *schemaCompiler) binds(name string) bool {
	_, read := keywords[name]
	_, not := unsupported[name]
	return read || not
}

// unsupported are the keywords that are refused, and why.
var unsupported = map[string]string{
	"$dynamicRef":   "what it leads to depends on where it is read",
	"$recursiveRef": "what it leads to depends on where it is read",
	"contains":      "a constraint does not count items that are of a schema",
}

// reader reads one schema: what it says of each type, and what it adds of others.
type reader struct {
	c       *schemaCompiler
	at      *value
	types   []string // nil for all
	numbers *dfa
	string  stringShape
	array   *arrayShape
	object  *objectShape
	also    []*values // the value must be in each of these, too
}

// A readFunc reads a keyword, whose value is v.
type readFunc func(r *reader, v *value, k keyword) error

// ownTerm returns the term of what a schema says but for oneOf and if, which look at it: whether
// schemas have something in common depends on what is possible at all.
func (r *reader) ownTerm() *term {
	return r.c.term(fmt.Sprintf("own %p", r.at), term{op: termOwn, at: r.at})
}

// read returns the values of a schema, which is an object; own is for a termOwn.
func (c *schemaCompiler) read(v *value, own bool) (*values, error) {
	r := &reader{c: c, at: v, numbers: anyNumber(), string: anyStringShape}
	for _, name := range v.names {
		if why := c.refuses(name); why != "" {
			return nil, keyword{v, name}.unsupported("%s", why)
		}
		if read := keywords[name]; read != nil && !(own && (name == "oneOf" || name == "if")) {
			if err := read(r, v.member[name], keyword{v, name}); err != nil {
				return nil, err
			}
		}
	}
	if err := r.shapes(v.names); err != nil {
		return nil, err
	}
	set, err := r.own()
	for _, also := range r.also {
		if err != nil {
			return nil, err
		}
		set, err = c.intersect(set, also)
	}
	return set, err
}

// otherDraft are the keywords that only one draft has, by the draft that has them not.
var otherDraft = map[draft][]string{
	draft2020: {"dependencies", "additionalItems", "$recursiveRef"},
	draft7:    {"prefixItems", "dependentRequired", "dependentSchemas", "unevaluatedItems", "unevaluatedProperties", "$dynamicRef", "$recursiveRef"},
}

// refuses returns why a keyword is refused, nothing if it is not.
func (c *schemaCompiler) refuses(name string) string {
	if slices.Contains(otherDraft[c.draft], name) {
		return "it is of another draft of the standard than $schema says, which is 2020-12 if it says nothing"
	}
	return unsupported[name]
}

// shapes reads the keywords of arrays and objects, which depend on each other.
func (r *reader) shapes(names []string) error {
	if len(names) == 1 && names[0] == "$ref" {
		r.array, r.object = r.c.anyArray(), r.c.anyObject()
		return nil
	}
	var err error
	if r.array, err = r.items(); err != nil {
		return err
	}
	r.object, err = r.members()
	return err
}

// own returns what the schema says itself of the value.
func (r *reader) own() (*values, error) {
	has := func(t string) bool { return r.types == nil || slices.Contains(r.types, t) }
	set := &values{null: has("null"), yes: has("boolean"), no: has("boolean"), numbers: noString}
	if has("string") && !r.string.none() {
		set.strings = []stringShape{r.string}
	}
	if has("array") && r.array.least <= r.array.most {
		set.arrays = []*arrayShape{r.array}
	}
	if has("object") && r.object != nil {
		set.objects = []*objectShape{r.object}
	}
	var err error
	switch {
	case has("number"):
		set.numbers = r.numbers
	case has("integer"):
		set.numbers, err = r.c.and(integers(), r.numbers)
	}
	return set, err
}

// sub returns the term of a schema that stands in a keyword.
func (r *reader) sub(v *value) (*term, error) { return r.c.schema(v) }

// list returns the terms of a list of schemas.
func (r *reader) list(v *value) ([]*term, error) {
	if err := v.is(kindArray); err != nil {
		return nil, err
	}
	if len(v.items) == 0 {
		return nil, v.wrong("the list is empty")
	}
	var terms []*term
	for _, item := range v.items {
		t, err := r.sub(item)
		if err != nil {
			return nil, err
		}
		terms = append(terms, t)
	}
	return terms, nil
}
