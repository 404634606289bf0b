package jinja

import "math/big"

// testFunc is a test of a value, or of two; v[0] is the value before is.
type testFunc struct {
	args int // that follow the name
	fn   func(r *run, v []Value) (bool, error)
}

// is makes a test that cannot fail.
func is(fn func(v Value) bool) testFunc {
	return testFunc{0, func(_ *run, v []Value) (bool, error) { return fn(v[0]), nil }}
}

func comparison(op string) testFunc {
	return testFunc{1, func(r *run, v []Value) (bool, error) { return r.compare(op, v[0], v[1]) }}
}

var tests = map[string]testFunc{
	"defined":   is(func(v Value) bool { return !isUndefined(v) }),
	"undefined": is(isUndefined),
	"none":      is(func(v Value) bool { return v == nil }),
	"boolean":   is(func(v Value) bool { return v == true || v == false }),
	"true":      is(func(v Value) bool { return v == true }),
	"false":     is(func(v Value) bool { return v == false }),
	"integer": is(func(v Value) bool {
		switch v.(type) {
		case int64, *big.Int:
			return true
		}
		return false
	}),
	"float":   is(func(v Value) bool { _, ok := v.(float64); return ok }),
	"number":  is(isNumber),
	"string":  is(func(v Value) bool { _, ok := asString(v); return ok }),
	"mapping": is(func(v Value) bool { _, ok := v.(*Dict); return ok }),
	"sequence": is(func(v Value) bool {
		_, sized := length(v)
		_, view := v.(*dictView)
		return sized && !view
	}),
	"iterable": is(isIterable),
	"callable": is(func(v Value) bool {
		switch v.(type) {
		case *method, *function, *macro, *joiner, *loopContext, *undefined:
			return true
		}
		return false
	}),
	"escaped": is(isMarkup),
	"lower":   {0, func(r *run, v []Value) (bool, error) { return textTest(r, v[0], isLowerRune) }},
	"upper":   {0, func(r *run, v []Value) (bool, error) { return textTest(r, v[0], isUpperRune) }},
	"odd":     {0, func(r *run, v []Value) (bool, error) { return remainderIs(r, v[0], int64(2), 1) }},
	"even":    {0, func(r *run, v []Value) (bool, error) { return remainderIs(r, v[0], int64(2), 0) }},

	"divisibleby": {1, func(r *run, v []Value) (bool, error) { return remainderIs(r, v[0], v[1], 0) }},
	"sameas":      {1, func(_ *run, v []Value) (bool, error) { return sameObject(v[0], v[1]), nil }},
	"in":          {1, func(r *run, v []Value) (bool, error) { return r.contains(v[1], v[0]) }},

	"==": comparison("=="), "eq": comparison("=="), "equalto": comparison("=="),
	"!=": comparison("!="), "ne": comparison("!="),
	">": comparison(">"), "gt": comparison(">"), "greaterthan": comparison(">"),
	">=": comparison(">="), "ge": comparison(">="),
	"<": comparison("<"), "lt": comparison("<"), "lessthan": comparison("<"),
	"<=": comparison("<="), "le": comparison("<="),

	"filter": {0, nil}, "test": {0, nil}, // looked up where the tables can be
}

func isUndefined(v Value) bool {
	_, ok := v.(*undefined)
	return ok
}

func isIterable(v Value) bool {
	if _, ok := length(v); ok {
		return true
	}
	_, ok := v.(*generator)
	if _, loop := v.(*loopContext); loop {
		return true
	}
	return ok
}

func textTest(r *run, v Value, is func(c rune) bool) (bool, error) {
	s, err := r.str(v)
	return allCased(s, is), err
}

func remainderIs(r *run, v, by Value, want int64) (bool, error) {
	rest, err := r.binary("%", v, by)
	if err != nil {
		return false, err
	}
	return r.equal(rest, want)
}

// test applies a test by name.
func (r *run) test(name string, in Value, a arguments) (Value, error) {
	t, ok := tests[name]
	if !ok {
		return nil, fail(KindRuntime, "No test named %s.", reprString(name))
	}
	v := append([]Value{in}, a.pos...)
	if len(a.kw) > 0 {
		params := []string{"num", "other", "seq", "b"}
		for _, k := range a.kw {
			known := false
			for _, p := range params {
				known = known || p == k.name
			}
			if !known {
				return nil, typeErr("test %s got an unexpected keyword argument %s", name, reprString(k.name))
			}
			v = append(v, k.val)
		}
	}
	if len(v) != 1+t.args {
		return nil, typeErr("test %s takes %d arguments, got %d", name, t.args, len(v)-1)
	}
	if t.fn != nil {
		return t.fn(r, v)
	}
	s, _ := asString(in)
	if name == "filter" {
		_, ok = filters[s]
	} else {
		_, ok = tests[s]
	}
	return ok, nil
}
