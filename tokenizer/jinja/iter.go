package jinja

import (
	"unicode/utf8"
)

// iterator gives values one by one; ok is false at the end.
type iterator interface {
	next(r *run) (v Value, ok bool, err error)
}

// iter is Python's iter(v).
func (r *run) iter(v Value) (iterator, error) {
	switch v := v.(type) {
	case *List:
		return &sliceIter{items: v.items}, nil
	case *Tuple:
		return &sliceIter{items: v.items}, nil
	case *Dict:
		return &entryIter{v.entries, entryKey}, nil
	case *dictView:
		return &entryIter{v.dict.entries, v.pick}, nil
	case string:
		return &charIter{v}, nil
	case markup:
		return &charIter{string(v)}, nil
	case *rangeValue:
		return &rangeIter{*v}, nil
	case *generator:
		return v, nil
	case *undefined:
		return &sliceIter{}, nil
	}
	return nil, typeErr("'%s' object is not iterable", typeName(v))
}

// items are the values of v, not to be changed.
func (r *run) items(v Value) ([]Value, error) {
	switch v := v.(type) {
	case *List:
		return v.items, r.step(len(v.items))
	case *Tuple:
		return v.items, r.step(len(v.items))
	}
	it, err := r.iter(v)
	if err != nil {
		return nil, err
	}
	return r.drain(it)
}

// drain returns what is left of it.
func (r *run) drain(it iterator) ([]Value, error) {
	var out []Value
	for {
		v, ok, err := it.next(r)
		if err != nil {
			return nil, err
		}
		if !ok {
			return out, nil
		}
		if err := r.charge(itemBytes); err != nil {
			return nil, err
		}
		out = append(out, v)
	}
}

type sliceIter struct {
	items []Value
	i     int
}

func (s *sliceIter) next(r *run) (Value, bool, error) {
	if s.i >= len(s.items) {
		return nil, false, nil
	}
	s.i++
	return s.items[s.i-1], true, r.step(1)
}

type charIter struct{ rest string }

func (c *charIter) next(r *run) (Value, bool, error) {
	if c.rest == "" {
		return nil, false, nil
	}
	_, n := utf8.DecodeRuneInString(c.rest)
	v := c.rest[:n]
	c.rest = c.rest[n:]
	return v, true, r.step(1)
}

type entryIter struct {
	entries []entry
	pick    func(e entry) Value
}

func (e *entryIter) next(r *run) (Value, bool, error) {
	if len(e.entries) == 0 {
		return nil, false, nil
	}
	v := e.pick(e.entries[0])
	e.entries = e.entries[1:]
	return v, true, r.step(1)
}

func entryKey(e entry) Value  { return e.key }
func entryVal(e entry) Value  { return e.val }
func entryPair(e entry) Value { return &Tuple{items: []Value{e.key, e.val}} }

// dictView is what keys, values and items of a dict return.
type dictView struct {
	kind string
	dict *Dict
	pick func(e entry) Value
}

// generator is an iterator as a value: what is taken from it is gone. It is also what lazy filters
// return.
type generator struct {
	kind string // its type in Python
	it   iterator
}

func (g *generator) next(r *run) (Value, bool, error) {
	if err := r.enter(); err != nil { // filters can be piled up without end
		return nil, false, err
	}
	defer r.leave()
	if err := r.step(1); err != nil {
		return nil, false, err
	}
	return g.it.next(r)
}

// iterFunc is an iterator made of a function.
type iterFunc func(r *run) (Value, bool, error)

func (f iterFunc) next(r *run) (Value, bool, error) { return f(r) }

// lazy is a generator that makes its iterator when it is first asked, as Python's generator
// functions do: an error in the arguments comes then, or never.
func lazy(start func(r *run) (iterator, error)) *generator {
	var it iterator
	return &generator{"generator", iterFunc(func(r *run) (Value, bool, error) {
		if it == nil {
			var err error
			if it, err = start(r); err != nil {
				return nil, false, err
			}
		}
		return it.next(r)
	})}
}

// rangeValue is a range; step is not 0.
type rangeValue struct{ start, stop, step int64 }

// maxRange is the sandbox's bound on the length of a range.
const maxRange = 100000

// length is the number of values of the range. Its bounds are within what checkRange lets pass.
func (v *rangeValue) length() int {
	switch {
	case v.step > 0 && v.start < v.stop:
		return int((uint64(v.stop)-uint64(v.start)-1)/uint64(v.step) + 1)
	case v.step < 0 && v.start > v.stop:
		return int((uint64(v.start)-uint64(v.stop)-1)/-uint64(v.step) + 1)
	}
	return 0
}

func (v *rangeValue) at(i int) Value { return v.start + int64(i)*v.step }

type rangeIter struct{ rangeValue }

func (it *rangeIter) next(r *run) (Value, bool, error) {
	if it.length() <= 0 {
		return nil, false, nil
	}
	v := it.start
	if it.length() == 1 {
		it.stop = it.start
	} else {
		it.start += it.step
	}
	return v, true, r.step(1)
}

// newRange is Python's range with the sandbox's bound.
func (r *run) newRange(a arguments) (Value, error) {
	if len(a.kw) > 0 {
		return nil, typeErr("range() takes no keyword arguments")
	}
	if len(a.pos) < 1 || len(a.pos) > 3 {
		return nil, typeErr("range expected 1 to 3 arguments, got %d", len(a.pos))
	}
	n := [3]int64{0, 0, 1}
	for i, v := range a.pos {
		x, err := index(v)
		if err != nil {
			return nil, err
		}
		n[i] = x
	}
	if len(a.pos) == 1 {
		n[0], n[1] = 0, n[0]
	}
	if n[2] == 0 {
		return nil, fail(KindValue, "range() arg 3 must not be zero")
	}
	v := &rangeValue{n[0], n[1], n[2]}
	if size := v.length(); size > maxRange || size < 0 {
		return nil, fail(KindOverflow, "Range too big. The sandbox blocks ranges larger than MAX_RANGE (%d).", maxRange)
	}
	return v, nil
}

// reversed is Python's reversed(v); ok is false for what has no end to begin from.
func (r *run) reversed(v Value) (g *generator, ok bool, err error) {
	var items []Value
	kind := "reversed"
	switch v.(type) {
	case string, markup, *Tuple, *rangeValue, *undefined:
	case *List:
		kind = "list_reverseiterator"
	case *Dict:
		kind = "dict_reversekeyiterator"
	case *dictView:
		kind = "dict_reverseitemiterator"
	default:
		return nil, false, nil
	}
	if items, err = r.items(v); err != nil {
		return nil, false, err
	}
	i := len(items)
	return &generator{kind, iterFunc(func(r *run) (Value, bool, error) {
		if i == 0 {
			return nil, false, nil
		}
		i--
		return items[i], true, nil
	})}, true, nil
}
