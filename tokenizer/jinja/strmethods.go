package jinja

import (
	"strings"
	"unicode/utf8"
)

type textFunc = func(r *run, s string, a arguments) (Value, error)

// strMethods are the methods of str except format and format_map.
var strMethods = map[string]textFunc{
	"upper":        changed("upper", upper),
	"lower":        changed("lower", lower),
	"title":        changed("title", titleCase),
	"capitalize":   changed("capitalize", capitalize),
	"swapcase":     changed("swapcase", swapCase),
	"casefold":     (*run).strCasefold,
	"strip":        stripper("strip", true, true),
	"lstrip":       stripper("lstrip", true, false),
	"rstrip":       stripper("rstrip", false, true),
	"split":        (*run).strSplit,
	"rsplit":       (*run).strRsplit,
	"splitlines":   (*run).strSplitlines,
	"partition":    partitioner("partition", strings.Index),
	"rpartition":   partitioner("rpartition", strings.LastIndex),
	"startswith":   affix("startswith", strings.HasPrefix),
	"endswith":     affix("endswith", strings.HasSuffix),
	"removeprefix": remover("removeprefix", strings.TrimPrefix),
	"removesuffix": remover("removesuffix", strings.TrimSuffix),
	"replace":      (*run).strReplace,
	"find":         finder("find", strings.Index, false),
	"rfind":        finder("rfind", strings.LastIndex, false),
	"index":        finder("index", strings.Index, true),
	"rindex":       finder("rindex", strings.LastIndex, true),
	"count":        (*run).strCount,
	"join":         (*run).strJoin,
	"ljust":        justifier("ljust", '<'),
	"rjust":        justifier("rjust", '>'),
	"center":       justifier("center", '^'),
	"zfill":        (*run).strZfill,
	"expandtabs":   (*run).strExpandtabs,
	"isdigit":      each("isdigit", isDigitRune),
	"isdecimal":    each("isdecimal", isDecimalRune),
	"isnumeric":    each("isnumeric", isNumericRune),
	"isalpha":      each("isalpha", isLetterRune),
	"isalnum":      each("isalnum", isAlnumRune),
	"isspace":      each("isspace", isSpace),
	"isprintable":  (*run).strIsprintable,
	"isascii":      (*run).strIsascii,
	"islower":      cased("islower", isLowerRune),
	"isupper":      cased("isupper", isUpperRune),
	"istitle":      (*run).strIstitle,
	"isidentifier": (*run).strIsidentifier,
	"encode":       refused("encode"),
	"maketrans":    refused("maketrans"),
	"translate":    refused("translate"),
}

// refused is a method that Python has and this package does not.
func refused(name string) textFunc {
	return func(*run, string, arguments) (Value, error) {
		return nil, fail(KindUnsupported, "the method str.%s is not supported", name)
	}
}

// changed is a method without arguments that returns a changed string.
func changed(name string, fn func(string) string) textFunc {
	return func(r *run, s string, a arguments) (Value, error) {
		if _, err := a.bind(name, 0); err != nil {
			return nil, err
		}
		return r.newString(fn(s), nil)
	}
}

func (r *run) strCasefold(s string, a arguments) (Value, error) {
	if !isASCII(s) {
		return nil, fail(KindUnsupported, "str.casefold is supported for ASCII only")
	}
	return changed("casefold", lower)(r, s, a)
}

// textArg is an argument that must be a str.
func textArg(fn string, v Value) (string, error) {
	s, ok := asString(v)
	if !ok {
		return "", typeErr("%s() argument must be str, not %s", fn, typeName(v))
	}
	return s, nil
}

// optional is v, or def where it is missing or None.
func optional(v, def Value) Value {
	if v == missing || v == nil {
		return def
	}
	return v
}

func stripper(name string, left, right bool) textFunc {
	return func(_ *run, s string, a arguments) (Value, error) {
		v, err := a.bind(name, 0, "chars")
		if err != nil {
			return nil, err
		}
		cut := isSpace
		if set := optional(v[0], nil); set != nil {
			chars, ok := asString(set)
			if !ok {
				return nil, typeErr("%s arg must be None or str", name)
			}
			cut = func(c rune) bool { return strings.ContainsRune(chars, c) }
		}
		if left {
			s = strings.TrimLeftFunc(s, cut)
		}
		if right {
			s = strings.TrimRightFunc(s, cut)
		}
		return s, nil
	}
}

// splitArgs reads the arguments of split and rsplit; space means that no separator is given.
func splitArgs(name string, a arguments) (sep string, space bool, max int, err error) {
	v, err := a.bind(name, 0, "sep", "maxsplit")
	if err != nil {
		return "", false, 0, err
	}
	max = -1
	if v[1] != missing {
		if max, err = size(v[1]); err != nil {
			return "", false, 0, err
		}
	}
	given := optional(v[0], nil)
	if given == nil {
		return "", true, max, nil
	}
	sep, ok := asString(given)
	if !ok {
		return "", false, 0, typeErr("must be str or None, not %s", typeName(given))
	}
	if sep == "" {
		return "", false, 0, fail(KindValue, "empty separator")
	}
	return sep, false, max, nil
}

func (r *run) strSplit(s string, a arguments) (Value, error) {
	sep, space, max, err := splitArgs("split", a)
	switch {
	case err != nil:
		return nil, err
	case space:
		return r.newStrings(splitSpace(s, max))
	case max < 0:
		return r.newStrings(strings.Split(s, sep))
	}
	return r.newStrings(strings.SplitN(s, sep, max+1))
}

func (r *run) strRsplit(s string, a arguments) (Value, error) {
	sep, space, max, err := splitArgs("rsplit", a)
	if err != nil {
		return nil, err
	}
	var parts []string // last one first
	if space {
		parts = rsplitSpace(s, max)
	} else {
		for max < 0 || len(parts) < max {
			k := strings.LastIndex(s, sep)
			if k < 0 {
				break
			}
			parts = append(parts, s[k+len(sep):])
			s = s[:k]
		}
		parts = append(parts, s)
	}
	for i, j := 0, len(parts)-1; i < j; i, j = i+1, j-1 {
		parts[i], parts[j] = parts[j], parts[i]
	}
	return r.newStrings(parts)
}

func (r *run) strSplitlines(s string, a arguments) (Value, error) {
	v, err := a.bind("splitlines", 0, "keepends")
	if err != nil {
		return nil, err
	}
	keep, err := intFlag(v[0])
	if err != nil {
		return nil, err
	}
	return r.newStrings(splitLines(s, keep))
}

func partitioner(name string, find func(s, sep string) int) textFunc {
	return func(_ *run, s string, a arguments) (Value, error) {
		v, err := a.bind(name, 1, "sep")
		if err != nil {
			return nil, err
		}
		sep, ok := asString(v[0])
		if !ok {
			return nil, typeErr("must be str, not %s", typeName(v[0]))
		}
		if sep == "" {
			return nil, fail(KindValue, "empty separator")
		}
		k := find(s, sep)
		if k >= 0 {
			return NewTuple(s[:k], sep, s[k+len(sep):]), nil
		}
		if name == "rpartition" {
			return NewTuple("", "", s), nil
		}
		return NewTuple(s, "", ""), nil
	}
}

// part is s[start:stop] by characters, as the methods that search take it, and the byte offset of
// its start; ok is false if start lies past the end, where not even the empty string is found.
func part(s string, start, stop Value) (sub string, offset int, ok bool, err error) {
	start, stop = optional(start, nil), optional(stop, nil)
	if start == nil && stop == nil {
		return s, 0, true, nil
	}
	n := strLen(s)
	from, _, _, count, err := sliceBounds([3]Value{start, stop, nil}, n)
	if err != nil {
		return "", 0, false, err
	}
	low, to := 0, n
	if start != nil {
		low, _ = size(start)
	}
	if low < 0 {
		low = max(low+n, 0)
	}
	if stop != nil {
		to, _ = size(stop)
	}
	if to < 0 {
		to = max(to+n, 0)
	}
	offset = byteOffset(s, from)
	return s[offset : offset+byteOffset(s[offset:], count)], offset, low <= min(to, n), nil
}

func affix(name string, has func(s, t string) bool) textFunc {
	return func(_ *run, s string, a arguments) (Value, error) {
		v, err := a.bind(name, 1, "prefix", "start", "end")
		if err != nil {
			return nil, err
		}
		sub, _, ok, err := part(s, v[1], v[2])
		if err != nil {
			return nil, err
		}
		affixes := []Value{v[0]}
		if t, isTuple := v[0].(*Tuple); isTuple {
			affixes = t.items
		}
		for _, x := range affixes {
			t, isText := asString(x)
			if !isText {
				return nil, typeErr("%s first arg must be str or a tuple of str, not %s", name, typeName(x))
			}
			if ok && has(sub, t) {
				return true, nil
			}
		}
		return false, nil
	}
}

func remover(name string, remove func(s, t string) string) textFunc {
	return func(_ *run, s string, a arguments) (Value, error) {
		v, err := a.bind(name, 1, "affix")
		if err != nil {
			return nil, err
		}
		t, err := textArg(name, v[0])
		return remove(s, t), err
	}
}

// finder is a method that looks for a part and returns its position, or -1 or an error.
func finder(name string, find func(s, sub string) int, must bool) textFunc {
	return func(_ *run, s string, a arguments) (Value, error) {
		v, err := a.bind(name, 1, "sub", "start", "end")
		if err != nil {
			return nil, err
		}
		t, err := textArg(name, v[0])
		if err != nil {
			return nil, err
		}
		sub, offset, ok, err := part(s, v[1], v[2])
		if err != nil {
			return nil, err
		}
		if k := find(sub, t); ok && k >= 0 {
			return int64(utf8.RuneCountInString(s[:offset+k])), nil
		}
		if must {
			return nil, fail(KindValue, "substring not found")
		}
		return int64(-1), nil
	}
}

func (r *run) strCount(s string, a arguments) (Value, error) {
	v, err := a.bind("count", 1, "sub", "start", "end")
	if err != nil {
		return nil, err
	}
	t, err := textArg("count", v[0])
	if err != nil {
		return nil, err
	}
	sub, _, ok, err := part(s, v[1], v[2])
	if !ok || err != nil {
		return int64(0), err
	}
	return int64(strings.Count(sub, t)), nil
}
