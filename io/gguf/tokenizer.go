package gguf

import (
	"fmt"
	"math"

	"github.com/moeflux/moeflux-actor/tokenizer"
)

// tokenizerPrefix begins the keys of the tokenizer.
const tokenizerPrefix = "tokenizer.ggml."

// Tokenizer returns what the metadata has of the tokenizer, for tokenizer.FromGGUF. It fails if
// tokens or their types are missing, or if a key has a value of another type.
func (m *Metadata) Tokenizer() (*tokenizer.GGUF, error) {
	v := &tokenizer.GGUF{}
	r := keyReader{m: m}
	v.Model, v.Pre = r.text("model"), r.text("pre")
	v.Tokens = r.texts("tokens", true)
	v.Types = r.ids("token_type")
	v.Merges = r.texts("merges", false)
	v.BOS, v.EOS = r.id("bos_token_id"), r.id("eos_token_id")
	v.AddBOS, v.AddEOS = r.flag("add_bos_token"), r.flag("add_eos_token")
	if r.err != nil {
		return nil, r.err
	}
	return v, nil
}

// keyReader reads keys of the tokenizer and notes the first fault.
type keyReader struct {
	m   *Metadata
	err error
}

// get returns the value of a key, which a fault is about if it is not what it must be.
func (r *keyReader) get(key string, needed bool, what string, fits func(Value) bool) (Value, bool) {
	v, ok := r.m.Get(tokenizerPrefix + key)
	switch {
	case r.err != nil || !ok && !needed:
		return Value{}, false
	case !ok:
		r.err = fmt.Errorf("gguf: %s%s is missing", tokenizerPrefix, key)
	case !fits(v):
		r.err = fmt.Errorf("gguf: %s%s is no %s", tokenizerPrefix, key, what)
	}
	return v, r.err == nil
}

// text reads a string; "" if there is none.
func (r *keyReader) text(key string) string {
	v, _ := r.get(key, false, "string", func(v Value) bool { return v.Type == String })
	s, _ := v.Text()
	return s
}

// flag reads a truth value; false if there is none.
func (r *keyReader) flag(key string) bool {
	v, _ := r.get(key, false, "truth value", func(v Value) bool { return v.Type == Bool })
	b, _ := v.Bool()
	return b
}

// id reads the id of a token; -1 if there is none.
func (r *keyReader) id(key string) int32 {
	v, ok := r.get(key, false, "id of a token", isID)
	if !ok {
		return -1
	}
	n, _ := v.Int()
	return int32(n)
}

// isID reports whether a value is a number that an id can be.
func isID(v Value) bool {
	n, ok := v.Int()
	return ok && n >= 0 && n <= math.MaxInt32
}

// texts reads an array of strings.
func (r *keyReader) texts(key string, needed bool) []string {
	v, ok := r.get(key, needed, "array of strings", func(v Value) bool { return v.Type == Array && v.Elem == String })
	if !ok {
		return nil
	}
	out := make([]string, 0, v.Len)
	for e := range v.Elements() {
		s, _ := e.Text()
		out = append(out, s)
	}
	return out
}

// ids reads an array of small whole numbers, which must be there.
func (r *keyReader) ids(key string) []int32 {
	v, ok := r.get(key, true, "array of whole numbers", func(v Value) bool {
		for e := range v.Elements() {
			if !isID(e) {
				return false
			}
		}
		return v.Type == Array
	})
	if !ok {
		return nil
	}
	out := make([]int32, 0, v.Len)
	for e := range v.Elements() {
		n, _ := e.Int()
		out = append(out, int32(n))
	}
	return out
}
