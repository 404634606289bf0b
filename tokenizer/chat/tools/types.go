package tools

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/moeflux/moeflux-actor/tokenizer/chat"
)

// types are the JSON types that a value may have, a bit each. None means that nothing is known.
type types uint8

const (
	typeString types = 1 << iota
	typeNumber
	typeBool
	typeNull
	typeObject
	typeArray
)

var typeNames = map[string]types{
	"string": typeString, "number": typeNumber, "integer": typeNumber, "boolean": typeBool,
	"null": typeNull, "object": typeObject, "array": typeArray,
}

// onlyText reports whether a value is a string for certain.
func (t types) onlyText() bool { return t == typeString }

// convert returns the JSON of a value that is written without quotes. A value that has none of its
// types, which its function's schema will refuse, is a string; so is one of unknown type that is
// not JSON.
func (t types) convert(value string) string {
	text := strings.TrimSpace(value)
	switch text { // templates write Python's names
	case "True", "False":
		if t&typeBool != 0 {
			return strings.ToLower(text)
		}
	case "None":
		if t&typeNull != 0 {
			return "null"
		}
	}
	if json.Valid([]byte(text)) {
		if is := typeOf(text); t&is != 0 && is != typeString || t == 0 && is != typeString {
			return text
		}
	}
	return `"` + quoted(value) + `"`
}

// typeOf is the type of a JSON text.
func typeOf(text string) types {
	switch text[0] {
	case '"':
		return typeString
	case '{':
		return typeObject
	case '[':
		return typeArray
	case 't', 'f':
		return typeBool
	case 'n':
		return typeNull
	}
	return typeNumber
}

// paramTypes are the types of a function's parameters, by name.
type paramTypes map[string]types

// typesOf returns what is known of a parameter.
func (p *Parser) typesOf(function, param string) types {
	if p.types == nil {
		p.types = map[string]paramTypes{}
	}
	known, ok := p.types[function]
	if !ok {
		for _, f := range p.options.Tools {
			if f.Name() == function {
				known = typesIn(f)
			}
		}
		p.types[function] = known
	}
	return known[param]
}

// typesIn reads the types of a function's parameters from its schema.
func typesIn(f *chat.Function) paramTypes {
	var schema struct{ Properties map[string]json.RawMessage }
	if json.Unmarshal(f.Parameters(), &schema) != nil {
		return nil
	}
	out := paramTypes{}
	for name, raw := range schema.Properties {
		out[name] = schemaTypes(f.Parameters(), raw, 0)
	}
	return out
}

// schemaTypes returns the types that a schema allows; root is for its references.
func schemaTypes(root, raw json.RawMessage, depth int) types {
	var s struct {
		Type         json.RawMessage
		Enum         []json.RawMessage
		Const        json.RawMessage
		AnyOf, OneOf []json.RawMessage
		Ref          string `json:"$ref"`
	}
	if depth > 16 || json.Unmarshal(raw, &s) != nil {
		return 0
	}
	if s.Ref != "" {
		return schemaTypes(root, refersTo(root, s.Ref), depth+1)
	}
	var out types
	var name string
	var names []string
	switch {
	case s.Type == nil:
	case json.Unmarshal(s.Type, &name) == nil:
		out = typeNames[name]
	case json.Unmarshal(s.Type, &names) == nil:
		for _, n := range names {
			out |= typeNames[n]
		}
	}
	if out != 0 {
		return out
	}
	values := s.Enum
	if s.Const != nil {
		values = append(values, s.Const)
	}
	for _, v := range values {
		out |= typeOf(strings.TrimSpace(string(v)))
	}
	for _, alternative := range append(s.AnyOf, s.OneOf...) {
		t := schemaTypes(root, alternative, depth+1)
		if t == 0 {
			return 0 // anything
		}
		out |= t
	}
	return out
}

// refersTo returns what a local reference points to, nil if nothing.
func refersTo(root json.RawMessage, ref string) json.RawMessage {
	path, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil
	}
	for _, key := range strings.Split(path, "/") {
		var object map[string]json.RawMessage
		if json.Unmarshal(root, &object) != nil {
			return nil
		}
		root = object[strings.NewReplacer("~1", "/", "~0", "~").Replace(key)]
	}
	return root
}

// quoting replaces the bytes that a JSON string cannot hold as they are.
var quoting = newQuoting()

func newQuoting() *strings.Replacer {
	pairs := []string{`"`, `\"`, `\`, `\\`, "\n", `\n`, "\r", `\r`, "\t", `\t`}
	for c := range ' ' {
		pairs = append(pairs, string(c), fmt.Sprintf(`\u%04x`, c)) // of two for one byte the first counts
	}
	return strings.NewReplacer(pairs...)
}

// quoted is text as within a JSON string, byte by byte: a piece may end in the middle of a
// character.
func quoted(text string) string { return quoting.Replace(text) }
