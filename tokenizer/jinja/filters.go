package jinja

import "strings"

// filterFunc is a filter: in is the value before the bar.
type filterFunc = func(r *run, in Value, a arguments) (Value, error)

// filters are those of the language that make sense in a prompt.
var filters = map[string]filterFunc{
	"attr":        filterAttr,
	"batch":       filterBatch,
	"capitalize":  textFilter("capitalize", capitalize),
	"center":      filterCenter,
	"count":       filterLength,
	"d":           filterDefault,
	"default":     filterDefault,
	"dictsort":    filterDictsort,
	"e":           filterEscape,
	"escape":      filterEscape,
	"first":       filterFirst,
	"forceescape": filterForceEscape,
	"groupby":     filterGroupby,
	"indent":      filterIndent,
	"items":       filterItems,
	"join":        filterJoin,
	"last":        filterLast,
	"length":      filterLength,
	"list":        filterList,
	"lower":       textFilter("lower", lower),
	"map":         filterMap,
	"max":         extremeFilter("max", ">"),
	"min":         extremeFilter("min", "<"),
	"reject":      selector("reject", false, false),
	"rejectattr":  selector("rejectattr", true, false),
	"replace":     filterReplace,
	"reverse":     filterReverse,
	"safe":        filterSafe,
	"select":      selector("select", false, true),
	"selectattr":  selector("selectattr", true, true),
	"slice":       filterSlice,
	"sort":        filterSort,
	"string":      filterString,
	"sum":         filterSum,
	"title":       filterTitle,
	"tojson":      filterToJSON,
	"trim":        filterTrim,
	"truncate":    filterTruncate,
	"unique":      filterUnique,
	"upper":       textFilter("upper", upper),
	"urlencode":   filterURLEncode,
	"wordcount":   filterWordcount,
}

// unsupportedFilters are those that the language has besides.
var unsupportedFilters = map[string]bool{
	"abs": true, "filesizeformat": true, "float": true, "format": true, "int": true, "pprint": true, "random": true, "round": true,
	"striptags": true, "urlize": true, "wordwrap": true, "xmlattr": true,
}

func unknownFilter(name string) string {
	if unsupportedFilters[name] {
		return "the filter " + reprString(name) + " is not supported in chat templates"
	}
	return "No filter named " + reprString(name) + "."
}

func unknownKind(unsupported map[string]bool, name string) Kind {
	if unsupported[name] {
		return KindUnsupported
	}
	return KindAssertion
}

// filter applies a filter by name.
func (r *run) filter(name string, in Value, a arguments) (Value, error) {
	fn := filters[name]
	if fn == nil {
		if unsupportedFilters[name] {
			return nil, fail(KindUnsupported, "%s", unknownFilter(name))
		}
		return nil, fail(KindRuntime, "%s", unknownFilter(name))
	}
	return fn(r, in, a)
}

// softStr is in as a string that keeps its mark.
func (r *run) softStr(in Value) (Value, error) {
	if _, ok := asString(in); ok {
		return in, nil
	}
	return r.newString(r.str(in))
}

// textFilter is a filter that changes the text of its value.
func textFilter(name string, fn func(string) string) filterFunc {
	return func(r *run, in Value, a arguments) (Value, error) {
		if _, err := a.bind(name, 0); err != nil {
			return nil, err
		}
		v, err := r.softStr(in)
		if err != nil {
			return nil, err
		}
		s, _ := asString(v)
		t := fn(s)
		return likeText(v, t), r.charge(len(t))
	}
}

func filterAttr(r *run, in Value, a arguments) (Value, error) {
	v, err := a.bind("attr", 1, "name")
	if err != nil {
		return nil, err
	}
	name, ok := asString(v[0])
	if !ok {
		return nil, typeErr("attribute name must be string, not '%s'", typeName(v[0]))
	}
	if u, ok := in.(*undefined); ok {
		return nil, u.fail()
	}
	found, ok, err := r.attribute(in, name)
	if !ok && err == nil {
		found = undefinedIn(in, name)
	}
	return found, err
}

func filterCenter(r *run, in Value, a arguments) (Value, error) {
	v, err := a.bind("center", 0, "width")
	if err != nil {
		return nil, err
	}
	width, err := size(optional(v[0], int64(80)))
	if err != nil {
		return nil, err
	}
	text, err := r.softStr(in)
	if err != nil {
		return nil, err
	}
	s, _ := asString(text)
	return r.justify(s, " ", '^', width)
}

func filterDefault(_ *run, in Value, a arguments) (Value, error) {
	v, err := a.bind("default", 0, "default_value", "boolean")
	if err != nil {
		return nil, err
	}
	_, undef := in.(*undefined)
	if !undef && (v[1] == missing || !truth(v[1]) || truth(in)) {
		return in, nil
	}
	if v[0] == missing {
		return "", nil
	}
	return v[0], nil
}

func filterEscape(r *run, in Value, a arguments) (Value, error) {
	if _, err := a.bind("escape", 0); err != nil || isMarkup(in) {
		return in, err
	}
	return escaped(r, in)
}

func filterForceEscape(r *run, in Value, a arguments) (Value, error) {
	if _, err := a.bind("forceescape", 0); err != nil {
		return nil, err
	}
	return escaped(r, in)
}

func escaped(r *run, in Value) (Value, error) {
	s, err := r.str(in)
	if err != nil {
		return nil, err
	}
	t := htmlEscaper.Replace(s)
	return markup(t), r.charge(len(t))
}

func filterSafe(r *run, in Value, a arguments) (Value, error) {
	if _, err := a.bind("safe", 0); err != nil {
		return nil, err
	}
	s, err := r.str(in)
	return markup(s), err
}

func filterString(r *run, in Value, a arguments) (Value, error) {
	if _, err := a.bind("string", 0); err != nil {
		return nil, err
	}
	return r.softStr(in)
}

func filterURLEncode(r *run, in Value, a arguments) (Value, error) {
	if _, err := a.bind("urlencode", 0); err != nil {
		return nil, err
	}
	pairs := in
	if d, ok := in.(*Dict); ok {
		pairs = &dictView{"dict_items", d, entryPair}
	}
	it, err := r.iter(pairs)
	if _, ok := asString(in); ok || err != nil {
		s, err := r.str(in)
		if err != nil {
			return nil, err
		}
		return r.newString(urlQuote(s, "/"), nil)
	}
	return r.joined("&", it, func(_ int, v Value) (string, error) {
		pair, err := r.items(v)
		if err != nil {
			return "", err
		}
		if len(pair) != 2 {
			return "", fail(KindValue, "expected pairs, got %d values", len(pair))
		}
		var kv [2]string
		for i := range kv {
			s, err := r.str(pair[i])
			if err != nil {
				return "", err
			}
			kv[i] = strings.ReplaceAll(urlQuote(s, ""), "%20", "+")
		}
		return kv[0] + "=" + kv[1], nil
	})
}

// urlQuote writes all but letters, digits, _.-~ and what is in safe as bytes in hexadecimal.
func urlQuote(s, safe string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'z' || strings.IndexByte("_.-~"+safe, c) >= 0 {
			b.WriteByte(c)
		} else {
			b.WriteString("%" + string(hex[c>>4]) + string(hex[c&15]))
		}
	}
	return b.String()
}
