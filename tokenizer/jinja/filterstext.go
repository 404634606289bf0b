package jinja

import (
	"strings"
)

func filterTrim(r *run, in Value, a arguments) (Value, error) {
	v, err := a.bind("trim", 0, "chars")
	if err != nil {
		return nil, err
	}
	text, err := r.softStr(in)
	if err != nil {
		return nil, err
	}
	s, _ := asString(text)
	t, err := stripper("strip", true, true)(r, s, arguments{pos: []Value{optional(v[0], nil)}})
	if err != nil {
		return nil, err
	}
	return likeText(text, t.(string)), nil
}

// filterTitle capitalizes what follows white space, a hyphen or an opening bracket; str.title has
// other rules.
func filterTitle(r *run, in Value, a arguments) (Value, error) {
	if _, err := a.bind("title", 0); err != nil {
		return nil, err
	}
	text, err := r.str(in)
	if err != nil {
		return nil, err
	}
	isBreak := func(c rune) bool { return isSpace(c) || strings.ContainsRune("-({[<", c) }
	var b strings.Builder
	for text != "" {
		end := strings.IndexFunc(text, isBreak)
		if end < 0 {
			end = len(text)
		}
		word := text[:end]
		k := byteOffset(word, 1)
		b.WriteString(upper(word[:k]) + lower(word[k:]))
		rest := strings.TrimLeftFunc(text[end:], isBreak)
		b.WriteString(lower(text[end : len(text)-len(rest)]))
		text = rest
	}
	return r.newString(b.String(), nil)
}

func filterReplace(r *run, in Value, a arguments) (Value, error) {
	v, err := a.bind("replace", 2, "old", "new", "count")
	if err != nil {
		return nil, err
	}
	var text [3]string
	for i, x := range []Value{in, v[0], v[1]} {
		if text[i], err = r.str(x); err != nil {
			return nil, err
		}
	}
	n, err := size(optional(v[2], int64(-1)))
	if err != nil {
		return nil, err
	}
	return r.replaced(text[0], text[1], text[2], n)
}

func filterIndent(r *run, in Value, a arguments) (Value, error) {
	v, err := a.bind("indent", 0, "width", "first", "blank")
	if err != nil {
		return nil, err
	}
	if _, ok := asString(in); !ok {
		if u, ok := in.(*undefined); ok {
			return nil, u.fail()
		}
		return nil, typeErr("unsupported operand type(s) for +=: '%s' and 'str'", typeName(in))
	}
	unit, isText := asString(v[0])
	if !isText {
		n := 4
		if v[0] != missing {
			if n, err = size(v[0]); err != nil {
				return nil, err
			}
		}
		if err := r.charge(max(n, 0)); err != nil {
			return nil, err
		}
		unit = strings.Repeat(" ", max(n, 0))
	}
	s, _ := asString(in)
	out := &buffer{run: r}
	first := v[1] != missing && truth(v[1])
	blank := v[2] != missing && truth(v[2])
	for i, line := range splitLines(s+"\n", false) {
		prefix := ""
		if i > 0 {
			prefix = "\n"
		}
		if i == 0 && first || i > 0 && (blank || line != "") {
			prefix += unit
		}
		if err := out.write(prefix); err != nil {
			return nil, err
		}
		if err := out.write(line); err != nil {
			return nil, err
		}
	}
	return likeText(in, out.String()), nil
}

func filterTruncate(r *run, in Value, a arguments) (Value, error) {
	v, err := a.bind("truncate", 0, "length", "killwords", "end", "leeway")
	if err != nil {
		return nil, err
	}
	end, ok := asString(optional(v[2], "..."))
	if !ok {
		return nil, typeErr("truncate wants a str as end, not %s", typeName(v[2]))
	}
	n, err := size(optional(v[0], int64(255)))
	if err != nil {
		return nil, err
	}
	leeway, err := size(optional(v[3], int64(5)))
	if err != nil {
		return nil, err
	}
	switch {
	case n < strLen(end):
		return nil, fail(KindAssert, "expected length >= %d, got %d", strLen(end), n)
	case leeway < 0:
		return nil, fail(KindAssert, "expected leeway >= 0, got %d", leeway)
	}
	count, sized := length(in)
	if !sized {
		return nil, typeErr("object of type '%s' has no len()", typeName(in))
	}
	if count <= n+leeway {
		return in, nil
	}
	s, ok := asString(in)
	if !ok {
		return nil, typeErr("truncate wants str, not %s", typeName(in))
	}
	cut := s[:byteOffset(s, n-strLen(end))]
	if v[1] == missing || !truth(v[1]) {
		if k := strings.LastIndexByte(cut, ' '); k >= 0 {
			cut = cut[:k]
		}
	}
	return r.newString(cut+end, nil)
}

func filterWordcount(r *run, in Value, a arguments) (Value, error) {
	if _, err := a.bind("wordcount", 0); err != nil {
		return nil, err
	}
	s, err := r.str(in)
	n, inWord := int64(0), false
	for _, c := range s {
		word := isWordRune(c)
		if word && !inWord {
			n++
		}
		inWord = word
	}
	return n, err
}

func filterJoin(r *run, in Value, a arguments) (Value, error) {
	v, err := a.bind("join", 0, "d", "attribute")
	if err != nil {
		return nil, err
	}
	sep := ""
	if v[0] != missing {
		if sep, err = r.str(v[0]); err != nil {
			return nil, err
		}
	}
	it, err := r.iter(in)
	if err != nil {
		return nil, err
	}
	p := newPath(optional(v[1], nil))
	return r.joined(sep, it, func(_ int, item Value) (string, error) {
		item, err := r.get(p, item, nil)
		if err != nil {
			return "", err
		}
		return r.str(item)
	})
}
