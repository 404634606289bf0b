package gguf

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math"
)

// ValueType is the type of a metadata value, numbered as in files.
type ValueType uint32

// The types of values.
const (
	Uint8 ValueType = iota
	Int8
	Uint16
	Int16
	Uint32
	Int32
	Float32
	Bool
	String
	Array
	Uint64
	Int64
	Float64
)

// valueTypes are the names of the types, and their bytes where all values have the same.
var valueTypes = [...]struct {
	name  string
	bytes uint64
}{
	{"uint8", 1}, {"int8", 1}, {"uint16", 2}, {"int16", 2}, {"uint32", 4}, {"int32", 4}, {"float32", 4},
	{"bool", 1}, {"string", 0}, {"array", 0}, {"uint64", 8}, {"int64", 8}, {"float64", 8},
}

// String returns the type's name.
func (t ValueType) String() string {
	if int(t) >= len(valueTypes) {
		return fmt.Sprintf("type %d", uint32(t))
	}
	return valueTypes[t].name
}

// Value is one value of the metadata: a view of the file, valid as long as that.
type Value struct {
	Type ValueType
	Elem ValueType // of an array's elements
	Len  int       // elements of an array
	raw  []byte    // without the length of a string, and without type and length of an array
}

// deepest bounds arrays in arrays.
const deepest = 4

// value reads a value, of which it checks everything, so that a Value can be used without errors.
func (c *cursor) value(t ValueType, depth int) Value {
	v := Value{Type: t}
	switch {
	case c.err != nil:
	case int(t) >= len(valueTypes):
		c.fail(nil, "its value is of the unknown type %d", uint32(t))
	case t == String:
		v.raw = c.take(c.u64())
	case t == Array:
		c.array(&v, depth)
	default:
		v.raw = c.take(valueTypes[t].bytes)
		c.bools(t, v.raw)
	}
	return v
}

// array reads an array into v.
func (c *cursor) array(v *Value, depth int) {
	v.Elem = ValueType(c.u32())
	n := c.u64()
	switch {
	case c.err != nil:
		return
	case int(v.Elem) >= len(valueTypes):
		c.fail(nil, "its array is of the unknown type %d", uint32(v.Elem))
		return
	case v.Elem == Array && depth == deepest:
		c.fail(nil, "arrays lie in arrays more than %d deep", deepest)
		return
	}
	begin := c.at
	switch v.Elem {
	case String:
		v.Len = c.count(n, 8, "strings")
		for i := 0; i < v.Len && c.err == nil; i++ {
			c.take(c.u64())
		}
	case Array:
		v.Len = c.count(n, 12, "arrays")
		for i := 0; i < v.Len && c.err == nil; i++ {
			c.value(Array, depth+1)
		}
	default:
		each := valueTypes[v.Elem].bytes
		v.Len = c.count(n, each, "numbers")
		c.bools(v.Elem, c.take(uint64(v.Len)*each))
	}
	if c.err == nil {
		v.raw = c.data[begin:c.at:c.at]
	}
}

// bools checks that truth values are 0 or 1.
func (c *cursor) bools(t ValueType, raw []byte) {
	if t != Bool {
		return
	}
	for _, b := range raw {
		if b > 1 {
			c.fail(nil, "a truth value is %d: it must be 0 or 1", b)
			return
		}
	}
}

// Text returns a string, and false if the value is none. Nothing is said of its encoding.
func (v Value) Text() (string, bool) {
	if v.Type != String {
		return "", false
	}
	return string(v.raw), true
}

// Bool returns a truth value, and false if the value is none.
func (v Value) Bool() (value, ok bool) {
	return v.Type == Bool && v.raw[0] == 1, v.Type == Bool
}

// Int returns a whole number of any type, and false if the value is none or above the greatest
// int64. Writers differ in the type that they give a key.
func (v Value) Int() (int64, bool) {
	switch v.Type {
	case Uint8:
		return int64(v.raw[0]), true
	case Int8:
		return int64(int8(v.raw[0])), true
	case Uint16:
		return int64(binary.LittleEndian.Uint16(v.raw)), true
	case Int16:
		return int64(int16(binary.LittleEndian.Uint16(v.raw))), true
	case Uint32:
		return int64(binary.LittleEndian.Uint32(v.raw)), true
	case Int32:
		return int64(int32(binary.LittleEndian.Uint32(v.raw))), true
	case Uint64, Int64:
		n := int64(binary.LittleEndian.Uint64(v.raw))
		return n, v.Type == Int64 || n >= 0
	}
	return 0, false
}

// Uint returns a whole number of any type, and false if the value is none or negative.
func (v Value) Uint() (uint64, bool) {
	if v.Type == Uint64 {
		return binary.LittleEndian.Uint64(v.raw), true
	}
	n, ok := v.Int()
	return uint64(n), ok && n >= 0
}

// Float returns a floating-point number of either type, and false if the value is none.
func (v Value) Float() (float64, bool) {
	switch v.Type {
	case Float32:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(v.raw))), true
	case Float64:
		return math.Float64frombits(binary.LittleEndian.Uint64(v.raw)), true
	}
	return 0, false
}

// Elements yields the elements of an array; nothing if the value is none.
func (v Value) Elements() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		c := cursor{data: v.raw}
		for range v.Len {
			if !yield(c.value(v.Elem, 0)) {
				return
			}
		}
	}
}
