package tokenizer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// object is a JSON object of tokenizer.json that is taken apart key by key. The first error is kept
// in err. Keys that are left when end is called are unsupported.
type object struct {
	path   string
	fields map[string]json.RawMessage
	err    error
}

// newObject reads raw as an object. path names it in errors, "" is the whole file.
func newObject(path string, raw []byte) *object {
	o := &object{path: path}
	name := path
	if name == "" {
		name = "tokenizer.json"
	}
	if err := json.Unmarshal(raw, &o.fields); err != nil {
		o.err = fmt.Errorf("tokenizer: %s is not a JSON object: %w", name, err)
	} else if o.fields == nil {
		o.err = fmt.Errorf("tokenizer: %s is null, not a JSON object", name)
	}
	return o
}

// key returns the path of a key for errors.
func (o *object) key(name string) string {
	if o.path == "" {
		return name
	}
	return o.path + "." + name
}

// take removes a key and returns its value, nil if it is absent or null.
func (o *object) take(name string) json.RawMessage {
	raw := o.fields[name]
	delete(o.fields, name)
	if isNull(raw) {
		return nil
	}
	return raw
}

// into takes a key and decodes its value into dst, which is left unchanged if the key is absent or
// null.
func (o *object) into(name string, dst any) {
	raw := o.take(name)
	if raw == nil || o.err != nil {
		return
	}
	if err := json.Unmarshal(raw, dst); err != nil {
		o.err = fmt.Errorf("tokenizer: %s: %w", o.key(name), err)
	}
}

// text takes a string, "" if it is absent.
func (o *object) text(name string) (s string) {
	o.into(name, &s)
	return s
}

// flag takes a boolean that is def if absent.
func (o *object) flag(name string, def bool) bool {
	o.into(name, &def)
	return def
}

// ignore takes keys that have no effect here.
func (o *object) ignore(names ...string) {
	for _, name := range names {
		delete(o.fields, name)
	}
}

// allow takes keys that must be absent, null or one of the JSON values given.
func (o *object) allow(name string, values ...string) {
	raw := o.take(name)
	if raw == nil || slices.Contains(values, string(raw)) {
		return
	}
	o.refuse(name, raw)
}

// refuse records an unsupported value.
func (o *object) refuse(name string, raw []byte) {
	if o.err == nil {
		o.err = &UnsupportedError{Key: o.key(name), Value: excerpt(string(raw))}
	}
}

// fail records a malformed value.
func (o *object) fail(name, format string, args ...any) {
	if o.err == nil {
		o.err = fmt.Errorf("tokenizer: %s: %w", o.key(name), fmt.Errorf(format, args...))
	}
}

// end returns the first error, or refuses a key that was not taken.
func (o *object) end() error {
	if o.err != nil {
		return o.err
	}
	left := make([]string, 0, len(o.fields))
	for name, raw := range o.fields {
		if !isNull(raw) {
			left = append(left, name)
		}
	}
	if len(left) == 0 {
		return nil
	}
	name := slices.Min(left)
	return &UnsupportedError{Key: excerpt(o.key(name)), Value: excerpt(string(o.fields[name]))}
}

func isNull(raw []byte) bool {
	return len(raw) == 0 || bytes.Equal(raw, []byte("null"))
}
