package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
)

// object is a JSON object of a request. Its methods read fields by name and note the first fault;
// what is absent or null is the zero value.
type object struct {
	path   string // of the object, with a dot behind it; "" at the top
	fields map[string]json.RawMessage
	found  *found
}

// found is the first fault of a body.
type found struct{ fault *fault }

// readBody reads the body of a request, to its end: only then a client that leaves is noticed.
func readBody(r *http.Request) (*object, *fault) {
	data, err := io.ReadAll(r.Body)
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, tooLarge(large.Limit)
	}
	if err != nil {
		return nil, &fault{Status: http.StatusBadRequest, Type: invalidRequest, Code: "unreadable_body", Message: "the body could not be read: " + err.Error()}
	}
	o := &object{found: new(found)}
	if err := decode(data, &o.fields); err != nil || o.fields == nil {
		return nil, &fault{Status: http.StatusBadRequest, Type: invalidRequest, Code: "invalid_json", Message: jsonProblem(err)}
	}
	return o, nil
}

// tooLarge is the fault of a body beyond Options.MaxBody.
func tooLarge(limit int64) *fault {
	return &fault{
		Status: http.StatusRequestEntityTooLarge, Type: invalidRequest, Code: "body_too_large",
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

// fault returns the first fault of the body; nil if none was noted.
func (o *object) fault() *fault { return o.found.fault }

// fail notes a fault of a field.
func (o *object) fail(name, format string, args ...any) {
	o.note(invalid(o.path+name, format, args...))
}

func (o *object) note(f *fault) {
	if o.found.fault == nil && f != nil {
		o.found.fault = f
	}
}

// has reports whether a field is there and not null.
func (o *object) has(name string) bool {
	raw, ok := o.fields[name]
	return ok && !bytes.Equal(bytes.TrimSpace(raw), []byte("null"))
}

// value reads a field of a type that is called kind.
func (o *object) value(name, kind string, to any) bool {
	if !o.has(name) {
		return false
	}
	if err := json.Unmarshal(o.fields[name], to); err != nil {
		o.fail(name, "%s must be %s", o.path+name, kind)
		return false
	}
	return true
}

// number reads a number within bounds, both included.
func (o *object) number(name string, least, most float64) *float64 {
	var v float64
	if !o.value(name, "a number", &v) {
		return nil
	}
	if math.IsNaN(v) || v < least || v > most {
		o.fail(name, "%s must be from %v to %v", o.path+name, least, most)
		return nil
	}
	return &v
}

// integer reads a whole number within bounds, both included. 1.0 is one.
func (o *object) integer(name string, least, most int64) *int {
	var v float64
	if !o.value(name, "a whole number", &v) {
		return nil
	}
	if v != math.Trunc(v) {
		o.fail(name, "%s must be a whole number", o.path+name)
		return nil
	}
	if v < float64(least) || v > float64(most) {
		o.fail(name, "%s must be from %d to %d", o.path+name, least, most)
		return nil
	}
	n := int(v)
	return &n
}

func (o *object) boolean(name string) (v, given bool) {
	given = o.value(name, "true or false", &v)
	return v, given
}

// text reads a string; given is false where there is none.
func (o *object) text(name string) (v string, given bool) {
	given = o.value(name, "a string", &v)
	return v, given
}

// word reads a string that must be one of some.
func (o *object) word(name string, words ...string) string {
	v, given := o.text(name)
	if !given {
		return ""
	}
	for _, w := range words {
		if v == w {
			return v
		}
	}
	o.fail(name, "%s must be one of %s", o.path+name, strings.Join(words, ", "))
	return ""
}

// list reads a list of at most so many values.
func (o *object) list(name string, most int) []json.RawMessage {
	var v []json.RawMessage
	if !o.value(name, "a list", &v) {
		return nil
	}
	if len(v) > most {
		o.fail(name, "%s has %d elements; %d are allowed", o.path+name, len(v), most)
		return nil
	}
	return v
}

// object reads an object; nil where there is none.
func (o *object) object(name string) *object {
	inner := &object{path: o.path + name + ".", found: o.found}
	if !o.value(name, "an object", &inner.fields) {
		return nil
	}
	return inner
}

// element returns an element of a list as an object; nil, with a fault, if it is none.
func (o *object) element(name string, i int, raw json.RawMessage) *object {
	inner := &object{path: fmt.Sprintf("%s%s[%d].", o.path, name, i), found: o.found}
	if err := json.Unmarshal(raw, &inner.fields); err != nil || inner.fields == nil {
		o.note(invalid(strings.TrimSuffix(inner.path, "."), "%s must be an object", strings.TrimSuffix(inner.path, ".")))
		return nil
	}
	return inner
}

// refuse refuses fields that are known and not done.
func (o *object) refuse(why string, names ...string) {
	for _, name := range names {
		if o.has(name) {
			o.note(unsupported(o.path+name, "%s is not supported: %s", o.path+name, why))
		}
	}
}

// only accepts a field with these values alone, which change nothing.
func (o *object) only(name, why string, values ...any) {
	if !o.has(name) {
		return
	}
	var v any
	if err := json.Unmarshal(o.fields[name], &v); err == nil {
		for _, w := range values {
			if v == w {
				return
			}
		}
	}
	o.note(unsupported(o.path+name, "%s: only %s is supported; %s", o.path+name, jsonList(values), why))
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

// texts reads a text, or a list of blocks that are texts, those that keep wants.
func (o *object) texts(name string, keep func(i int, text string) bool) (texts []string) {
	var one string
	if json.Unmarshal(o.fields[name], &one) == nil {
		return []string{one}
	}
	for i, raw := range o.list(name, maxTexts) {
		b := o.element(name, i, raw)
		if b == nil {
			return nil
		}
		if b.word("type", "text") == "" {
			b.fail("type", "%stype: only blocks of text are supported here", b.path)
			return nil
		}
		if text, _ := b.text("text"); keep == nil || keep(i, text) {
			texts = append(texts, text)
		}
	}
	return texts
}
