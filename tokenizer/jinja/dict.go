package jinja

import (
	"math"
	"math/big"
	"strings"
)

// Dict is a Python dict: keys keep the order in which they first came. A template cannot change it;
// nor may a program while a template that was given it renders. Any number of templates may render
// with it at once.
type Dict struct {
	entries []entry
	index   map[key]int // of entries; nil while there are few, and they are searched
}

type entry struct {
	key  Value
	hash key
	val  Value
}

// smallDict is the largest size at which a linear search is as fast as a map.
const smallDict = 8

// NewDict returns an empty dict.
func NewDict() *Dict { return &Dict{} }

// Len is the number of keys.
func (d *Dict) Len() int { return len(d.entries) }

// Set stores v under a string key, in its old place if the key is there.
func (d *Dict) Set(name string, v Value) { d.put(name, stringKey(name), adopt(v)) }

// Get is the value under a string key.
func (d *Dict) Get(name string) (Value, bool) { return d.find(stringKey(name)) }

// Keys returns the keys that are strings, in order.
func (d *Dict) Keys() []string {
	out := make([]string, 0, len(d.entries))
	for _, e := range d.entries {
		if s, ok := asString(e.key); ok {
			out = append(out, s)
		}
	}
	return out
}

func (d *Dict) lookup(k key) int {
	if d.index != nil {
		if i, ok := d.index[k]; ok {
			return i
		}
		return -1
	}
	for i := range d.entries {
		if d.entries[i].hash == k {
			return i
		}
	}
	return -1
}

func (d *Dict) find(k key) (Value, bool) {
	if i := d.lookup(k); i >= 0 {
		return d.entries[i].val, true
	}
	return nil, false
}

func (d *Dict) put(name Value, k key, v Value) {
	if i := d.lookup(k); i >= 0 {
		d.entries[i].val = v
		return
	}
	d.entries = append(d.entries, entry{name, k, v})
	switch {
	case d.index != nil:
		d.index[k] = len(d.entries) - 1
	case len(d.entries) > smallDict:
		d.index = make(map[key]int, 2*len(d.entries))
		for i, e := range d.entries {
			d.index[e.hash] = i
		}
	}
}

// copyOf is a dict with the same entries.
func (d *Dict) copyOf() *Dict {
	out := NewDict()
	for _, e := range d.entries {
		out.put(e.key, e.hash, e.val)
	}
	return out
}

// key is what a value is known by in a dict or a set: two values that Python takes for equal have
// the same key.
type key struct {
	kind byte
	num  int64
	text string
	ref  any // of values that equal only themselves
}

func stringKey(s string) key { return key{kind: 's', text: s} }

// keyOf is the key of v, or a TypeError if Python cannot hash it.
func (r *run) keyOf(v Value) (key, error) {
	switch v := v.(type) {
	case string:
		return stringKey(v), nil
	case markup:
		return stringKey(string(v)), nil
	case nil:
		return key{kind: 'n'}, nil
	case bool:
		if v {
			return key{kind: 'i', num: 1}, nil
		}
		return key{kind: 'i'}, nil
	case int64:
		return key{kind: 'i', num: v}, nil
	case *big.Int:
		return key{kind: 'b', text: v.Text(62)}, nil
	case float64:
		return floatKey(v), nil
	case *undefined:
		return key{kind: 'u'}, nil
	case *Tuple:
		return r.tupleKey(v)
	case *List, *Dict, *dictView:
		return key{}, typeErr("unhashable type: '%s'", typeName(v))
	case *namespace, *macro, *loopContext, *cycler, *joiner, *generator, *method, *function, *rangeValue:
		return key{kind: 'r', ref: v}, nil
	}
	return key{}, typeErr("unhashable type: '%s'", typeName(v))
}

func floatKey(f float64) key {
	if f == math.Trunc(f) && !math.IsInf(f, 0) {
		if n, _ := big.NewFloat(f).Int(nil); n.IsInt64() {
			return key{kind: 'i', num: n.Int64()}
		} else {
			return key{kind: 'b', text: n.Text(62)}
		}
	}
	return key{kind: 'f', num: int64(math.Float64bits(f))}
}

// tupleKey writes the keys of the items one after the other, each with its length.
func (r *run) tupleKey(t *Tuple) (key, error) {
	if err := r.enter(); err != nil {
		return key{}, err
	}
	defer r.leave()
	var b strings.Builder
	for _, item := range t.items {
		k, err := r.keyOf(item)
		if err != nil {
			return key{}, err
		}
		if k.ref != nil {
			return key{}, fail(KindUnsupported, "a tuple that holds a %s is not supported as a dict key", typeName(item))
		}
		writeKey(&b, k)
		if err := r.charge(len(k.text) + 8); err != nil {
			return key{}, err
		}
	}
	return key{kind: 't', text: b.String()}, nil
}

func writeKey(b *strings.Builder, k key) {
	b.WriteByte(k.kind)
	b.WriteString(big.NewInt(k.num).Text(62))
	b.WriteByte(':')
	b.WriteString(big.NewInt(int64(len(k.text))).Text(62))
	b.WriteByte(':')
	b.WriteString(k.text)
}
