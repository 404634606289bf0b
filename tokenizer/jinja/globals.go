package jinja

import "strings"

// function is a function of the language.
type function struct {
	kind string // its type in Python
	name string
	fn   func(r *run, a arguments) (Value, error)
}

// method is a method of a value, bound to it.
type method struct {
	recv Value
	name string
	fn   func(r *run, recv Value, a arguments) (Value, error)
}

// globals are the functions that every template sees.
var globals = map[string]*function{
	"range":           {"function", "range", (*run).newRange},
	"dict":            {"type", "dict", (*run).newDict},
	"namespace":       {"type", "namespace", (*run).newNamespace},
	"cycler":          {"type", "cycler", newCycler},
	"joiner":          {"type", "joiner", newJoiner},
	"raise_exception": {"function", "raise_exception", (*run).raiseException},
	"strftime_now":    {"function", "strftime_now", (*run).strftimeNow},
}

// raiseException ends the rendering with an error of the template's own words.
func (r *run) raiseException(a arguments) (Value, error) {
	v, err := a.bind("raise_exception", 1, "message")
	if err != nil {
		return nil, err
	}
	msg, err := r.str(v[0])
	if err != nil {
		return nil, err
	}
	return nil, fail(KindTemplate, "%s", msg)
}

func (r *run) strftimeNow(a arguments) (Value, error) {
	v, err := a.bind("strftime_now", 1, "format")
	if err != nil {
		return nil, err
	}
	format, ok := asString(v[0])
	if !ok {
		return nil, typeErr("strftime() argument 1 must be str, not %s", typeName(v[0]))
	}
	if r.cfg.Now == nil {
		return nil, fail(KindRuntime, "strftime_now: the program gave no clock (Config.Now)")
	}
	return r.strftime(r.cfg.Now(), format)
}

// newDict is Python's dict(...): from a dict, from pairs, and from keyword arguments.
func (r *run) newDict(a arguments) (Value, error) {
	d := NewDict()
	if len(a.pos) > 1 {
		return nil, typeErr("dict expected at most 1 argument, got %d", len(a.pos))
	}
	if len(a.pos) == 1 {
		if err := r.fillDict(d, a.pos[0]); err != nil {
			return nil, err
		}
	}
	for _, k := range a.kw {
		d.Set(k.name, k.val)
	}
	return d, r.chargeItems(2 * d.Len())
}

func (r *run) fillDict(d *Dict, from Value) error {
	if src, ok := from.(*Dict); ok {
		for _, e := range src.entries {
			d.put(e.key, e.hash, e.val)
		}
		return r.step(src.Len())
	}
	if u, ok := from.(*undefined); ok {
		return u.fail()
	}
	it, err := r.iter(from)
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		item, ok, err := it.next(r)
		if err != nil || !ok {
			return err
		}
		pair, err := r.items(item)
		if err != nil {
			return typeErr("cannot convert dictionary update sequence element #%d to a sequence", i)
		}
		if len(pair) != 2 {
			return fail(KindValue, "dictionary update sequence element #%d has length %d; 2 is required", i, len(pair))
		}
		k, err := r.keyOf(pair[0])
		if err != nil {
			return err
		}
		d.put(pair[0], k, pair[1])
		if err := r.chargeItems(2); err != nil {
			return err
		}
	}
}

// namespace is an object whose attributes a template may set.
type namespace struct{ attrs *Dict }

func (r *run) newNamespace(a arguments) (Value, error) {
	d, err := r.newDict(a)
	if err != nil {
		return nil, err
	}
	return &namespace{d.(*Dict)}, nil
}

// cycler gives its items in turn.
type cycler struct {
	items []Value
	pos   int
}

func newCycler(_ *run, a arguments) (Value, error) {
	if len(a.pos) == 0 {
		return nil, fail(KindPythonRuntime, "at least one item has to be provided")
	}
	if len(a.kw) > 0 {
		return nil, typeErr("cycler() takes no keyword arguments")
	}
	return &cycler{items: a.pos}, nil
}

func (c *cycler) attr(name string) (Value, bool) {
	switch name {
	case "current":
		return c.items[c.pos], true
	case "pos":
		return int64(c.pos), true
	case "items":
		return &Tuple{items: c.items}, true
	case "next":
		return &method{c, name, func(*run, Value, arguments) (Value, error) {
			v := c.items[c.pos]
			c.pos = (c.pos + 1) % len(c.items)
			return v, nil
		}}, true
	case "reset":
		return &method{c, name, func(*run, Value, arguments) (Value, error) {
			c.pos = 0
			return nil, nil
		}}, true
	}
	return nil, false
}

// joiner is empty when first called and a separator from then on.
type joiner struct {
	sep  Value
	used bool
}

func newJoiner(_ *run, a arguments) (Value, error) {
	v, err := a.bind("joiner", 0, "sep")
	if err != nil {
		return nil, err
	}
	if v[0] == missing {
		v[0] = ", "
	}
	return &joiner{sep: v[0]}, nil
}

func (j *joiner) call() Value {
	if !j.used {
		j.used = true
		return ""
	}
	return j.sep
}

func (j *joiner) attr(name string) (Value, bool) {
	switch name {
	case "sep":
		return j.sep, true
	case "used":
		return j.used, true
	}
	return nil, false
}

// isAllDigits reports whether s has characters and all of them are digits, as str.isdigit does.
func isAllDigits(s string) bool {
	return s != "" && strings.IndexFunc(s, func(c rune) bool { return !isDigitRune(c) }) < 0
}
