package jinja

import (
	"fmt"
	"math/big"
	"strings"
	"unicode"
)

// str is Python's str(v).
func (r *run) str(v Value) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case markup:
		return string(v), nil
	case *undefined:
		return "", nil
	}
	return r.repr(v)
}

// repr is Python's repr(v). What Python prints with an address in memory comes without it.
func (r *run) repr(v Value) (string, error) {
	out := &buffer{run: r}
	err := r.writeRepr(out, v)
	return out.String(), err
}

func (r *run) writeRepr(out *buffer, v Value) error {
	switch v := v.(type) {
	case nil:
		return out.write("None")
	case bool:
		if v {
			return out.write("True")
		}
		return out.write("False")
	case int64, *big.Int:
		s, err := intString(v)
		if err != nil {
			return err
		}
		return out.write(s)
	case float64:
		return out.write(floatString(v))
	case string:
		return out.write(reprString(v))
	case markup:
		return out.write("Markup(" + reprString(string(v)) + ")")
	case *undefined:
		return out.write("Undefined")
	case *rangeValue:
		s := fmt.Sprintf("range(%d, %d", v.start, v.stop)
		if v.step != 1 {
			s += fmt.Sprintf(", %d", v.step)
		}
		return out.write(s + ")")
	case *List, *Tuple, *Dict, *dictView, *namespace:
		if err := r.enter(); err != nil {
			return err
		}
		defer r.leave()
		return r.writeContainer(out, v)
	case *macro:
		if v.def.name == "" {
			return out.write("<Macro anonymous>")
		}
		return out.write("<Macro " + reprString(v.def.name) + ">")
	case *loopContext:
		n, err := v.count(r)
		if err != nil {
			return err
		}
		return out.write(fmt.Sprintf("<LoopContext %d/%d>", v.index0+1, n))
	case *method:
		return out.write("<built-in method " + v.name + " of " + typeName(v.recv) + " object>")
	case *function:
		return out.write("<" + v.kind + " " + v.name + ">")
	case *generator, *cycler, *joiner:
		return out.write("<" + typeName(v) + " object>")
	}
	return typeErr("a value of the Go type %T cannot be printed", v)
}

func (r *run) writeContainer(out *buffer, v Value) error {
	switch v := v.(type) {
	case *List:
		return r.writeItems(out, "[", v.items, "]")
	case *Tuple:
		if len(v.items) == 1 {
			return r.writeItems(out, "(", v.items, ",)")
		}
		return r.writeItems(out, "(", v.items, ")")
	case *Dict:
		return r.writeDict(out, v)
	case *namespace:
		if err := out.write("<Namespace "); err != nil {
			return err
		}
		if err := r.writeDict(out, v.attrs); err != nil {
			return err
		}
		return out.write(">")
	case *dictView:
		items, err := r.items(v)
		if err != nil {
			return err
		}
		return r.writeItems(out, v.kind+"([", items, "])")
	}
	return nil
}

func (r *run) writeItems(out *buffer, open string, items []Value, end string) error {
	if err := out.write(open); err != nil {
		return err
	}
	for i, item := range items {
		if i > 0 {
			if err := out.write(", "); err != nil {
				return err
			}
		}
		if err := r.writeRepr(out, item); err != nil {
			return err
		}
	}
	return out.write(end)
}

func (r *run) writeDict(out *buffer, d *Dict) error {
	sep := "{"
	for _, e := range d.entries {
		if err := out.write(sep); err != nil {
			return err
		}
		sep = ", "
		if err := r.writeRepr(out, e.key); err != nil {
			return err
		}
		if err := out.write(": "); err != nil {
			return err
		}
		if err := r.writeRepr(out, e.val); err != nil {
			return err
		}
	}
	if d.Len() == 0 {
		return out.write("{}")
	}
	return out.write("}")
}

// reprString is repr of a str.
func reprString(s string) string { return quoteString(s, false) }

// quoteString is repr, or ascii, of a str: in single quotes unless there are such and no double
// ones in it.
func quoteString(s string, ascii bool) string {
	quote := byte('\'')
	if strings.IndexByte(s, '\'') >= 0 && strings.IndexByte(s, '"') < 0 {
		quote = '"'
	}
	b := []byte{quote}
	for _, c := range s {
		switch {
		case c == rune(quote) || c == '\\':
			b = append(b, '\\', byte(c))
		case c == '\n':
			b = append(b, `\n`...)
		case c == '\r':
			b = append(b, `\r`...)
		case c == '\t':
			b = append(b, `\t`...)
		case unicode.IsPrint(c) && (!ascii || c < 0x7f):
			b = append(b, string(c)...)
		case c <= 0xff:
			b = fmt.Appendf(b, `\x%02x`, c)
		case c <= 0xffff:
			b = fmt.Appendf(b, `\u%04x`, c)
		default:
			b = fmt.Appendf(b, `\U%08x`, c)
		}
	}
	return string(append(b, quote))
}

// reprShort is repr of a value in an error: one that holds others is named by its type.
func reprShort(v Value) string {
	switch v.(type) {
	case *List, *Tuple, *Dict, *dictView, *namespace, *loopContext:
		return "(a " + typeName(v) + ")"
	}
	r := &run{cfg: Config{}.withDefaults()}
	s, err := r.repr(v)
	if err != nil {
		return "(a " + typeName(v) + ")"
	}
	return s
}
