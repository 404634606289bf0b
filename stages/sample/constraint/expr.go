package constraint

import "math"

// op is the kind of an expression.
type op uint8

const (
	opEmpty   op = iota // the empty text
	opNone              // no text at all
	opBytes             // text
	opRunes             // one character of set
	opCat               // subs, one after the other
	opAlt               // one of subs
	opRepeat            // subs[0], min to max times
	opRule              // what rule matches
	opDFA               // what dfa matches, as it is
	opQuoted            // what dfa matches, written as a JSON string
	opMembers           // a JSON object of members
)

// unbounded is a max without a bound.
const unbounded = math.MaxInt32

// expr is an expression of a grammar. Expressions may be shared and are not changed once they are
// part of another.
type expr struct {
	op       op
	text     string
	set      runeSet
	subs     []*expr
	min, max int
	rule     int
	dfa      *dfa
	members  *members
	fenced   bool // what follows a repetition begins with no character that it repeats as text
}

var (
	empty = &expr{op: opEmpty}
	none  = &expr{op: opNone}
)

func text(s string) *expr {
	if s == "" {
		return empty
	}
	return &expr{op: opBytes, text: s}
}

func runes(s runeSet) *expr {
	if len(s) == 0 {
		return none
	}
	return &expr{op: opRunes, set: s}
}

func cat(subs ...*expr) *expr {
	if len(subs) == 1 {
		return subs[0]
	}
	return &expr{op: opCat, subs: subs}
}

func alt(subs ...*expr) *expr {
	switch len(subs) {
	case 0:
		return none
	case 1:
		return subs[0]
	}
	return &expr{op: opAlt, subs: subs}
}

func repeat(body *expr, min, max int) *expr {
	switch {
	case max < min:
		return none
	case max == 0:
		return empty
	case min == 1 && max == 1:
		return body
	}
	return &expr{op: opRepeat, subs: []*expr{body}, min: min, max: max}
}

func ref(rule int) *expr { return &expr{op: opRule, rule: rule} }

// source is a grammar before it is compiled. Rule 0 is what a whole text must match.
type source struct {
	rules []*expr
	names []string // for errors; of the same length
}

// add adds a rule and returns its number. The expression may be set later.
func (s *source) add(name string, e *expr) int {
	s.rules, s.names = append(s.rules, e), append(s.names, name)
	return len(s.rules) - 1
}

// nullables returns which rules match the empty text.
func (s *source) nullables() []bool {
	null := make([]bool, len(s.rules))
	for changed := true; changed; {
		changed = false
		for i, e := range s.rules {
			if !null[i] && e.nullable(null) {
				null[i], changed = true, true
			}
		}
	}
	return null
}

// nullable reports whether e matches the empty text, given which rules are known to.
func (e *expr) nullable(rules []bool) bool {
	switch e.op {
	case opEmpty:
		return true
	case opCat:
		for _, s := range e.subs {
			if !s.nullable(rules) {
				return false
			}
		}
		return true
	case opAlt:
		for _, s := range e.subs {
			if s.nullable(rules) {
				return true
			}
		}
	case opRepeat:
		return e.min == 0 || e.subs[0].nullable(rules)
	case opRule:
		return e.rule < len(rules) && rules[e.rule]
	case opDFA:
		return e.dfa.states[0].final
	}
	return false
}

// strip returns what matches what e matches, but for the empty text. A repetition whose body can
// be empty has to count only the times when it is not.
func (b *builder) strip(e *expr) *expr {
	if !e.nullable(b.null) {
		return e
	}
	switch e.op {
	case opCat: // the first part that is not empty, and what follows it
		var alts []*expr
		for i, sub := range e.subs {
			alts = append(alts, cat(append([]*expr{b.strip(sub)}, e.subs[i+1:]...)...))
		}
		return alt(alts...)
	case opAlt:
		var alts []*expr
		for _, sub := range e.subs {
			alts = append(alts, b.strip(sub))
		}
		return alt(alts...)
	case opRepeat:
		return repeat(b.strip(e.subs[0]), 1, e.max)
	case opRule:
		to, ok := b.strips[e.rule]
		if !ok {
			to = b.add(body{name: b.bodies[e.rule].name, e: none}, false)
			b.strips[e.rule] = to
			b.bodies[to].e = b.strip(b.bodies[e.rule].e)
		}
		return ref(to)
	case opDFA:
		return &expr{op: opDFA, dfa: e.dfa.withoutEmpty()}
	}
	return none // of the empty text nothing is left
}
