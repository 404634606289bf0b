// Package body reads the JSON objects that clients send, field by field. What is wrong is noted
// where it is met, by its path; the first fault counts.
package body

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"

	"github.com/moeflux/moeflux-actor/server/fault"
)

// Object is a JSON object of a request. Its methods read fields by name and note the first fault;
// what is absent or null is the zero value.
type Object struct {
	Path   string // of the object, with a dot behind it; "" at the top
	Fields map[string]json.RawMessage
	found  *found
}

// found is the first fault of a body.
type found struct{ fault *fault.Fault }

// Read reads the body of a request, to its end: only then a client that leaves is noticed.
func Read(r *http.Request) (*Object, *fault.Fault) {
	data, err := io.ReadAll(r.Body)
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, TooLarge(large.Limit)
	}
	if err != nil {
		return nil, &fault.Fault{Status: http.StatusBadRequest, Type: fault.InvalidRequest, Code: "unreadable_body", Message: "the body could not be read: " + err.Error()}
	}
	o := &Object{found: new(found)}
	if err := decode(data, &o.Fields); err != nil || o.Fields == nil {
		return nil, &fault.Fault{Status: http.StatusBadRequest, Type: fault.InvalidRequest, Code: "invalid_json", Message: jsonProblem(err)}
	}
	return o, nil
}

// TooLarge is the fault of a body that is longer than limit bytes.
func TooLarge(limit int64) *fault.Fault {
	return &fault.Fault{
		Status: http.StatusRequestEntityTooLarge, Type: fault.InvalidRequest, Code: "body_too_large",
		Message: fmt.Sprintf("the body is longer than %d bytes", limit),
	}
}

// decode reads one JSON value and nothing after it.
func decode(data []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	if err := d.Decode(to); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("there is more after the object")
	}
	return nil
}

func jsonProblem(err error) string {
	const wanted = "the body must be one JSON object"
	if err == nil {
		return wanted
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Sprintf("%s, not %s", wanted, article(wrong.Value))
	}
	return wanted + ": " + err.Error()
}

func article(noun string) string {
	if strings.ContainsRune("aeiou", rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}

// Fault returns the first fault of the body; nil if none was noted.
func (o *Object) Fault() *fault.Fault { return o.found.fault }

// Fail notes a fault of a field.
func (o *Object) Fail(name, format string, args ...any) {
	o.Note(fault.Invalid(o.Path+name, format, args...))
}

// Note notes a fault; nil is none.
func (o *Object) Note(f *fault.Fault) {
	if o.found.fault == nil && f != nil {
		o.found.fault = f
	}
}

// Has reports whether a field is there and not null.
func (o *Object) Has(name string) bool {
	raw, ok := o.Fields[name]
	return ok && !bytes.Equal(bytes.TrimSpace(raw), []byte("null"))
}

// Value reads a field of a type that is called kind.
func (o *Object) Value(name, kind string, to any) bool {
	if !o.Has(name) {
		return false
	}
	if err := json.Unmarshal(o.Fields[name], to); err != nil {
		o.Fail(name, "%s must be %s", o.Path+name, kind)
		return false
	}
	return true
}

// Number reads a number within bounds, both included.
func (o *Object) Number(name string, least, most float64) *float64 {
	var v float64
	if !o.Value(name, "a number", &v) {
		return nil
	}
	if math.IsNaN(v) || v < least || v > most {
		o.Fail(name, "%s must be from %v to %v", o.Path+name, least, most)
		return nil
	}
	return &v
}

// Integer reads a whole number within bounds, both included. 1.0 is one.
func (o *Object) Integer(name string, least, most int64) *int {
	var v float64
	if !o.Value(name, "a whole number", &v) {
		return nil
	}
	if v != math.Trunc(v) {
		o.Fail(name, "%s must be a whole number", o.Path+name)
		return nil
	}
	if v < float64(least) || v > float64(most) {
		o.Fail(name, "%s must be from %d to %d", o.Path+name, least, most)
		return nil
	}
	n := int(v)
	return &n
}

// Boolean reads true or false; given is false where there is neither.
func (o *Object) Boolean(name string) (v, given bool) {
	given = o.Value(name, "true or false", &v)
	return v, given
}

// Text reads a string; given is false where there is none.
func (o *Object) Text(name string) (v string, given bool) {
	given = o.Value(name, "a string", &v)
	return v, given
}

// Word reads a string that must be one of some.
func (o *Object) Word(name string, words ...string) string {
	v, given := o.Text(name)
	if !given {
		return ""
	}
	for _, w := range words {
		if v == w {
			return v
		}
	}
	o.Fail(name, "%s must be one of %s", o.Path+name, strings.Join(words, ", "))
	return ""
}

// List reads a list of at most so many values.
func (o *Object) List(name string, most int) []json.RawMessage {
	var v []json.RawMessage
	if !o.Value(name, "a list", &v) {
		return nil
	}
	if len(v) > most {
		o.Fail(name, "%s has %d elements; %d are allowed", o.Path+name, len(v), most)
		return nil
	}
	return v
}

// Object reads an object; nil where there is none.
func (o *Object) Object(name string) *Object {
	inner := &Object{Path: o.Path + name + ".", found: o.found}
	if !o.Value(name, "an object", &inner.Fields) {
		return nil
	}
	return inner
}

// Element returns an element of a list as an object; nil, with a fault, if it is none.
func (o *Object) Element(name string, i int, raw json.RawMessage) *Object {
	inner := &Object{Path: fmt.Sprintf("%s%s[%d].", o.Path, name, i), found: o.found}
	if err := json.Unmarshal(raw, &inner.Fields); err != nil || inner.Fields == nil {
		o.Note(fault.Invalid(strings.TrimSuffix(inner.Path, "."), "%s must be an object", strings.TrimSuffix(inner.Path, ".")))
		return nil
	}
	return inner
}

// Refuse refuses fields that are known and not done.
func (o *Object) Refuse(why string, names ...string) {
	for _, name := range names {
		if o.Has(name) {
			o.Note(fault.Unsupported(o.Path+name, "%s is not supported: %s", o.Path+name, why))
		}
	}
}

// Only accepts a field with these values alone, which change nothing.
func (o *Object) Only(name, why string, values ...any) {
	if !o.Has(name) {
		return
	}
	var v any
	if err := json.Unmarshal(o.Fields[name], &v); err == nil {
		for _, w := range values {
			if v == w {
				return
			}
		}
	}
	o.Note(fault.Unsupported(o.Path+name, "%s: only %s is supported; %s", o.Path+name, jsonList(values), why))
}

func jsonList(values []any) string {
	texts := make([]string, len(values))
	for i, v := range values {
		b, _ := json.Marshal(v)
		texts[i] = string(b)
	}
	return strings.Join(texts, " or ")
}

// maxTexts is how many blocks a text may have.
const maxTexts = 100_000

// Texts reads a text, or a list of blocks that are texts, those that keep wants.
func (o *Object) Texts(name string, keep func(i int, text string) bool) (texts []string) {
	var one string
	if json.Unmarshal(o.Fields[name], &one) == nil {
		return []string{one}
	}
	for i, raw := range o.List(name, maxTexts) {
		b := o.Element(name, i, raw)
		if b == nil {
			return nil
		}
		if b.Word("type", "text") == "" {
			b.Fail("type", "%stype: only blocks of text are supported here", b.Path)
			return nil
		}
		if text, _ := b.Text("text"); keep == nil || keep(i, text) {
			texts = append(texts, text)
		}
	}
	return texts
}
