package constraint

import (
	"fmt"
	"strings"
	"unicode"
)

// Sets of characters as of ECMA-262. A dot does not match the ends of lines.
var (
	ecmaDigit   = newSet(runeRange{'0', '9'})
	ecmaWord    = newSet(runeRange{'0', '9'}, runeRange{'A', 'Z'}, runeRange{'_', '_'}, runeRange{'a', 'z'})
	ecmaLineEnd = setOf("\n\r\u2028\u2029")
	ecmaSpace   = append(setOf("\t\n\v\f\r\u2028\u2029\ufeff"), tableSet(unicode.Zs)...)
)

func tableSet(t *unicode.RangeTable) runeSet {
	var ranges []runeRange
	add := func(lo, hi, stride rune) {
		if stride == 1 {
			ranges = append(ranges, runeRange{lo, hi})
			return
		}
		for r := lo; r <= hi; r += stride {
			ranges = append(ranges, runeRange{r, r})
		}
	}
	for _, r := range t.R16 {
		add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
	}
	for _, r := range t.R32 {
		add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
	}
	return newSet(ranges...)
}

// class reads a class after its bracket.
func (x *ecma) class() (runeSet, error) {
	not := x.take("^")
	var ranges []runeRange
	for !x.take("]") {
		set, err := x.classAtom()
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(x.in, "-") && !strings.HasPrefix(x.in, "-]") && single(set) {
			x.in = x.in[1:]
			to, err := x.classAtom()
			if err != nil {
				return nil, err
			}
			if !single(to) { // then the hyphen is one
				to = append(to, set[0], runeRange{'-', '-'})
			} else if to[0].lo < set[0].lo {
				return nil, fmt.Errorf("the range %q to %q is empty", set[0].lo, to[0].lo)
			} else {
				to = runeSet{{set[0].lo, to[0].hi}}
			}
			set = to
		}
		ranges = append(ranges, set...)
	}
	if set := newSet(ranges...); not {
		return set.not(), nil
	} else {
		return set, nil
	}
}

func single(s runeSet) bool { return len(s) == 1 && s[0].lo == s[0].hi }

func (x *ecma) classAtom() (runeSet, error) {
	switch {
	case x.in == "":
		return nil, fmt.Errorf("a class is not closed")
	case x.take(`\b`):
		return newSet(runeRange{'\b', '\b'}), nil
	case x.take(`\-`):
		return newSet(runeRange{'-', '-'}), nil
	case x.take(`\`):
		return x.escape()
	}
	r := x.next()
	return newSet(runeRange{r, r}), nil
}
