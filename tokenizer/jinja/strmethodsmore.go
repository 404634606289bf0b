package jinja

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

func (r *run) strReplace(s string, a arguments) (Value, error) {
	v, err := a.bind("replace", 2, "old", "new", "count")
	if err != nil {
		return nil, err
	}
	from, err := textArg("replace", v[0])
	if err != nil {
		return nil, err
	}
	to, err := textArg("replace", v[1])
	if err != nil {
		return nil, err
	}
	n := -1
	if v[2] != missing {
		if n, err = size(v[2]); err != nil {
			return nil, err
		}
	}
	return r.replaced(s, from, to, n)
}

// replaced is s with the first n occurrences of from, all if n < 0, replaced by to.
func (r *run) replaced(s, from, to string, n int) (Value, error) {
	times := strings.Count(s, from)
	if n >= 0 {
		times = min(times, n)
	}
	grow := len(to) - len(from)
	if grow > 0 && times > r.cfg.MaxOutputBytes/grow {
		return nil, fail(KindLimit, "a replacement that makes more than %d bytes", r.cfg.MaxOutputBytes)
	}
	if err := r.charge(len(s) + times*max(grow, 0)); err != nil {
		return nil, err
	}
	return strings.Replace(s, from, to, n), nil
}

func (r *run) strJoin(s string, a arguments) (Value, error) {
	v, err := a.bind("join", 1, "iterable")
	if err != nil {
		return nil, err
	}
	it, err := r.iter(v[0])
	if err != nil {
		return nil, typeErr("can only join an iterable")
	}
	return r.joined(s, it, func(i int, v Value) (string, error) {
		t, ok := asString(v)
		if !ok {
			return "", typeErr("sequence item %d: expected str instance, %s found", i, typeName(v))
		}
		return t, nil
	})
}

// joined returns the texts of the items with sep between them.
func (r *run) joined(sep string, it iterator, text func(i int, v Value) (string, error)) (Value, error) {
	out := &buffer{run: r}
	for i := 0; ; i++ {
		v, ok, err := it.next(r)
		if err != nil {
			return nil, err
		}
		if !ok {
			return out.String(), nil
		}
		t, err := text(i, v)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			if err := out.write(sep); err != nil {
				return nil, err
			}
		}
		if err := out.write(t); err != nil {
			return nil, err
		}
	}
}

func justifier(name string, align byte) textFunc {
	return func(r *run, s string, a arguments) (Value, error) {
		v, err := a.bind(name, 1, "width", "fillchar")
		if err != nil {
			return nil, err
		}
		width, err := size(v[0])
		if err != nil {
			return nil, err
		}
		fill, ok := asString(optional(v[1], " "))
		if !ok || strLen(fill) != 1 {
			return nil, typeErr("The fill character must be exactly one character long")
		}
		return r.justify(s, fill, align, width)
	}
}

// justify fills s up to width characters. Of an odd number to be put on both sides, str.center puts
// more on the left if the width is odd.
func (r *run) justify(s, fill string, align byte, width int) (Value, error) {
	n := width - strLen(s)
	if n <= 0 {
		return s, nil
	}
	if err := r.charge(len(s) + n*len(fill)); err != nil {
		return nil, err
	}
	left := n
	switch align {
	case '<':
		left = 0
	case '^':
		left = n/2 + n&width&1
	}
	return strings.Repeat(fill, left) + s + strings.Repeat(fill, n-left), nil
}

func (r *run) strZfill(s string, a arguments) (Value, error) {
	v, err := a.bind("zfill", 1, "width")
	if err != nil {
		return nil, err
	}
	width, err := size(v[0])
	n := width - strLen(s)
	if err != nil || n <= 0 {
		return s, err
	}
	if err := r.charge(len(s) + n); err != nil {
		return nil, err
	}
	sign := ""
	if s != "" && (s[0] == '+' || s[0] == '-') {
		sign, s = s[:1], s[1:]
	}
	return sign + strings.Repeat("0", n) + s, nil
}

func (r *run) strExpandtabs(s string, a arguments) (Value, error) {
	v, err := a.bind("expandtabs", 0, "tabsize")
	if err != nil {
		return nil, err
	}
	tab, err := size(optional(v[0], int64(8)))
	if err != nil {
		return nil, err
	}
	out := &buffer{run: r}
	column := 0
	for _, c := range s {
		t := string(c)
		switch {
		case c == '\t' && tab > 0:
			n := tab - column%tab
			if err := r.charge(n); err != nil {
				return nil, err
			}
			t = strings.Repeat(" ", n)
			column += n
		case c == '\t':
			t = ""
		case c == '\n' || c == '\r':
			column = 0
		default:
			column++
		}
		if err := out.write(t); err != nil {
			return nil, err
		}
	}
	return out.String(), nil
}

func isLetterRune(c rune) bool { return unicode.IsLetter(c) }

// each is a method that tells whether there are characters and all of them are of a kind.
func each(name string, is func(c rune) bool) textFunc {
	return func(_ *run, s string, a arguments) (Value, error) {
		_, err := a.bind(name, 0)
		return s != "" && strings.IndexFunc(s, func(c rune) bool { return !is(c) }) < 0, err
	}
}

// cased is a method that tells whether there are cased characters and all of them are of one case.
func cased(name string, is func(c rune) bool) textFunc {
	return func(_ *run, s string, a arguments) (Value, error) {
		_, err := a.bind(name, 0)
		return allCased(s, is), err
	}
}

func allCased(s string, is func(c rune) bool) bool {
	any := false
	for _, c := range s {
		if isCased(c) {
			if !is(c) {
				return false
			}
			any = true
		}
	}
	return any
}

func (r *run) strIsprintable(s string, a arguments) (Value, error) {
	_, err := a.bind("isprintable", 0)
	return strings.IndexFunc(s, func(c rune) bool { return !unicode.IsPrint(c) }) < 0, err
}

func (r *run) strIsascii(s string, a arguments) (Value, error) {
	_, err := a.bind("isascii", 0)
	return isASCII(s), err
}

func (r *run) strIstitle(s string, a arguments) (Value, error) {
	_, err := a.bind("istitle", 0)
	inWord, any := false, false
	for _, c := range s {
		first := isUpperRune(c) || unicode.IsTitle(c)
		if first && inWord || isLowerRune(c) && !inWord {
			return false, err
		}
		inWord = first || isLowerRune(c)
		any = any || inWord
	}
	return any, err
}

func (r *run) strIsidentifier(s string, a arguments) (Value, error) {
	_, err := a.bind("isidentifier", 0)
	for i, c := range s {
		if !isIdentRune(c, i > 0) {
			return false, err
		}
	}
	return s != "" && utf8.ValidString(s), err
}
