package constraint

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// next returns the character that comes next.
func (p *gbnf) next() rune {
	r, _ := utf8.DecodeRuneInString(p.text[p.at:])
	return r
}

// unclosed reports what begins at a place and does not end.
func (p *gbnf) unclosed(from int, what string) error {
	p.at = from
	return fmt.Errorf("a %s is not closed", what)
}

func (p *gbnf) literal() (*expr, error) {
	from := p.at
	p.at++
	var b strings.Builder
	for !p.take(`"`) {
		if p.at == len(p.text) {
			return nil, p.unclosed(from, "literal")
		}
		r, err := p.char()
		if err != nil {
			return nil, err
		}
		b.WriteRune(r)
	}
	return text(b.String()), nil
}

func (p *gbnf) class() (*expr, error) {
	from := p.at
	p.at++
	not := p.take("^")
	var ranges []runeRange
	for !p.take("]") {
		if p.at == len(p.text) {
			return nil, p.unclosed(from, "class")
		}
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
	r, size := utf8.DecodeRuneInString(p.text[p.at:])
	if size == 0 {
		return 0, fmt.Errorf("a range has no end")
	}
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
				return nil, fmt.Errorf("{%s} is not a number of times", inside)
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
