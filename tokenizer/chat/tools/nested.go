package tools

import (
	"encoding/json"
	"errors"
	"strings"
)

// miniMaxWord is before each tag of MiniMax M3; it is a token of its own.
const miniMaxWord = "]<]minimax[>["

// miniMax3 is the form of MiniMax M3. W stands for miniMaxWord:
//
//	W<tool_call>
//	W<invoke name="NAME">W<KEY>VALUEW</KEY>W<LIST>W<item>VALUEW</item>W</LIST>W</invoke>
//	W</tool_call>
//
// An object is a tag for each of its members, a list one named item for each of its own.
var miniMax3 = &xmlForm{
	section: miniMaxWord + toolCall, sectionEnd: miniMaxWord + toolCallEnd,
	call: miniMaxWord + `<invoke name="`, callEnd: miniMaxWord + "</invoke>", nameEnd: `">`,
	param: miniMaxWord + "<", keyEnd: ">", valueEnd: miniMaxWord + "</", nested: true,
}

// notInTags are the characters that no name of a tag has.
const notInTags = "<>/\" \t\r\n"

// errNested reports a value that may be nested in a call that a grammar is to bound.
var errNested = errors.New("this form of calls nests lists and objects in tags, and only plain values can be bound; give it a type of those, or leave the choice of tools to the model")

// endOf returns what ends the value of a parameter.
func (f *xmlForm) endOf(key string) string {
	if f.nested {
		return f.valueEnd + key + f.keyEnd
	}
	return f.valueEnd
}

// readTree reads a value that may be nested, as a whole.
func (f *xmlForm) readTree(p *Parser) bool {
	if !strings.Contains(p.buf, f.endOf(p.xml.key)) {
		return p.final && p.fail()
	}
	t := tree{word: miniMaxWord, rest: p.buf}
	root := p.parametersOf(p.xml.function)
	value := t.value(root, memberOf(root, root, p.xml.key, 0), p.xml.key, 0)
	switch {
	case t.short && !p.final:
		return false
	case t.short || t.wrong:
		return p.fail()
	}
	p.take(len(p.buf) - len(t.rest))
	p.arguments(p.keyText() + value)
	p.xml.params++
	p.state = f.readParam
	return true
}

// parametersOf returns the schema of a function's parameters, nil if nobody knows it.
func (p *Parser) parametersOf(function string) json.RawMessage {
	for _, f := range p.options.Tools {
		if f.Name() == function {
			return f.Parameters()
		}
	}
	return nil
}

// tree reads values in tags.
type tree struct {
	word, rest string
	short      bool // the text ends within a value
	wrong      bool // tags do not match
}

// maxNested is the most tags within each other.
const maxNested = 64

// member is a value within another, and the tag around it.
type member struct{ key, value string }

// itemTag is around what is in a list.
const itemTag = "item"

// value reads up to the tag that ends the value of a key, and returns its JSON; root is for the
// references of its schema.
func (t *tree) value(root, schema json.RawMessage, key string, depth int) string {
	var members []member
	for {
		text, tag := t.tag()
		end := tag == "/"+key
		switch plain := strings.TrimSpace(text) != ""; {
		case t.short || t.wrong:
			return ""
		case end && members == nil:
			return schemaTypes(root, schema, 0).leaf(text)
		case depth == maxNested, plain, !end && strings.HasPrefix(tag, "/"):
			t.wrong = true
			return ""
		case end:
			return t.join(members, schemaTypes(root, schema, 0))
		}
		members = append(members, member{tag, t.value(root, memberOf(root, schema, tag, 0), tag, depth+1)})
	}
}

// tag reads text and the tag that follows it.
func (t *tree) tag() (text, tag string) {
	text, after, found := strings.Cut(t.rest, t.word)
	tag, rest, closed := strings.Cut(after, ">")
	switch {
	case !found || !closed && strings.HasPrefix("<", after[:min(len(after), 1)]):
		t.short = true
	case !closed || !strings.HasPrefix(tag, "<"):
		t.wrong = true
	default:
		t.rest, tag = rest, tag[1:]
		name := strings.TrimPrefix(tag, "/")
		t.wrong = t.wrong || name == "" || strings.ContainsAny(name, notInTags)
		return text, tag
	}
	return "", ""
}

// join returns the JSON of members: those of a list, if all are tagged so and no object is wanted.
func (t *tree) join(members []member, types types) string {
	list, seen, parts := types&typeObject == 0 || types&typeArray != 0, map[string]bool{}, []string{}
	for _, m := range members {
		list = list && m.key == itemTag
		seen[m.key] = true
	}
	for _, m := range members {
		if !list {
			m.value = `"` + quoted(m.key) + `": ` + m.value
		}
		parts = append(parts, m.value)
	}
	if list {
		return "[" + strings.Join(parts, ", ") + "]"
	}
	t.wrong = t.wrong || len(seen) < len(members) // a key twice
	return "{" + strings.Join(parts, ", ") + "}"
}

// leaf returns the JSON of a value without tags. An empty list or object is an empty text.
func (t types) leaf(text string) string {
	if strings.TrimSpace(text) == "" && t != 0 && t&typeString == 0 {
		switch {
		case t&typeArray != 0:
			return "[]"
		case t&typeObject != 0:
			return "{}"
		}
	}
	return t.convert(text)
}

// memberOf returns the schema of what is in a tag within a value, nil if nobody knows it.
func memberOf(root, schema json.RawMessage, key string, depth int) json.RawMessage {
	var s struct {
		Properties           map[string]json.RawMessage
		Items                json.RawMessage
		AdditionalProperties json.RawMessage
		AnyOf, OneOf, AllOf  []json.RawMessage
		Ref                  string `json:"$ref"`
	}
	if depth > 16 || json.Unmarshal(schema, &s) != nil {
		return nil
	}
	if own := s.Properties[key]; own != nil {
		return own
	}
	if key == itemTag && s.Items != nil {
		return s.Items
	}
	if s.Ref != "" {
		return memberOf(root, refersTo(root, s.Ref), key, depth+1)
	}
	for _, list := range [][]json.RawMessage{s.AnyOf, s.OneOf, s.AllOf} {
		for _, alternative := range list {
			if own := memberOf(root, alternative, key, depth+1); own != nil {
				return own
			}
		}
	}
	return s.AdditionalProperties
}
