package constraint

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// GBNF returns the grammar of a text in GBNF, with the rule root for the whole. There are name
// ::= alternatives, "literals", [classes] and [^classes], ., ( ), |, *, +, ?, {n}, {n,}, {,m},
// {n,m} and # comments; escapes are \n, \r, \t, \\, \", \[, \], \xHH, \uHHHH and \UHHHHHHHH, each
// a character. A rule ends with its line, but within parentheses and after ::= and |. A rule that
// begins with itself is a *LeftRecursionError.
func GBNF(grammar string) (*Grammar, error) {
	src, err := parseGBNF(grammar)
	if err != nil {
		return nil, err
	}
	return newGrammar(src)
}

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
	defined map[int]bool
}

func parseGBNF(text string) (*source, error) {
	if len(text) > maxGrammar {
		return nil, fmt.Errorf("the grammar has %d bytes; at most %d are read", len(text), maxGrammar)
	}
	if !utf8.ValidString(text) {
		return nil, fmt.Errorf("the grammar is not valid UTF-8")
	}
	p := &gbnf{text: text, src: &source{}, rules: map[string]int{}, defined: map[int]bool{}}
	p.rule("root")
	for p.space(true); p.at < len(text); p.space(true) {
		if err := p.definition(); err != nil {
			return nil, fmt.Errorf("line %d: %w", 1+strings.Count(text[:min(p.at, len(text))], "\n"), err)
		}
	}
	for i, name := range p.src.names {
		if !p.defined[i] {
			return nil, fmt.Errorf("rule %q is not defined", name)
		}
	}
	return p.src, nil
}

func (p *gbnf) rule(name string) int {
	n, ok := p.rules[name]
	if !ok {
		n = p.src.add(name, none)
		p.rules[name] = n
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
	p.space(false)
	if !p.take("::=") {
		return fmt.Errorf("::= must follow %q", name)
	}
	n := p.rule(name)
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
		return fmt.Errorf("unexpected %q", p.text[p.at])
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
		p.at++
		e, err := p.alternatives()
		if err == nil && !p.take(")") {
			err = fmt.Errorf("a parenthesis is not closed")
		}
		p.nesting--
		return e, err
	}
	if name := p.name(); name != "" {
		return ref(p.rule(name)), nil
	}
	return nil, nil
}

func (p *gbnf) literal() (*expr, error) {
	p.at++
	var b strings.Builder
	for !p.take(`"`) {
		r, err := p.char()
		if err != nil {
			return nil, err
		}
		b.WriteRune(r)
	}
	return text(b.String()), nil
}

func (p *gbnf) class() (*expr, error) {
	p.at++
	not := p.take("^")
	var ranges []runeRange
	for !p.take("]") {
		lo, err := p.char()
		if err != nil {
			return nil, err
		}
		hi := lo
		if strings.HasPrefix(p.text[p.at:], "-") && !strings.HasPrefix(p.text[p.at:], "-]") {
			p.at++
			if hi, err = p.char(); err != nil {
				return nil, err
			}
		}
		if hi < lo {
			return nil, fmt.Errorf("the range %q to %q is empty", lo, hi)
		}
		ranges = append(ranges, runeRange{lo, hi})
	}
	set := newSet(ranges...)
	if not {
		set = set.not()
	}
	return runes(set), nil
}

// char reads a character of a literal or a class.
func (p *gbnf) char() (rune, error) {
	if p.at == len(p.text) {
		return 0, fmt.Errorf("a literal or a class is not closed")
	}
	r, size := utf8.DecodeRuneInString(p.text[p.at:])
	p.at += size
	if r != '\\' {
		return r, nil
	}
	if p.at == len(p.text) {
		return 0, fmt.Errorf("nothing follows a backslash")
	}
	c := p.text[p.at]
	p.at++
	if i := strings.IndexByte(`nrt\"[]`, c); i >= 0 {
		return rune("\n\r\t\\\"[]"[i]), nil
	}
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
	if digits == 0 || p.at+digits > len(p.text) {
		return 0, fmt.Errorf(`the escape \%c is not known, or too short`, c)
	}
	v, err := strconv.ParseUint(p.text[p.at:p.at+digits], 16, 32)
	if err != nil || v > math.MaxInt32 || !utf8.ValidRune(rune(v)) {
		return 0, fmt.Errorf(`\%c%s is no character`, c, p.text[p.at:p.at+digits])
	}
	p.at += digits
	return rune(v), nil
}

// times reads what says how often a part comes.
func (p *gbnf) times(e *expr) (*expr, error) {
	for {
		switch {
		case p.take("*"):
			e = repeat(e, 0, unbounded)
		case p.take("+"):
			e = repeat(e, 1, unbounded)
		case p.take("?"):
			e = repeat(e, 0, 1)
		case p.take("{"):
			inside, _, closed := strings.Cut(p.text[p.at:], "}")
			lo, hi, ranged := strings.Cut(strings.ReplaceAll(inside, " ", ""), ",")
			if !closed {
				return nil, fmt.Errorf("a brace is not closed")
			}
			p.at += len(inside) + 1
			least, err := number(lo, 0)
			if err != nil {
				return nil, err
			}
			most := least
			if ranged {
				if most, err = number(hi, unbounded); err != nil {
					return nil, err
				}
			}
			if most < least || !ranged && lo == "" {
				return nil, fmt.Errorf("{%s} is no number of times", inside)
			}
			e = repeat(e, least, most)
		default:
			return e, nil
		}
	}
}

func number(s string, without int) (int, error) {
	if s == "" {
		return without, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > maxTimes {
		return 0, fmt.Errorf("%q is not a number of times from 0 to %d", s, maxTimes)
	}
	return n, nil
}
