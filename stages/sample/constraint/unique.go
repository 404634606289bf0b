package constraint

import "math/bits"

const (
	maxAnyOrder = 6    // values that items that differ may have, to come in any order
	maxDiffer   = 1000 // and in the order of the schema
)

// unique returns how arrays are written whose items differ: of a few values in any order, of more
// in one order.
func (c *schemaCompiler) unique(a *arrayShape) (*expr, error) {
	if a.most <= 1 {
		return c.array(a), nil
	}
	list, err := c.finite(a)
	if err != nil {
		return nil, err
	}
	comma := cat(text(","), blank)
	if len(list) <= maxAnyOrder {
		return cat(text("["), c.without(a, list, comma, 0, map[int]*expr{}), text("]")), nil
	}
	m := &members{open: "[", close: "]", min: a.least, max: a.most, comma: comma}
	for _, t := range list {
		m.list = append(m.list, member{pair: text(t)})
	}
	return &expr{op: opMembers, members: m}, nil
}

// without returns how the items go on when those of a set have come.
func (c *schemaCompiler) without(a *arrayShape, list []string, comma *expr, used int, known map[int]*expr) *expr {
	if e := known[used]; e != nil {
		return e
	}
	rule := c.src.add("items that differ", none)
	known[used] = ref(rule)
	n := bits.OnesCount(uint(used))
	var alts []*expr
	if n >= a.least {
		alts = append(alts, empty)
	}
	for i, t := range list {
		if used>>i&1 == 1 || n >= a.most {
			continue
		}
		item := cat(text(t), c.without(a, list, comma, used|1<<i, known))
		if n > 0 {
			item = cat(comma, item)
		}
		alts = append(alts, item)
	}
	c.src.rules[rule] = alt(alts...)
	return known[used]
}

// finite returns the texts of all values that items may have.
func (c *schemaCompiler) finite(a *arrayShape) ([]string, error) {
	refuse := a.unique.unsupported("a constraint compares items only if they are of at most %d strings, numbers, booleans or null", maxDiffer)
	if len(a.prefix) > 0 {
		return nil, refuse
	}
	v, err := c.of(a.rest)
	if err != nil {
		return nil, err
	}
	if len(v.arrays)+len(v.objects) > 0 {
		return nil, refuse
	}
	list := v.words()
	for _, s := range v.strings {
		d, err := c.spent(s.dfa.lengths(s.least, s.most))
		if err != nil {
			return nil, err
		}
		texts, ok := d.texts(maxDiffer - len(list))
		if !ok {
			return nil, refuse
		}
		for _, t := range texts {
			list = append(list, quote(t))
		}
	}
	d, err := c.and(v.numbers, plainNumbers())
	if err != nil {
		return nil, err
	}
	numbers, ok := d.texts(maxDiffer - len(list))
	if !ok {
		return nil, refuse
	}
	return distinct(append(list, numbers...)), nil
}

// words returns the words of JSON that are of the set.
func (v *values) words() []string {
	var list []string
	for _, w := range []struct {
		text string
		may  bool
	}{{"null", v.null}, {"true", v.yes}, {"false", v.no}} {
		if w.may {
			list = append(list, w.text)
		}
	}
	return list
}

// texts returns all that d matches, false if that is more than most texts.
func (d *dfa) texts(most int) ([]string, bool) {
	if d.cyclic() {
		return nil, false
	}
	var list []string
	var add func(at int32, before []rune) bool
	add = func(at int32, before []rune) bool {
		if d.states[at].final {
			list = append(list, string(before))
		}
		for _, e := range d.states[at].edges {
			for r := e.lo; r <= e.hi; r++ {
				if len(list) > most || !add(e.to, append(before, r)) {
					return false
				}
			}
		}
		return len(list) <= most
	}
	ok := add(0, nil)
	return list, ok
}

// distinct returns a list without what comes again.
func distinct(list []string) []string {
	seen := map[string]bool{}
	var once []string
	for _, s := range list {
		if !seen[s] {
			seen[s] = true
			once = append(once, s)
		}
	}
	return once
}
