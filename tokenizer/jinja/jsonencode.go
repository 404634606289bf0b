package jinja

import (
	"math"
	"math/big"
	"sort"
	"strings"
	"unicode/utf8"
)

// jsonWriter is Python's json.dumps.
type jsonWriter struct {
	run      *run
	out      *buffer
	ascii    bool
	sortKeys bool
	indent   string // of one level
	pretty   bool
	itemSep  string
	keySep   string
}

// filterToJSON is the tojson filter of the reference tools, which is json.dumps without ASCII
// escaping.
func filterToJSON(r *run, in Value, a arguments) (Value, error) {
	v, err := a.bind("tojson", 0, "ensure_ascii", "indent", "separators", "sort_keys")
	if err != nil {
		return nil, err
	}
	w := &jsonWriter{run: r, out: &buffer{run: r}, itemSep: ", ", keySep: ": "}
	w.ascii = v[0] != missing && truth(v[0])
	w.sortKeys = v[3] != missing && truth(v[3])
	if v[1] != missing && v[1] != nil {
		if err := w.setIndent(v[1]); err != nil {
			return nil, err
		}
	}
	if v[2] != missing && v[2] != nil {
		if err := w.setSeparators(v[2]); err != nil {
			return nil, err
		}
	}
	if err := w.value(in, "\n"); err != nil {
		return nil, err
	}
	return w.out.String(), nil
}

// EncodeJSON is the tojson filter without arguments: what templates write for a value. The error is
// an *Error.
func EncodeJSON(v Value) (string, error) {
	r := &run{name: "JSON", cfg: Config{}.withDefaults()}
	w := &jsonWriter{run: r, out: &buffer{run: r}, itemSep: ", ", keySep: ": "}
	if err := w.value(v, "\n"); err != nil {
		return "", at(err, r.name, 1)
	}
	return w.out.String(), nil
}

func (w *jsonWriter) setIndent(v Value) error {
	w.pretty, w.itemSep = true, ","
	if s, ok := asString(v); ok {
		w.indent = s
		return nil
	}
	n, err := size(v)
	if err != nil {
		return typeErr("can't multiply sequence by non-int of type '%s'", typeName(v))
	}
	n = max(n, 0)
	if err := w.run.charge(n); err != nil {
		return err
	}
	w.indent = strings.Repeat(" ", n)
	return nil
}

func (w *jsonWriter) setSeparators(v Value) error {
	items, err := w.run.items(v)
	if err != nil {
		return err
	}
	if len(items) != 2 {
		return fail(KindValue, "separators must be two strings, not %d values", len(items))
	}
	var ok [2]bool
	w.itemSep, ok[0] = asString(items[0])
	w.keySep, ok[1] = asString(items[1])
	if !ok[0] || !ok[1] {
		return typeErr("separators must be strings")
	}
	return nil
}

// value writes v; newline is a line's end and the indentation of the level that v is on.
func (w *jsonWriter) value(v Value, newline string) error {
	switch v := v.(type) {
	case nil:
		return w.out.write("null")
	case bool:
		if v {
			return w.out.write("true")
		}
		return w.out.write("false")
	case int64, *big.Int:
		s, err := intString(v)
		if err != nil {
			return err
		}
		return w.out.write(s)
	case float64:
		return w.out.write(jsonFloat(v))
	case string:
		return w.out.write(jsonString(v, w.ascii))
	case markup:
		return w.out.write(jsonString(string(v), w.ascii))
	case *List:
		return w.list(v.items, newline)
	case *Tuple:
		return w.list(v.items, newline)
	case *Dict:
		return w.dict(v, newline)
	}
	return typeErr("Object of type %s is not JSON serializable", typeName(v))
}

func jsonFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	return floatString(f)
}

// nest writes the n items of a list or dict between open and end, each by item.
func (w *jsonWriter) nest(open, end string, n int, newline string, item func(i int, newline string) error) error {
	if n == 0 {
		return w.out.write(open + end)
	}
	if err := w.run.enter(); err != nil {
		return err
	}
	defer w.run.leave()
	inner := ""
	if w.pretty {
		inner = newline + w.indent
		if err := w.run.charge(len(inner)); err != nil {
			return err
		}
	} else {
		newline = ""
	}
	for i := range n {
		sep := w.itemSep
		if i == 0 {
			sep = open
		}
		if err := w.out.write(sep + inner); err != nil {
			return err
		}
		if err := item(i, inner); err != nil {
			return err
		}
	}
	return w.out.write(newline + end)
}

func (w *jsonWriter) list(items []Value, newline string) error {
	return w.nest("[", "]", len(items), newline, func(i int, newline string) error {
		return w.value(items[i], newline)
	})
}

func (w *jsonWriter) dict(d *Dict, newline string) error {
	entries := d.entries
	if w.sortKeys {
		var err error
		if entries, err = w.sorted(entries); err != nil {
			return err
		}
	}
	return w.nest("{", "}", len(entries), newline, func(i int, newline string) error {
		k, err := w.key(entries[i].key)
		if err != nil {
			return err
		}
		if err := w.out.write(jsonString(k, w.ascii) + w.keySep); err != nil {
			return err
		}
		return w.value(entries[i].val, newline)
	})
}

func (w *jsonWriter) sorted(entries []entry) ([]entry, error) {
	out := append([]entry(nil), entries...)
	var err error
	sort.SliceStable(out, func(i, j int) bool {
		less, e := w.run.ordered("<", out[i].key, out[j].key)
		if err == nil {
			err = e
		}
		return less
	})
	return out, err
}

// key is the string that stands for a dict's key.
func (w *jsonWriter) key(v Value) (string, error) {
	if s, ok := asString(v); ok {
		return s, nil
	}
	switch v := v.(type) {
	case nil:
		return "null", nil
	case bool:
		if v {
			return "true", nil
		}
		return "false", nil
	case int64, *big.Int:
		return intString(v)
	case float64:
		return jsonFloat(v), nil
	}
	return "", typeErr("keys must be str, int, float, bool or None, not %s", typeName(v))
}

// jsonString is s as a JSON string.
func jsonString(s string, ascii bool) string {
	const hex = "0123456789abcdef"
	b := make([]byte, 0, len(s)+2)
	b = append(b, '"')
	unit := func(c rune) { b = append(b, '\\', 'u', hex[c>>12&15], hex[c>>8&15], hex[c>>4&15], hex[c&15]) }
	for i := 0; i < len(s); {
		c, n := rune(s[i]), 1
		if c >= utf8.RuneSelf {
			c, n = utf8.DecodeRuneInString(s[i:])
		}
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', byte(c))
		case c == '\n':
			b = append(b, '\\', 'n')
		case c == '\r':
			b = append(b, '\\', 'r')
		case c == '\t':
			b = append(b, '\\', 't')
		case c == '\b':
			b = append(b, '\\', 'b')
		case c == '\f':
			b = append(b, '\\', 'f')
		case c < 0x20 || ascii && c == 0x7f:
			unit(c)
		case c >= 0x10000 && ascii:
			unit(0xd800 + (c-0x10000)>>10)
			unit(0xdc00 + (c-0x10000)&0x3ff)
		case c >= utf8.RuneSelf && ascii:
			unit(c)
		default:
			b = append(b, s[i:i+n]...)
		}
		i += n
	}
	return string(append(b, '"'))
}
