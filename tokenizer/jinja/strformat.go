package jinja

import "strings"

// strFormat is str.format, with the attributes that the sandbox allows.
func (r *run) strFormat(recv Value, a arguments) (Value, error) {
	f := &fieldFormat{run: r, args: a.pos, names: kwDict(a.kw), mark: isMarkup(recv)}
	return f.all(recv)
}

// strFormatMap is str.format_map.
func (r *run) strFormatMap(recv Value, a arguments) (Value, error) {
	v, err := a.bind("format_map", 1, "mapping")
	if err != nil {
		return nil, err
	}
	d, ok := v[0].(*Dict)
	if !ok {
		return nil, typeErr("format_map() argument must be a mapping, not %s", typeName(v[0]))
	}
	f := &fieldFormat{run: r, names: d, mark: isMarkup(recv)}
	return f.all(recv)
}

func isMarkup(v Value) bool {
	_, ok := v.(markup)
	return ok
}

// fieldFormat is one run of str.format.
type fieldFormat struct {
	run    *run
	args   []Value
	names  *Dict
	auto   int // the next number for {}
	manual bool
	mark   bool
}

func (f *fieldFormat) all(recv Value) (Value, error) {
	s, _ := asString(recv)
	out := &buffer{run: f.run}
	if err := f.expand(out, s); err != nil {
		return nil, err
	}
	return likeText(recv, out.String()), nil
}

// expand writes s with its fields replaced.
func (f *fieldFormat) expand(out *buffer, s string) error {
	for s != "" {
		k := strings.IndexAny(s, "{}")
		if k < 0 {
			return out.write(s)
		}
		if err := out.write(s[:k]); err != nil {
			return err
		}
		c := s[k]
		s = s[k+1:]
		if s != "" && s[0] == c {
			if err := out.write(s[:1]); err != nil {
				return err
			}
			s = s[1:]
			continue
		}
		if c == '{' && s == "" {
			return fail(KindValue, "Single '{' encountered in format string")
		}
		if c == '}' {
			return fail(KindValue, "Single '}' encountered in format string")
		}
		end := fieldEnd(s)
		if end < 0 {
			return fail(KindValue, "expected '}' before end of string")
		}
		if err := f.field(out, s[:end]); err != nil {
			return err
		}
		s = s[end+1:]
	}
	return nil
}

// fieldEnd is the position of the brace that closes a field which began before s, or -1.
func fieldEnd(s string) int {
	depth := 1
	for i := range len(s) {
		switch s[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// field writes one field: name, attributes and items, !conversion, :specification.
func (f *fieldFormat) field(out *buffer, s string) error {
	name, rest := s, ""
	bracket := false
	for i := range len(s) {
		if s[i] == '[' {
			bracket = true
		} else if s[i] == ']' {
			bracket = false
		} else if !bracket && (s[i] == '!' || s[i] == ':') {
			name, rest = s[:i], s[i:]
			break
		}
	}
	v, err := f.lookup(name)
	if err != nil {
		return err
	}
	if strings.HasPrefix(rest, "!") {
		if len(rest) < 2 || len(rest) > 2 && rest[2] != ':' {
			return fail(KindValue, "expected ':' after conversion specifier")
		}
		if v, err = f.convert(v, rest[1]); err != nil {
			return err
		}
		rest = rest[2:]
	}
	if len(rest) > 1 {
		return fail(KindUnsupported, "the format specification %s is not supported in chat templates", reprString(rest[1:]))
	}
	text, err := f.run.str(v)
	if err != nil {
		return err
	}
	if f.mark && !isMarkup(v) {
		text = htmlEscaper.Replace(text)
	}
	return out.write(text)
}

func (f *fieldFormat) convert(v Value, how byte) (Value, error) {
	switch how {
	case 's':
		return f.run.newString(f.run.str(v))
	case 'r':
		return f.run.newString(f.run.repr(v))
	case 'a':
		return nil, fail(KindUnsupported, "the conversion !a is not supported in chat templates")
	}
	return nil, fail(KindValue, "Unknown conversion specifier %c", how)
}

// lookup resolves a field name such as 0.role or part[type].
func (f *fieldFormat) lookup(name string) (Value, error) {
	end := strings.IndexAny(name, ".[")
	if end < 0 {
		end = len(name)
	}
	v, err := f.first(name[:end])
	for rest := name[end:]; rest != "" && err == nil; {
		if rest[0] == '.' {
			n := strings.IndexAny(rest[1:], ".[") + 1
			if n == 0 {
				n = len(rest)
			}
			if n == 1 {
				return nil, fail(KindValue, "Empty attribute in format string")
			}
			v, err = f.run.getAttr(v, rest[1:n])
			rest = rest[n:]
			continue
		}
		n := strings.IndexByte(rest, ']')
		if rest[0] != '[' || n < 0 {
			return nil, fail(KindValue, "Missing ']' in format string")
		}
		if n == 1 {
			return nil, fail(KindValue, "Empty attribute in format string")
		}
		var key Value = rest[1:n]
		if i, e := parseInt(rest[1:n], 10); e == nil && isAllDigits(rest[1:n]) {
			key = i
		}
		v, err = f.run.getItem(v, key)
		if rest = rest[n+1:]; rest != "" && rest[0] != '.' && rest[0] != '[' {
			return nil, fail(KindValue, "Only '.' or '[' may follow ']' in format field specifier")
		}
	}
	return v, err
}

// first is the argument that a field begins with: numbered, named, or the next one.
func (f *fieldFormat) first(name string) (Value, error) {
	n := int64(0)
	switch {
	case name == "":
		if f.manual {
			return nil, fail(KindValue, "cannot switch from manual field specification to automatic field numbering")
		}
		n = int64(f.auto)
		f.auto++
	case isAllDigits(name):
		if f.auto > 0 {
			return nil, fail(KindValue, "cannot switch from manual field specification to automatic field numbering")
		}
		f.manual = true
		v, err := parseInt(name, 10)
		small, ok := v.(int64)
		if err != nil || !ok {
			return nil, fail(KindValue, "Too many decimal digits in format string")
		}
		n = small
	default:
		v, ok := f.names.Get(name)
		if !ok {
			return nil, fail(KindKey, "%s", reprString(name))
		}
		return v, nil
	}
	if n >= int64(len(f.args)) {
		return nil, fail(KindIndex, "tuple index out of range")
	}
	return f.args[n], nil
}
