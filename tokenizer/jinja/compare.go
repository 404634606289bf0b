package jinja

import (
	"math"
	"math/big"
	"strings"
)

// compare is a op b for the comparison operators.
func (r *run) compare(op string, a, b Value) (bool, error) {
	switch op {
	case "==":
		return r.equal(a, b)
	case "!=":
		same, err := r.equal(a, b)
		return !same && err == nil, err
	case "in":
		return r.contains(b, a)
	case "notin":
		in, err := r.contains(b, a)
		return !in && err == nil, err
	}
	return r.ordered(op, a, b)
}

// equal is Python's a == b.
func (r *run) equal(a, b Value) (bool, error) {
	if err := r.step(1); err != nil {
		return false, err
	}
	if x, ok := asString(a); ok {
		y, ok := asString(b)
		return ok && x == y, nil
	}
	if isNumber(a) {
		return isNumber(b) && compareNumbers(a, b) == 0, nil
	}
	switch x := a.(type) {
	case nil:
		return b == nil, nil
	case *undefined:
		_, ok := b.(*undefined)
		return ok, nil
	case *List:
		y, ok := b.(*List)
		if !ok {
			return false, nil
		}
		return r.equalItems(x.items, y.items)
	case *Tuple:
		y, ok := b.(*Tuple)
		if !ok {
			return false, nil
		}
		return r.equalItems(x.items, y.items)
	case *Dict:
		y, ok := b.(*Dict)
		if !ok {
			return false, nil
		}
		return r.equalDicts(x, y)
	case *rangeValue:
		y, ok := b.(*rangeValue)
		return ok && equalRanges(x, y), nil
	}
	return sameObject(a, b), nil
}

// sameObject is Python's a is b, as far as it can be told: numbers and strings are the same if they
// are equal.
func sameObject(a, b Value) bool {
	switch x := a.(type) {
	case *big.Int:
		y, ok := b.(*big.Int)
		return ok && x.Cmp(y) == 0
	case nil, bool, int64, float64, string, markup, *List, *Tuple, *Dict, *undefined, *namespace, *macro, *loopContext,
		*cycler, *joiner, *generator, *dictView, *rangeValue, *method, *function:
		return a == b
	}
	return false // a Go type that cannot be compared must not be
}

func (r *run) equalItems(a, b []Value) (bool, error) {
	if len(a) != len(b) {
		return false, nil
	}
	if err := r.enter(); err != nil {
		return false, err
	}
	defer r.leave()
	for i := range a {
		same, err := r.equal(a[i], b[i])
		if !same || err != nil {
			return false, err
		}
	}
	return true, nil
}

func (r *run) equalDicts(a, b *Dict) (bool, error) {
	if a.Len() != b.Len() {
		return false, nil
	}
	if err := r.enter(); err != nil {
		return false, err
	}
	defer r.leave()
	for _, e := range a.entries {
		other, ok := b.find(e.hash)
		if !ok {
			return false, nil
		}
		same, err := r.equal(e.val, other)
		if !same || err != nil {
			return false, err
		}
	}
	return true, nil
}

func equalRanges(a, b *rangeValue) bool {
	n := a.length()
	return n == b.length() && (n == 0 || a.start == b.start && (n == 1 || a.step == b.step))
}

// compareNumbers is the sign of a - b, exactly; 2 if one is not a number.
func compareNumbers(a, b Value) int {
	x, xf := a.(float64)
	y, yf := b.(float64)
	switch {
	case xf && yf:
		return compareFloats(x, y)
	case xf:
		return -compareIntFloat(b, x)
	case yf:
		return compareIntFloat(a, y)
	}
	i, _ := asBig(a)
	j, _ := asBig(b)
	return i.Cmp(j)
}

func compareFloats(x, y float64) int {
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	case x == y:
		return 0
	}
	return 2
}

func compareIntFloat(n Value, f float64) int {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return compareFloats(0, f)
	}
	i, _ := asBig(n)
	exact, _ := new(big.Float).SetFloat64(f).Rat(nil)
	return new(big.Rat).SetInt(i).Cmp(exact)
}

// holds tells whether a comparison with the sign c is what op asks for.
func holds(op string, c int) bool {
	switch op {
	case "<":
		return c == -1
	case "<=":
		return c == -1 || c == 0
	case ">":
		return c == 1
	}
	return c == 1 || c == 0
}

// ordered is Python's a op b for < <= > >=.
func (r *run) ordered(op string, a, b Value) (bool, error) {
	if err := r.step(1); err != nil {
		return false, err
	}
	if u, ok := a.(*undefined); ok {
		return false, u.fail()
	}
	if u, ok := b.(*undefined); ok {
		return false, u.fail()
	}
	if isNumber(a) && isNumber(b) {
		c := compareNumbers(a, b)
		return c != 2 && c != -2 && holds(op, c), nil
	}
	if x, ok := asString(a); ok {
		if y, ok := asString(b); ok {
			// the order of UTF-8 is that of code points
			return holds(op, strings.Compare(x, y)), nil
		}
	}
	switch x := a.(type) {
	case *List:
		if y, ok := b.(*List); ok {
			return r.orderedItems(op, x.items, y.items)
		}
	case *Tuple:
		if y, ok := b.(*Tuple); ok {
			return r.orderedItems(op, x.items, y.items)
		}
	}
	return false, typeErr("'%s' not supported between instances of '%s' and '%s'", op, typeName(a), typeName(b))
}

// orderedItems compares the first items that differ, or the lengths.
func (r *run) orderedItems(op string, a, b []Value) (bool, error) {
	if err := r.enter(); err != nil {
		return false, err
	}
	defer r.leave()
	for i := range min(len(a), len(b)) {
		same, err := r.equal(a[i], b[i])
		if err != nil {
			return false, err
		}
		if !same {
			return r.ordered(op, a[i], b[i])
		}
	}
	return holds(op, compareNumbers(int64(len(a)), int64(len(b)))), nil
}

// contains is Python's v in seq.
func (r *run) contains(seq, v Value) (bool, error) {
	switch s := seq.(type) {
	case string, markup:
		text, _ := asString(seq)
		part, ok := asString(v)
		if !ok {
			return false, typeErr("'in <string>' requires string as left operand, not %s", typeName(v))
		}
		return strings.Contains(text, part), r.step(len(text) / 16)
	case *Dict:
		k, err := r.keyOf(v)
		if err != nil {
			return false, err
		}
		_, ok := s.find(k)
		return ok, nil
	case *undefined, *List, *Tuple, *generator, *dictView, *rangeValue:
	default:
		return false, typeErr("argument of type '%s' is not iterable", typeName(seq))
	}
	it, err := r.iter(seq)
	if err != nil {
		return false, err
	}
	for {
		item, ok, err := it.next(r)
		if !ok || err != nil {
			return false, err
		}
		same, err := r.equal(item, v)
		if same || err != nil {
			return same, err
		}
	}
}
