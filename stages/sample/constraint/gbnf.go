package constraint

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// GBNF returns the grammar of a text in GBNF, with the rule root for the whole. There are name
// ::= alternatives, "literals", [classes] and [^classes], ., ( ), |, *, +, ?, {n}, {n,}, {,m},
// {n,m} and # comments; escapes are \n, \r, \t, \\, \", \[, \], \xHH, \uHHHH and \UHHHHHHHH, each
// a character. A rule ends with its line, but within parentheses and after ::= and |. A rule that
// begins with itself is a *LeftRecursionError.
func GBNF(grammar string) (*Grammar, error) { return GBNFWith(grammar, nil) }

// GBNFWith is GBNF with further rules, which the grammar names and does not define: each matches
// the JSON texts that its schema allows. What is wrong with one is a *RuleError.
func GBNFWith(grammar string, schemas map[string][]byte) (*Grammar, error) {
	src, err := parseGBNF(grammar, schemas)
	if err != nil {
		return nil, err
	}
	return newGrammar(src)
}

// RuleError reports a schema that cannot be a rule.
type RuleError struct {
	Rule string
	Err  error // as of JSONSchema
}

func (e *RuleError) Error() string { return fmt.Sprintf("rule %q: %v", e.Rule, e.Err) }
func (e *RuleError) Unwrap() error { return e.Err }

const (
	maxGrammar = 1 << 20 // bytes
	maxNesting = 1000    // parentheses
	maxTimes   = 100_000
)

type gbnf struct {
	text    string
	at      int
	nesting int
	src     *source
	rules   map[string]int
	first   map[int]int // where each rule of the text is named first
	defined map[int]bool
}

func parseGBNF(text string, schemas map[string][]byte) (*source, error) {
	if len(text) > maxGrammar {
		return nil, fmt.Errorf("the grammar has %d bytes; at most %d are read", len(text), maxGrammar)
	}
	if !utf8.ValidString(text) {
		return nil, fmt.Errorf("the grammar is not valid UTF-8")
	}
	p := &gbnf{text: text, src: &source{}, rules: map[string]int{}, first: map[int]int{}, defined: map[int]bool{}}
	p.rule("root")
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		e, err := addSchema(p.src, schemas[name])
		if err != nil {
			return nil, &RuleError{Rule: name, Err: err}
		}
		n := p.rule(name)
		p.src.rules[n], p.defined[n] = e, true
	}
	for p.space(true); p.at < len(text); p.space(true) {
		if err := p.definition(); err != nil {
			return nil, p.placed(p.at, err)
		}
	}
	if !p.defined[0] {
		return nil, fmt.Errorf(`there is no rule "root", which is what a whole text matches`)
	}
	for i, name := range p.src.names {
		if at, named := p.first[i]; named && !p.defined[i] {
			return nil, p.placed(at, fmt.Errorf("rule %q is not defined", name))
		}
	}
	return p.src, nil
}

// placed says where in the text an error is. Columns count characters.
func (p *gbnf) placed(at int, err error) error {
	before := p.text[:min(at, len(p.text))]
	line := before[strings.LastIndexByte(before, '\n')+1:]
	return fmt.Errorf("line %d, column %d: %w", 1+strings.Count(before, "\n"), 1+utf8.RuneCountInString(line), err)
}

// rule returns the number of a rule, whose name ends here.
func (p *gbnf) rule(name string) int {
	n, ok := p.rules[name]
	if !ok {
		n = p.src.add(name, none)
		p.rules[name] = n
		p.first[n] = max(0, p.at-len(name))
	}
	return n
}

// space skips blanks and comments, and line ends if they mean nothing here.
func (p *gbnf) space(lines bool) {
	for p.at < len(p.text) {
		switch c := p.text[p.at]; {
		case c == ' ' || c == '\t' || lines && (c == '\n' || c == '\r'):
			p.at++
		case c == '#':
			for p.at < len(p.text) && p.text[p.at] != '\n' {
				p.at++
			}
		default:
			return
		}
	}
}

func (p *gbnf) take(s string) bool {
	if strings.HasPrefix(p.text[p.at:], s) {
		p.at += len(s)
		return true
	}
	return false
}

func (p *gbnf) name() string {
	from := p.at
	for p.at < len(p.text) {
		c := p.text[p.at] | 0x20
		if c < 'a' && (p.text[p.at] < '0' || p.text[p.at] > '9') && p.text[p.at] != '-' || c > 'z' {
			break
		}
		p.at++
	}
	return p.text[from:p.at]
}

func (p *gbnf) definition() error {
	name := p.name()
	if name == "" {
		return fmt.Errorf("the name of a rule must come here")
	}
	n := p.rule(name)
	p.space(false)
	if !p.take("::=") {
		return fmt.Errorf("::= must follow %q", name)
	}
	if p.defined[n] {
		return fmt.Errorf("rule %q is defined twice", name)
	}
	p.defined[n] = true
	p.space(true)
	e, err := p.alternatives()
	if err != nil {
		return err
	}
	if p.at < len(p.text) && p.text[p.at] != '\n' && p.text[p.at] != '\r' {
		return fmt.Errorf("unexpected %q", p.next())
	}
	p.src.rules[n] = e
	return nil
}

func (p *gbnf) alternatives() (*expr, error) {
	var alts []*expr
	for {
		e, err := p.sequence()
		if err != nil {
			return nil, err
		}
		alts = append(alts, e)
		// an alternative may stand on the next line, after its |
		before := p.at
		p.space(true)
		if !p.take("|") {
			if p.nesting == 0 {
				p.at = before
			}
			return alt(alts...), nil
		}
		p.space(true)
	}
}

func (p *gbnf) sequence() (*expr, error) {
	parts := []*expr{}
	for {
		p.space(p.nesting > 0)
		e, err := p.part()
		if err != nil {
			return nil, err
		}
		if e == nil {
			return cat(parts...), nil
		}
		if e, err = p.times(e); err != nil {
			return nil, err
		}
		parts = append(parts, e)
	}
}

// part returns nil where a sequence ends.
func (p *gbnf) part() (*expr, error) {
	if p.at == len(p.text) {
		return nil, nil
	}
	switch c := p.text[p.at]; {
	case c == '"':
		return p.literal()
	case c == '[':
		return p.class()
	case c == '.':
		p.at++
		return runes(anyRune), nil
	case c == '(':
		if p.nesting++; p.nesting > maxNesting {
			return nil, fmt.Errorf("parentheses are nested more than %d deep", maxNesting)
		}
		from := p.at
		p.at++
		e, err := p.alternatives()
		p.nesting--
		switch {
		case err != nil || p.take(")"):
		case p.at == len(p.text):
			err = p.unclosed(from, "parenthesis")
		default:
			err = fmt.Errorf("unexpected %q in a parenthesis", p.next())
		}
		return e, err
	}
	if name := p.name(); name != "" {
		return ref(p.rule(name)), nil
	}
	return nil, nil
}
