package jinja

import "strings"

// methodFunc is a method of a built-in type; recv has that type.
type methodFunc = func(r *run, recv Value, a arguments) (Value, error)

// methodOf is the method of a type, by the type's name in Python, or nil.
func methodOf(kind, name string) methodFunc {
	switch kind {
	case "str", "Markup":
		// these look up attributes, so they cannot be in a table that attributes are looked up in
		switch name {
		case "format":
			return (*run).strFormat
		case "format_map":
			return (*run).strFormatMap
		}
		if fn := strMethods[name]; fn != nil {
			return textMethod(name, fn)
		}
	case "list", "tuple", "_GroupTuple", "range":
		if name != "copy" || kind == "list" {
			return sequenceMethods[name]
		}
	case "dict":
		return dictMethods[name]
	case "int", "float", "bool":
		return numberMethods[kind][name]
	}
	return nil
}

// textMethod makes fn a method: of marked text it escapes what comes in and marks what comes out.
func textMethod(name string, fn func(r *run, s string, a arguments) (Value, error)) methodFunc {
	return func(r *run, recv Value, a arguments) (Value, error) {
		s, _ := asString(recv)
		if err := r.step(len(s) / 16); err != nil {
			return nil, err
		}
		if !isMarkup(recv) {
			return fn(r, s, a)
		}
		v, err := fn(r, s, escapeArgs(name, a))
		return markResult(v), err
	}
}

var sequenceMethods = map[string]methodFunc{
	"index": (*run).sequenceIndex,
	"count": (*run).sequenceCount,
	"copy": func(r *run, recv Value, a arguments) (Value, error) {
		if _, err := a.bind("copy", 0); err != nil {
			return nil, err
		}
		return recv, nil
	},
}

func (r *run) sequenceIndex(recv Value, a arguments) (Value, error) {
	v, err := a.bind("index", 1, "value", "start", "stop")
	if err != nil {
		return nil, err
	}
	items, err := r.items(recv)
	if err != nil {
		return nil, err
	}
	var bounds [3]Value
	for i := range 2 {
		if v[1+i] != missing {
			bounds[i] = v[1+i]
		}
	}
	from, _, _, count, err := sliceBounds(bounds, len(items))
	if err != nil {
		return nil, err
	}
	for i := from; i < from+count; i++ {
		same, err := r.equal(items[i], v[0])
		if same || err != nil {
			return int64(i), err
		}
	}
	return nil, fail(KindValue, "%s is not in %s", reprShort(v[0]), typeName(recv))
}

func (r *run) sequenceCount(recv Value, a arguments) (Value, error) {
	v, err := a.bind("count", 1, "value")
	if err != nil {
		return nil, err
	}
	items, err := r.items(recv)
	if err != nil {
		return nil, err
	}
	n := int64(0)
	for _, item := range items {
		same, err := r.equal(item, v[0])
		if err != nil {
			return nil, err
		}
		if same {
			n++
		}
	}
	return n, nil
}

var dictMethods = map[string]methodFunc{
	"keys":   viewMethod("dict_keys", entryKey),
	"values": viewMethod("dict_values", entryVal),
	"items":  viewMethod("dict_items", entryPair),
	"get":    (*run).dictGet,
	"copy": func(r *run, recv Value, a arguments) (Value, error) {
		if _, err := a.bind("copy", 0); err != nil {
			return nil, err
		}
		d := recv.(*Dict).copyOf()
		return d, r.chargeItems(2 * d.Len())
	},
}

func viewMethod(kind string, pick func(e entry) Value) methodFunc {
	return func(_ *run, recv Value, a arguments) (Value, error) {
		if _, err := a.bind(strings.TrimPrefix(kind, "dict_"), 0); err != nil {
			return nil, err
		}
		return &dictView{kind, recv.(*Dict), pick}, nil
	}
}

func (r *run) dictGet(recv Value, a arguments) (Value, error) {
	if len(a.kw) > 0 {
		return nil, typeErr("dict.get() takes no keyword arguments")
	}
	v, err := a.bind("get", 1, "key", "default")
	if err != nil {
		return nil, err
	}
	k, err := r.keyOf(v[0])
	if err != nil {
		return nil, err
	}
	if found, ok := recv.(*Dict).find(k); ok {
		return found, nil
	}
	if v[1] == missing {
		return nil, nil
	}
	return v[1], nil
}

var numberMethods = map[string]map[string]methodFunc{
	"float": {"is_integer": func(_ *run, recv Value, a arguments) (Value, error) {
		_, err := a.bind("is_integer", 0)
		f := recv.(float64)
		return f-f == 0 && f == float64(int64(f)) || f-f == 0 && (f >= 1<<53 || f <= -(1<<53)), err
	}},
	"int":  {"bit_length": bitLength},
	"bool": {"bit_length": bitLength},
}

func bitLength(_ *run, recv Value, a arguments) (Value, error) {
	_, err := a.bind("bit_length", 0)
	b, _ := asBig(recv)
	return int64(b.BitLen()), err
}
