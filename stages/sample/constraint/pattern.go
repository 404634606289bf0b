package constraint

import (
	"fmt"
	"regexp/syntax"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ecma translates an expression of ECMA-262, of which JSON schemas speak, to the dialect of
// package regexp.
type ecma struct {
	in  string
	out strings.Builder
}

// patternDFA returns the automaton of the texts in which an expression matches somewhere.
func patternDFA(expression string) (*dfa, error) {
	if len(expression) > maxPatternBytes {
		return nil, &LimitError{What: "bytes of a pattern", Limit: maxPatternBytes}
	}
	x := &ecma{in: expression}
	if err := x.translate(); err != nil {
		return nil, err
	}
	return searchDFA(x.out.String())
}

// searchDFA is regexpDFA for the texts in which an expression matches somewhere.
func searchDFA(expression string) (*dfa, error) {
	if _, err := syntax.Parse(expression, syntax.Perl); err != nil {
		return nil, err
	}
	d, err := regexpDFA(`(?s:.*)(?:` + expression + `)(?s:.*)`)
	if err != nil {
		return nil, err
	}
	return d.minimal(), nil
}

func (x *ecma) take(prefix string) bool {
	rest, ok := strings.CutPrefix(x.in, prefix)
	if ok {
		x.in = rest
	}
	return ok
}

func (x *ecma) next() rune {
	r, size := utf8.DecodeRuneInString(x.in)
	x.in = x.in[size:]
	return r
}

func (x *ecma) translate() error {
	for x.in != "" {
		switch {
		case strings.HasPrefix(x.in, "(?"):
			if err := x.group(); err != nil {
				return err
			}
		case x.take("."):
			x.set(ecmaLineEnd.not())
		case x.take("["):
			set, err := x.class()
			if err != nil {
				return err
			}
			x.set(set)
		case x.take(`\b`):
			x.out.WriteString(`\b`)
		case x.take(`\B`):
			x.out.WriteString(`\B`)
		case x.take(`\`):
			set, err := x.escape()
			if err != nil {
				return err
			}
			x.set(set)
		default:
			x.out.WriteRune(x.next())
		}
	}
	return nil
}

// group copies the beginning of a group. All groups are alike here: nothing asks what one matched.
func (x *ecma) group() error {
	name, _, named := strings.Cut(x.in, ">")
	switch {
	case x.take("(?:"):
	case strings.HasPrefix(x.in, "(?=") || strings.HasPrefix(x.in, "(?!") || strings.HasPrefix(x.in, "(?<=") || strings.HasPrefix(x.in, "(?<!"):
		return fmt.Errorf("the expression looks around, with %s", x.in[:3])
	case strings.HasPrefix(x.in, "(?<") && named:
		x.in = x.in[len(name)+1:]
	default:
		return fmt.Errorf("no group begins with %.3s", x.in)
	}
	x.out.WriteString("(?:")
	return nil
}

// set writes a set of characters.
func (x *ecma) set(set runeSet) {
	if len(set) == 0 {
		x.out.WriteString(`[^\x00-\x{10FFFF}]`)
		return
	}
	x.out.WriteByte('[')
	for _, r := range set {
		fmt.Fprintf(&x.out, `\x{%X}-\x{%X}`, r.lo, r.hi)
	}
	x.out.WriteByte(']')
}

// escape reads what follows a backslash.
func (x *ecma) escape() (runeSet, error) {
	if x.in == "" {
		return nil, fmt.Errorf("nothing follows a backslash")
	}
	switch r := x.next(); r {
	case 'd':
		return ecmaDigit, nil
	case 'D':
		return ecmaDigit.not(), nil
	case 'w':
		return ecmaWord, nil
	case 'W':
		return ecmaWord.not(), nil
	case 's':
		return newSet(ecmaSpace...), nil
	case 'S':
		return newSet(ecmaSpace...).not(), nil
	case 'p', 'P':
		return x.property(r == 'P')
	case 'k', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return nil, fmt.Errorf(`the expression refers back to a group, with \%c`, r)
	default:
		r, err := x.char(r)
		return newSet(runeRange{r, r}), err
	}
}

// char returns the one character for which an escape stands.
func (x *ecma) char(r rune) (rune, error) {
	switch r {
	case 't', 'n', 'v', 'f', 'r':
		return map[rune]rune{'t': '\t', 'n': '\n', 'v': '\v', 'f': '\f', 'r': '\r'}[r], nil
	case '0':
		return 0, nil
	case 'c':
		if x.in != "" && unicode.IsLetter(rune(x.in[0])) && x.in[0] < utf8.RuneSelf {
			return x.next() & 31, nil
		}
	case 'x':
		return x.hex(2)
	case 'u':
		if x.take("{") {
			digits, rest, closed := strings.Cut(x.in, "}")
			x.in = digits
			c, err := x.hex(len(digits))
			if x.in = rest; !closed {
				err = fmt.Errorf(`\u{ is not closed`)
			}
			return c, err
		}
		return x.pair()
	default:
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return r, nil
		}
	}
	return 0, fmt.Errorf(`the escape \%c is not known`, r)
}

// pair reads \u's digits, and those of a second one if the two are halves of one character.
func (x *ecma) pair() (rune, error) {
	r, err := x.hex(4)
	if err != nil || r < surrogateLow || r > surrogateHigh {
		return r, err
	}
	if r < 0xdc00 && x.take(`\u`) {
		low, err := x.hex(4)
		if err != nil || low < 0xdc00 || low > surrogateHigh {
			return 0, fmt.Errorf(`half a character, \u%04x`, r)
		}
		return (r-surrogateLow)<<10 + low - 0xdc00 + 0x10000, nil
	}
	return 0, fmt.Errorf(`half a character, \u%04x`, r)
}

func (x *ecma) hex(n int) (rune, error) {
	var r rune
	if n == 0 || len(x.in) < n || n > 6 {
		return 0, fmt.Errorf("an escape has too few digits, or too many")
	}
	if _, err := fmt.Sscanf(x.in[:n], "%x", &r); err != nil || strings.Trim(x.in[:n], "0123456789abcdefABCDEF") != "" || r > utf8.MaxRune {
		return 0, fmt.Errorf("%q is not a character", x.in[:n])
	}
	x.in = x.in[n:]
	return r, nil
}

// property reads the braces of \p.
func (x *ecma) property(not bool) (runeSet, error) {
	name, rest, closed := strings.Cut(x.in, "}")
	name, opened := strings.CutPrefix(name, "{")
	if !opened || !closed {
		return nil, fmt.Errorf(`\p is without braces`)
	}
	x.in = rest
	for _, prefix := range []string{"gc=", "General_Category=", "sc=", "Script="} {
		name = strings.TrimPrefix(name, prefix)
	}
	if short, ok := unicode.CategoryAliases[name]; ok {
		name = short
	}
	t := unicode.Categories[name]
	if t == nil {
		t = unicode.Scripts[name]
	}
	if t == nil {
		t = unicode.Properties[name]
	}
	if t == nil {
		return nil, fmt.Errorf(`the property \p{%s} is not known`, name)
	}
	set := tableSet(t)
	if not {
		set = set.not()
	}
	return set, nil
}
