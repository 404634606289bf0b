package gguf

import "slices"

// Metadata is what a file says under keys.
type Metadata struct {
	keys   []string
	values map[string]Value
}

// leastEntry is the bytes of the smallest entry: the length of a key of one byte, a type, a value.
const leastEntry = 8 + 1 + 4 + 1

// metadata reads n entries.
func (c *cursor) metadata(n int) *Metadata {
	m := &Metadata{values: map[string]Value{}}
	for i := 0; i < n && c.err == nil; i++ {
		key := c.text("key")
		c.name = key
		v := c.value(ValueType(c.u32()), 0)
		if _, twice := m.values[key]; twice {
			c.fail(nil, "the key is there twice")
		}
		m.keys = append(m.keys, key)
		m.values[key] = v
	}
	c.name = ""
	return m
}

// Keys returns all keys in the order of the file.
func (m *Metadata) Keys() []string { return slices.Clone(m.keys) }

// Get returns the value of a key.
func (m *Metadata) Get(key string) (Value, bool) {
	v, ok := m.values[key]
	return v, ok
}

// Text returns the string of a key; "" and false if there is none.
func (m *Metadata) Text(key string) (string, bool) {
	v, ok := m.values[key]
	if !ok {
		return "", false
	}
	return v.Text()
}

// Int returns the whole number of a key; 0 and false if there is none.
func (m *Metadata) Int(key string) (int64, bool) {
	v, ok := m.values[key]
	if !ok {
		return 0, false
	}
	return v.Int()
}
