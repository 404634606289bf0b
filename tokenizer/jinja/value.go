package jinja

import (
	"fmt"
	"math/big"
	"unicode/utf8"
)

// Value is one value of the template language. The Go types stand for Python's:
//
//	nil      None           string  str
//	bool     bool           *List   list
//	int64    int            *Tuple  tuple
//	*big.Int int, larger    *Dict   dict
//	float64  float
//
// The constructors and Dict.Set take int and int32 too. Other types are TypeErrors when a template
// touches them. Values that a template makes itself, such as namespaces, never leave Render.
type Value any

// List is a Python list. A template cannot change it; nor may a program while a template that was
// given it renders.
type List struct{ items []Value }

// NewList returns the list of items, which it takes over.
func NewList(items ...Value) *List {
	for i, v := range items {
		items[i] = adopt(v)
	}
	return &List{items}
}

// Len is the number of items.
func (l *List) Len() int { return len(l.items) }

// At is item i, 0 <= i < Len.
func (l *List) At(i int) Value { return l.items[i] }

// Append adds items at the end.
func (l *List) Append(items ...Value) {
	for _, v := range items {
		l.items = append(l.items, adopt(v))
	}
}

// Tuple is a Python tuple. fields, if any, name the items, as in a named tuple.
type Tuple struct {
	items  []Value
	fields []string
}

// NewTuple returns the tuple of items, which it takes over.
func NewTuple(items ...Value) *Tuple { return &Tuple{items: NewList(items...).items} }

// Len is the number of items.
func (t *Tuple) Len() int { return len(t.items) }

// At is item i, 0 <= i < Len.
func (t *Tuple) At(i int) Value { return t.items[i] }

// adopt turns the Go types that a program may hand in into those that the package works with.
func adopt(v Value) Value {
	switch v := v.(type) {
	case int:
		return int64(v)
	case int32:
		return int64(v)
	case *big.Int:
		return normInt(v)
	}
	return v
}

// markup is a string marked as HTML. It is a str that escapes what is added to it.
type markup string

// missing stands for an argument that was not given. No template sees it.
type missingType struct{}

var missing Value = missingType{}

// undefined is the value of what does not exist. It prints as nothing, is empty and false, and
// fails when used.
type undefined struct {
	hint   string // the message, or "" if it comes from the rest
	obj    Value  // where name was looked for; missing for a variable
	name   Value
	unsafe bool // the sandbox forbids it
}

func undefinedName(name string) *undefined         { return &undefined{obj: missing, name: name} }
func undefinedHint(hint string) *undefined         { return &undefined{hint: hint} }
func undefinedIn(obj Value, name Value) *undefined { return &undefined{obj: obj, name: name} }

// unsafeAttr is what an attribute that the sandbox forbids gives: the error comes when it is used.
func unsafeAttr(obj Value, name string) *undefined {
	hint := fmt.Sprintf("access to attribute %s of %s object is unsafe.", reprString(name), reprString(typeName(obj)))
	return &undefined{hint: hint, unsafe: true}
}

// fail is the error that using u raises.
func (u *undefined) fail() error {
	kind := KindUndefined
	if u.unsafe {
		kind = KindSecurity
	}
	switch {
	case u.hint != "":
		return fail(kind, "%s", u.hint)
	case u.obj == missing:
		return fail(kind, "%s is undefined", reprShort(u.name))
	}
	if s, ok := u.name.(string); ok {
		return fail(kind, "%s has no attribute %s", reprString(describeObject(u.obj)), reprString(s))
	}
	return fail(kind, "%s has no element %s", describeObject(u.obj), reprShort(u.name))
}

// describeObject names the type of v in an error about an attribute.
func describeObject(v Value) string {
	switch v.(type) {
	case nil:
		return "None"
	case markup:
		return "markupsafe.Markup object"
	case *namespace, *cycler, *joiner:
		return "jinja2.utils." + typeName(v) + " object"
	case *macro, *loopContext:
		return "jinja2.runtime." + typeName(v) + " object"
	}
	return typeName(v) + " object"
}

// typeName is the name of v's type in Python.
func typeName(v Value) string {
	switch v := v.(type) {
	case nil:
		return "NoneType"
	case bool:
		return "bool"
	case int64, *big.Int:
		return "int"
	case float64:
		return "float"
	case string:
		return "str"
	case markup:
		return "Markup"
	case *List:
		return "list"
	case *Tuple:
		if v.fields != nil {
			return "_GroupTuple"
		}
		return "tuple"
	case *Dict:
		return "dict"
	case *undefined:
		return "Undefined"
	case *namespace:
		return "Namespace"
	case *macro:
		return "Macro"
	case *loopContext:
		return "LoopContext"
	case *cycler:
		return "Cycler"
	case *joiner:
		return "Joiner"
	case *rangeValue:
		return "range"
	case *generator:
		return v.kind
	case *dictView:
		return v.kind
	case *method:
		return "builtin_function_or_method"
	case *function:
		return v.kind
	}
	return fmt.Sprintf("Go %T", v)
}

// asString is the text of a str, marked or not.
func asString(v Value) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case markup:
		return string(v), true
	}
	return "", false
}

// truth is Python's bool(v).
func truth(v Value) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case *undefined:
		return false
	}
	n, ok := length(v)
	return !ok || n != 0
}

// length is Python's len(v); ok is false for a type that has none.
func length(v Value) (n int, ok bool) {
	switch v := v.(type) {
	case string:
		return utf8.RuneCountInString(v), true
	case markup:
		return utf8.RuneCountInString(string(v)), true
	case *List:
		return len(v.items), true
	case *Tuple:
		return len(v.items), true
	case *Dict:
		return len(v.entries), true
	case *rangeValue:
		return v.length(), true
	case *dictView:
		return len(v.dict.entries), true
	case *undefined:
		return 0, true
	}
	return 0, false
}
