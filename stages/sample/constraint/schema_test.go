package constraint

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// schemaCases are schemas with texts that they allow and texts that they do not. What the grammar
// leaves out on purpose, though it is valid, is among narrow.
var schemaCases = []struct {
	schema               string
	allows, no, narrower []string
}{
	{`true`, []string{`1`, `-0.5e+3`, `"a\u0001\n"`, `[1, "b",{"c": null}]`, `{}`, `true`}, []string{`01`, `"`, `[1,]`, `nul`, `{"a"}`, `1.`, `{"a":1,}`, ``, `"a` + "\n" + `"`}, []string{` 1`, `[ 1]`, `"\u0041"`}},
	{`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}},"required":["b"],"additionalProperties":false}`,
		[]string{`{"a":1,"b":""}`, `{"b": "x"}`}, []string{`{}`, `{"a":1}`, `{"b":1}`, `{"b":"","c":1}`, `{"a":1.5,"b":""}`}, []string{`{"b":"","a":1}`, `{"a":1.0,"b":""}`}},
	{`{"type":"object","properties":{"é\"":true},"additionalProperties":{"type":"null"},"minProperties":1}`,
		[]string{`{"é\"":1}`, `{"x":null}`, `{"é":null,"":null}`}, []string{`{}`, `{"x":1}`}, nil},
	{`{"properties":{"a":{"type":"integer"}},"required":["z","a"],"maxProperties":3}`,
		[]string{`{"a":1,"z":0}`, `{"a":1,"z":0,"q":0}`, `7`}, []string{`{"a":1}`, `{"a":1,"z":0,"q":0,"r":1}`}, nil},
	{`{"type":"array","items":{"type":"boolean"},"minItems":2,"maxItems":3}`, []string{`[true,false]`, `[true, false, true]`}, []string{`[]`, `[true]`, `[true,true,true,true]`, `[1,2]`}, nil},
	{`{"type":"array","prefixItems":[{"const":1},{"const":2}],"items":{"const":3},"minItems":1}`, []string{`[1]`, `[1,2]`, `[1,2,3,3]`}, []string{`[]`, `[2]`, `[1,2,4]`}, nil},
	{`{"type":"array","prefixItems":[{"const":1},{"const":2}],"items":false}`, []string{`[]`, `[1]`, `[1,2]`}, []string{`[1,2,3]`}, nil},
	{`{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"const":1}],"additionalItems":{"type":"string"}}`, []string{`[]`, `[1]`, `[1,"a"]`, `3`}, []string{`[1,1]`, `[2]`}, nil},
	{`{"items":{"type":"null"},"maxItems":0}`, []string{`[]`}, []string{`[null]`}, nil},
	{`{"enum":[1,"a",null,{"x":[1,{}]},1.50,true]}`, []string{`1`, `"a"`, `null`, `{"x":[1,{}]}`, `1.5`, `true`}, []string{`2`, `"b"`, `{"x":[1]}`, `{"x":[1,{"y":1}]}`, `{}`, `false`}, []string{`1.0`, `1.500`}},
	{`{"const":{"a":1,"b":"c"}}`, []string{`{"a":1,"b":"c"}`}, []string{`{"a":1}`, `{"a":1,"b":"c","d":0}`}, []string{`{"b":"c","a":1}`}},
	{`{"type":"string","minLength":2,"maxLength":3}`, []string{`"ab"`, `"é€😀"`, `"\n\""`}, []string{`"a"`, `"abcd"`, `1`}, nil},
	{`{"anyOf":[{"type":"string","maxLength":1},{"type":"integer","minimum":-3,"exclusiveMaximum":12}]}`, []string{`""`, `"😀"`, `-3`, `0`, `11`, `9`}, []string{`"ab"`, `-4`, `12`, `100`, `1.5`}, []string{`-0`}},
	{`{"minimum":-1.25,"maximum":1e1}`, []string{`-1.25`, `-1.2499`, `0.5`, `10`, `10.0`, `9.99`, `-1`, `"x"`}, []string{`-1.26`, `-1.251`, `10.01`, `11`, `-2`, `100`}, []string{`1e1`}},
	{`{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":0.05}`, []string{`0.01`, `0.049`, `0.0499999`, `0.00001`}, []string{`0`, `0.0`, `-0`, `0.05`, `0.050`, `1`, `-0.01`}, nil},
	{`{"type":"integer","minimum":100,"maximum":1e20}`, []string{`100`, `99999999999999999999`, `100000000000000000000`}, []string{`99`, `100000000000000000001`, `-100`}, nil},
	{`{"allOf":[{"properties":{"a":{"type":"integer"}}},{"properties":{"a":{"minimum":5}},"required":["a"]}],"type":"object"}`, []string{`{"a":5}`, `{"a":77,"b":[]}`}, []string{`{"a":4}`, `{}`, `{"a":"x"}`}, nil},
	{`{"$ref":"#/$defs/node","$defs":{"node":{"type":"object","properties":{"next":{"$ref":"#/$defs/node"},"v":{"$ref":"#v"}},"required":["v"],"additionalProperties":false},"value":{"$anchor":"v","type":"integer"}}}`,
		[]string{`{"v":1}`, `{"next":{"next":{"v":3},"v":2},"v":1}`}, []string{`{}`, `{"next":{},"v":1}`}, nil},
	{`{"$id":"http://x.y/root","properties":{"a":{"$ref":"item.json"},"b":{"$ref":"item.json#/$defs/c~1d"}},"$defs":{"i":{"$id":"item.json","type":"null","$defs":{"c/d":{"type":"boolean"}}}},"type":"object"}`,
		[]string{`{"a":null,"b":true}`}, []string{`{"a":1}`, `{"b":null}`}, nil},
	{`{"type":["integer","null"],"title":"t","x-own":3,"default":0}`, []string{`1`, `null`}, []string{`1.5`, `"a"`}, nil},
}

func TestJSONSchemaCases(t *testing.T) {
	for _, c := range schemaCases {
		g, err := JSONSchema([]byte(c.schema))
		if err != nil {
			t.Errorf("%s: %v", c.schema, err)
			continue
		}
		judge := judgeOf(t, c.schema)
		for _, text := range c.allows {
			if !g.Matches(text) {
				t.Errorf("%s: refuses %s", c.schema, text)
			}
			if err := judge(text); err != nil {
				t.Errorf("%s: the table is wrong: %s: %v", c.schema, text, err)
			}
		}
		for _, text := range c.no {
			if g.Matches(text) {
				t.Errorf("%s: allows %s", c.schema, text)
			}
			if judge(text) == nil {
				t.Errorf("%s: the table is wrong: %s is valid", c.schema, text)
			}
		}
		for _, text := range c.narrower {
			if g.Matches(text) {
				t.Errorf("%s: allows %s", c.schema, text)
			}
			if err := judge(text); err != nil {
				t.Errorf("%s: the table is wrong: %s: %v", c.schema, text, err)
			}
		}
	}
}

// judgeOf returns what another library says of a text under a schema.
func judgeOf(t *testing.T, schema string) func(text string) error {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
	if err != nil {
		t.Fatal(err)
	}
	j := jsonschema.NewCompiler()
	j.AssertFormat()
	if err := j.AddResource("file:///schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := j.Compile("file:///schema.json")
	if err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	return func(text string) error {
		if !json.Valid([]byte(text)) {
			return errors.New("it is not JSON")
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(text)))
		if err != nil {
			return err
		}
		return s.Validate(v)
	}
}

// What is drawn under a schema is valid.
func TestJSONSchemaDraws(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	v := jsonVocabulary(rng)
	for _, c := range schemaCases {
		g, err := JSONSchema([]byte(c.schema))
		if err != nil {
			t.Fatal(err)
		}
		judge := judgeOf(t, c.schema)
		for range 30 {
			text := walk(t, g, v, rng)
			if err := judge(text); err != nil {
				t.Errorf("%s: drew %s: %v", c.schema, text, err)
			}
		}
	}
}

// jsonVocabulary has tokens as JSON texts have.
func jsonVocabulary(rng *rand.Rand) *Vocabulary {
	tokens := make([][]byte, 256)
	for b := range tokens {
		tokens[b] = []byte{byte(b)}
	}
	parts := []string{`"`, `":`, `", "`, `{"`, `}`, `]`, `[`, `true`, `null`, `,"`, `a`, `b`, `v`, `next`, `12`, `0`, `.5`, `-`, `\n`, `é`, `é"`, `"}`, ` `, `: `}
	for range 600 {
		var text []byte
		for range 1 + rng.IntN(3) {
			text = append(text, parts[rng.IntN(len(parts))]...)
		}
		tokens = append(tokens, text[rng.IntN(2)*rng.IntN(len(text)):])
	}
	return NewVocabulary(append(tokens, nil, nil), []int32{int32(len(tokens) + 1)})
}

func TestJSONSchemaErrors(t *testing.T) {
	var unsupported *UnsupportedError
	var schema *SchemaError
	var limit *LimitError
	for _, c := range []struct {
		schema  string
		as      any
		message string
	}{
		{`{"properties":{"a/b":{"uniqueItems":true}}}`, &unsupported, `"uniqueItems" at /properties/a~1b is not supported`},
		{`{"items":[{"pattern":"a"}],"$schema":"http://json-schema.org/draft-07/schema#"}`, &unsupported, `"pattern" at /items/0`},
		{`{"anyOf":[{"oneOf":[true]}]}`, &unsupported, `"oneOf" at /anyOf/0`},
		{`{"$ref":"http://else.where/x"}`, &unsupported, `"$ref" at the top of the schema`},
		{`{"$schema":"http://json-schema.org/draft-03/schema#"}`, &unsupported, `"$schema"`},
		{`{"type":"object","minProperties":3}`, &unsupported, `"minProperties"`},
		{`{"allOf":[{"$ref":"#"}]}`, &schema, `leads to itself`},
		{`{"type":"strin"}`, &schema, `"strin" is not a type`},
		{`{"properties":{"a":3}}`, &schema, `/properties/a: a number stands where an object must`},
		{`{"$ref":"#/nowhere"}`, &schema, `leads nowhere`},
		{`{`, &schema, `not valid JSON`},
		{`{} {}`, &schema, `something follows`},
		{strings.Repeat(`{"not":`, 300), &limit, `200 levels`},
		{`{"minimum":1e9999}`, &limit, `1000 digits`},
	} {
		_, err := JSONSchema([]byte(c.schema))
		if err == nil || !errors.As(err, c.as) || !strings.Contains(err.Error(), c.message) {
			t.Errorf("%s: %v; want %q", c.schema, err, c.message)
		}
	}
	for _, none := range []string{`false`, `{"type":"string","minLength":3,"maxLength":2}`, `{"type":"object","required":["a"],"properties":{"a":{"$ref":"#"}}}`,
		`{"allOf":[{"type":"string"},{"type":"null"}]}`, `{"enum":[]}`} {
		if _, err := JSONSchema([]byte(none)); !errors.Is(err, ErrUnsatisfiable) {
			t.Errorf("%s: %v", none, err)
		}
	}
}
