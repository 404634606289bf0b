package model

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// reader reads keys of one JSON object and gathers what is wrong with them.
type reader struct {
	file, path string // path ends in a dot or is empty
	obj        map[string]json.RawMessage
	errs       *[]error
}

// newReader returns nil, with the error gathered, if data is not a JSON object.
func newReader(file, path string, data []byte, errs *[]error) *reader {
	r := &reader{file: file, path: path, errs: errs}
	if err := json.Unmarshal(data, &r.obj); err != nil {
		*errs = append(*errs, &ConfigError{File: file, Key: trimDot(path), Why: "not a JSON object: " + err.Error(), Err: err})
		return nil
	}
	if r.obj == nil {
		*errs = append(*errs, &ConfigError{File: file, Key: trimDot(path), Why: "not a JSON object: null"})
		return nil
	}
	return r
}

func trimDot(path string) string {
	if path == "" {
		return ""
	}
	return path[:len(path)-1]
}

func (r *reader) fail(key, format string, args ...any) {
	*r.errs = append(*r.errs, &ConfigError{File: r.file, Key: r.path + key, Why: fmt.Sprintf(format, args...)})
}

// get returns a key's value; null counts as absent.
func (r *reader) get(key string) (json.RawMessage, bool) {
	raw, ok := r.obj[key]
	return raw, ok && string(raw) != "null"
}

func (r *reader) has(key string) bool {
	_, ok := r.get(key)
	return ok
}

// object returns a reader of a nested object, nil if it is absent or no object.
func (r *reader) object(key string) *reader {
	raw, ok := r.get(key)
	if !ok {
		return nil
	}
	return newReader(r.file, r.path+key+".", raw, r.errs)
}

// decode fills v from a value, with an error that shows the value.
func (r *reader) decode(key string, raw json.RawMessage, v any, want string) bool {
	if err := json.Unmarshal(raw, v); err != nil {
		r.fail(key, "%s is not %s", excerpt(raw), want)
		return false
	}
	return true
}

// excerpt bounds what an error shows of a value.
func excerpt(raw []byte) string {
	if len(raw) > 40 {
		return string(raw[:40]) + "…"
	}
	return string(raw)
}

// int returns a required integer in [lo, hi], 0 if it is not one.
func (r *reader) int(key string, lo, hi int) int {
	raw, ok := r.get(key)
	if !ok {
		r.fail(key, "missing")
		return 0
	}
	var n int64
	if !r.decode(key, raw, &n, "a whole number of at most 63 bits") {
		return 0
	}
	if n < int64(lo) || n > int64(hi) {
		r.fail(key, "%d is outside %d to %d", n, lo, hi)
		return 0
	}
	return int(n)
}

// intOr is int for a key that may be absent.
func (r *reader) intOr(key string, lo, hi, absent int) int {
	if !r.has(key) {
		return absent
	}
	return r.int(key, lo, hi)
}

// zero refuses any value of an optional number but 0.
func (r *reader) zero(key string) {
	if r.has(key) {
		r.int(key, 0, 0)
	}
}

// float returns a required number in (lo, hi], 0 if it is not one.
func (r *reader) float(key string, lo, hi float64) float64 {
	raw, ok := r.get(key)
	if !ok {
		r.fail(key, "missing")
		return 0
	}
	var x float64
	if !r.decode(key, raw, &x, "a number") {
		return 0
	}
	if !(x > lo && x <= hi) {
		r.fail(key, "%v is outside (%v, %v]", x, lo, hi)
		return 0
	}
	return x
}

// floatOr is float for a key that may be absent.
func (r *reader) floatOr(key string, lo, hi, absent float64) float64 {
	if !r.has(key) {
		return absent
	}
	return r.float(key, lo, hi)
}

func (r *reader) bool(key string, absent bool) bool {
	raw, ok := r.get(key)
	if !ok {
		return absent
	}
	var b bool
	r.decode(key, raw, &b, "true or false")
	return b
}

// require refuses any value of an optional flag but the one that the engine implements.
func (r *reader) require(key string, want bool) {
	if r.bool(key, want) != want && len(r.obj[key]) > 0 {
		r.fail(key, "%s is not supported", excerpt(r.obj[key]))
	}
}

// oneOf refuses any value of an optional string but the given ones, which it returns; "" if it is
// absent or refused.
func (r *reader) oneOf(key string, known ...string) string {
	raw, ok := r.get(key)
	if !ok {
		return ""
	}
	s, ok := r.string(key, raw)
	if ok && !slices.Contains(known, s) {
		r.fail(key, "%q is not supported, only %s", s, `"`+strings.Join(known, `" and "`)+`"`)
		return ""
	}
	return s
}

func (r *reader) string(key string, raw json.RawMessage) (string, bool) {
	var s string
	ok := r.decode(key, raw, &s, "a string")
	return s, ok
}

func (r *reader) strings(key string, raw json.RawMessage) ([]string, bool) {
	var s []string
	ok := r.decode(key, raw, &s, "a list of strings")
	return s, ok
}

func (r *reader) ints(key string, raw json.RawMessage) []int64 {
	var n []int64
	r.decode(key, raw, &n, "a list of whole numbers")
	return n
}

// tokens returns the ids under key: one number, a list, or nothing.
func (r *reader) tokens(key string, vocab int) []int32 {
	raw, ok := r.get(key)
	if !ok {
		return nil
	}
	var ids []int64
	if raw[0] == '[' {
		ids = r.ints(key, raw)
	} else {
		var id int64
		if !r.decode(key, raw, &id, "a token id") {
			return nil
		}
		ids = []int64{id}
	}
	var out []int32
	for _, id := range ids {
		if id < 0 || vocab > 0 && id >= int64(vocab) || id > maxVocab {
			r.fail(key, "token %d is outside the vocabulary of %d", id, vocab)
			continue
		}
		out = append(out, int32(id))
	}
	return out
}

// divides wants a number of heads to divide among groups.
func (r *reader) divides(key string, n int, groupKey string, groups int) {
	if n > 0 && groups > 0 && n%groups != 0 {
		r.fail(key, "%d does not divide among %s %d", n, groupKey, groups)
	}
}
