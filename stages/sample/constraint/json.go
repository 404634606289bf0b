package constraint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// value is a JSON value of a schema.
type value struct {
	kind   valueKind
	text   string   // what a string says, or how a number is written
	names  []string // of the members, in the order in which they are written
	member map[string]*value
	items  []*value

	parent *value
	key    string // in the parent: a name or an index
}

type valueKind string

const (
	kindNull   valueKind = "null"
	kindTrue   valueKind = "true"
	kindFalse  valueKind = "false"
	kindNumber valueKind = "a number"
	kindString valueKind = "a string"
	kindArray  valueKind = "an array"
	kindObject valueKind = "an object"
)

// parseJSON reads a schema. Of members with the same name the last counts.
func parseJSON(text []byte) (*value, error) {
	if len(text) > maxSchemaBytes {
		return nil, &LimitError{What: "bytes", Limit: maxSchemaBytes}
	}
	if !utf8.Valid(text) {
		return nil, &SchemaError{Why: "the schema is not valid UTF-8"}
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	v, err := parseValue(d, nil, "", 0)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = &SchemaError{Why: "something follows the schema"}
		}
	}
	if e, ok := errors.AsType[*SchemaError](err); ok {
		before := text[:min(int(d.InputOffset()), len(text))]
		column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
		e.Why += fmt.Sprintf(", at line %d, column %d", 1+bytes.Count(before, []byte("\n")), column)
	}
	return v, err
}

func parseValue(d *json.Decoder, parent *value, key string, depth int) (*value, error) {
	if depth > maxSchemaDepth {
		return nil, &LimitError{What: "levels of nesting", Limit: maxSchemaDepth}
	}
	token, err := d.Token()
	if err != nil {
		return nil, parent.notJSON(err)
	}
	v := &value{parent: parent, key: key}
	switch t := token.(type) {
	case nil:
		v.kind = kindNull
	case bool:
		if v.kind = kindFalse; t {
			v.kind = kindTrue
		}
	case json.Number:
		v.kind, v.text = kindNumber, t.String()
	case string:
		v.kind, v.text = kindString, t
	case json.Delim:
		if t == '[' {
			err = v.parseItems(d, depth)
		} else {
			err = v.parseMembers(d, depth)
		}
	}
	return v, err
}

func (v *value) parseItems(d *json.Decoder, depth int) error {
	v.kind = kindArray
	for d.More() {
		item, err := parseValue(d, v, strconv.Itoa(len(v.items)), depth+1)
		if err != nil {
			return err
		}
		v.items = append(v.items, item)
	}
	return v.parseEnd(d)
}

func (v *value) parseMembers(d *json.Decoder, depth int) error {
	v.kind, v.member = kindObject, map[string]*value{}
	for d.More() {
		name, err := parseValue(d, v, "", depth)
		if err != nil {
			return err
		}
		m, err := parseValue(d, v, name.text, depth+1)
		if err != nil {
			return err
		}
		if _, ok := v.member[name.text]; !ok {
			v.names = append(v.names, name.text)
		}
		v.member[name.text] = m
	}
	return v.parseEnd(d)
}

func (v *value) parseEnd(d *json.Decoder) error {
	if _, err := d.Token(); err != nil {
		return v.notJSON(err)
	}
	return nil
}

// notJSON returns the error of a schema that breaks off within a value, or nil.
func (v *value) notJSON(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return &SchemaError{Pointer: v.pointer(), Why: fmt.Sprintf("the schema is not valid JSON: %v", err)}
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// pointer returns where a value is in its schema, as a JSON pointer.
func (v *value) pointer() string {
	var parts []string
	for ; v != nil && v.parent != nil; v = v.parent {
		parts = append(parts, "/"+pointerEscapes.Replace(v.key))
	}
	var b strings.Builder
	for i := len(parts) - 1; i >= 0; i-- {
		b.WriteString(parts[i])
	}
	return b.String()
}

// at returns what a JSON pointer leads to, nil for nothing.
func (v *value) at(pointer string) *value {
	if pointer == "" {
		return v
	}
	for part := range strings.SplitSeq(pointer[1:], "/") {
		part = strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
		switch v.kind {
		case kindObject:
			v = v.member[part]
		case kindArray:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(v.items) {
				return nil
			}
			v = v.items[i]
		default:
			return nil
		}
		if v == nil {
			return nil
		}
	}
	return v
}

func (v *value) wrong(format string, args ...any) error {
	return &SchemaError{Pointer: v.pointer(), Why: fmt.Sprintf(format, args...)}
}

// is returns an error unless the value is of a kind.
func (v *value) is(kind valueKind) error {
	if v.kind != kind {
		return v.wrong("%s stands where %s must", v.kind, kind)
	}
	return nil
}

// strings returns the texts of a list of strings.
func (v *value) strings() ([]string, error) {
	if err := v.is(kindArray); err != nil {
		return nil, err
	}
	list := make([]string, len(v.items))
	for i, item := range v.items {
		if err := item.is(kindString); err != nil {
			return nil, err
		}
		list[i] = item.text
	}
	return list, nil
}

// count returns a number of characters, items or members; from unbounded on all are the same.
func (v *value) count() (int, error) {
	if err := v.is(kindNumber); err != nil {
		return 0, err
	}
	d, err := parseDecimal(v)
	if err != nil {
		return 0, err
	}
	if d.negative || d.fraction != "" {
		return 0, v.wrong("%s is not a number of things", v.text)
	}
	n, err := strconv.Atoi(d.whole)
	if err != nil || n > unbounded {
		return unbounded, nil
	}
	return n, nil
}
