package constraint

import "sync"

// blank may follow a colon or a comma.
var blank = repeat(text(" "), 0, 1)

// anyNumber is the numbers without an exponent, and integers those that are whole, be it with a
// fraction of zeros. The one without a fraction and without a sign of zero is the plain one.
var (
	anyNumber     = sync.OnceValue(func() *dfa { return mustDFA(`-?(0|[1-9][0-9]*)(\.[0-9]+)?`) })
	integers      = sync.OnceValue(func() *dfa { return mustDFA(`-?(0|[1-9][0-9]*)(\.0+)?`) })
	plainIntegers = sync.OnceValue(func() *dfa { return mustDFA(`0|-?[1-9][0-9]*`) })
	plainNumbers  = sync.OnceValue(func() *dfa {
		return mustDFA(`0|-?[1-9][0-9]*|-?(0|[1-9][0-9]*)\.[0-9]*[1-9]`)
	})
)

// exponent may follow a number that may be any.
var exponent = cat(runes(setOf("eE")), repeat(runes(setOf("+-")), 0, 1), repeat(runes(newSet(runeRange{'0', '9'})), 1, 2))

func mustDFA(expression string) *dfa {
	d, err := regexpDFA(expression)
	if err != nil {
		panic("constraint: an expression of its own: " + err.Error())
	}
	return d.minimal()
}

// addTo adds the texts of a term to a grammar, a rule for each term that a text may need, and
// returns what matches them.
func (c *schemaCompiler) addTo(src *source, t *term) (*expr, error) {
	if t == c.none {
		return nil, ErrUnsatisfiable
	}
	c.src, c.rules = src, map[*term]int{}
	whole := c.rule(t)
	for len(c.queue) > 0 {
		t := c.queue[0]
		c.queue = c.queue[1:]
		e, err := c.expr(t)
		if err != nil {
			return nil, err
		}
		c.src.rules[c.rules[t]] = e
	}
	return whole, nil
}

// rule returns a call of the rule of a term.
func (c *schemaCompiler) rule(t *term) *expr {
	if t == c.none {
		return none
	}
	n, ok := c.rules[t]
	if !ok {
		n = c.src.add("a value", none)
		c.rules[t] = n
		c.queue = append(c.queue, t)
	}
	return ref(n)
}

// expr returns the texts of a term.
func (c *schemaCompiler) expr(t *term) (*expr, error) {
	v, err := c.of(t)
	if err != nil {
		return nil, err
	}
	if err := c.bounded(v); err != nil {
		return nil, err
	}
	var alts []*expr
	for _, w := range v.words() {
		alts = append(alts, text(w))
	}
	for _, s := range v.strings {
		e, err := c.string(s)
		if err != nil {
			return nil, err
		}
		alts = append(alts, e)
	}
	if !v.numbers.none() {
		e, err := c.number(v.numbers)
		if err != nil {
			return nil, err
		}
		alts = append(alts, e)
	}
	for _, a := range v.arrays {
		e, err := c.items(a)
		if err != nil {
			return nil, err
		}
		alts = append(alts, e)
	}
	for _, o := range v.objects {
		e, err := c.object(o)
		if err != nil {
			return nil, err
		}
		alts = append(alts, e)
	}
	return alt(alts...), nil
}

func (c *schemaCompiler) string(s stringShape) (*expr, error) {
	if s.dfa == anyString {
		chars := repeat(jsonChar, s.least, s.most)
		if chars.op == opRepeat {
			chars.fenced = true
		}
		return cat(text(`"`), chars, text(`"`)), nil
	}
	d, err := c.spent(s.dfa.lengths(s.least, s.most))
	return &expr{op: opQuoted, dfa: d}, err
}

// number returns how numbers are written. Where only integers may be, they have no fraction;
// where all of a finite number of values may be, no zeros end it.
func (c *schemaCompiler) number(d *dfa) (*expr, error) {
	if d == anyNumber() {
		return cat(&expr{op: opDFA, dfa: d}, repeat(exponent, 0, 1)), nil
	}
	broken, err := c.minus(d, integers())
	if err != nil {
		return nil, err
	}
	plain := plainNumbers()
	if broken.none() {
		plain = plainIntegers()
	}
	few, err := c.and(d, plain)
	if err != nil {
		return nil, err
	}
	if broken.none() || !few.cyclic() {
		d = few
	}
	return &expr{op: opDFA, dfa: d}, nil
}

// items returns how arrays of a shape are written.
func (c *schemaCompiler) items(a *arrayShape) (*expr, error) {
	if a.unique.at != nil {
		return c.unique(a)
	}
	return c.array(a), nil
}

// array is items where items may be equal.
func (c *schemaCompiler) array(a *arrayShape) *expr {
	comma := cat(text(","), blank)
	n := len(a.prefix)
	rest := c.rule(a.rest)
	var tail *expr // what follows the items of prefix
	if n == 0 {
		tail = cat(rest, repeat(cat(comma, rest), max(a.least-1, 0), a.upTo(1)))
		tail = optional(tail, a.least == 0, a.most > 0)
	} else {
		tail = repeat(cat(comma, rest), max(a.least-n, 0), a.upTo(n))
	}
	for i := n - 1; i >= 0; i-- {
		item := cat(c.rule(a.prefix[i]), tail)
		if i > 0 {
			item = cat(comma, item)
		}
		tail = optional(item, i >= a.least, i < a.most)
	}
	return cat(text("["), tail, text("]"))
}

// upTo returns how many items may follow n.
func (a *arrayShape) upTo(n int) int {
	if a.most == unbounded {
		return unbounded
	}
	return a.most - n
}

// optional returns e, or nothing if that may be, or nothing alone if e may not be.
func optional(e *expr, empty, may bool) *expr {
	switch {
	case !may:
		return repeat(e, 0, 0)
	case empty:
		return repeat(e, 0, 1)
	}
	return e
}

// object returns how objects of a shape are written.
func (c *schemaCompiler) object(o *objectShape) (*expr, error) {
	for _, w := range o.some {
		return nil, w.origin.unsupported("it asks for a member that no property names")
	}
	m := &members{open: "{", close: "}", min: o.least, max: o.most, comma: cat(text(","), blank)}
	colon := cat(text(":"), blank)
	names := make([]string, len(o.properties))
	for i, p := range o.properties {
		names[i] = p.name
		if p.value != c.none {
			m.list = append(m.list, member{cat(text(quote(p.name)), colon, c.rule(p.value)), p.required})
		}
	}
	var rest []*expr
	for _, k := range o.classes {
		d, err := c.minus(k.names, words(names))
		if err != nil {
			return nil, err
		}
		if !d.none() {
			rest = append(rest, cat(&expr{op: opQuoted, dfa: d}, colon, c.rule(k.value)))
		}
	}
	if len(rest) > 0 {
		m.rest = alt(rest...)
	}
	if m.rest != nil && m.min > len(m.list)+1 {
		return nil, o.atLeast.unsupported("two members that no property names might have the same name; at most %d can be asked for here", len(m.list)+1)
	}
	return &expr{op: opMembers, members: m}, nil
}
