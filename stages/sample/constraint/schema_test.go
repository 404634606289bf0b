package constraint

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dlclark/regexp2"
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
	{`{"type":"object","patternProperties":{"^a":{"type":"integer"},"b$":{"minimum":5}},"properties":{"ab":true,"x":{"type":"null"}},"additionalProperties":false}`,
		[]string{`{"ab":5,"x":null,"a":1}`, `{"acb":7,"b":"s"}`, `{}`}, []string{`{"ab":4}`, `{"ab":"x"}`, `{"acb":4}`, `{"acb":"x"}`, `{"c":1}`, `{"a":"x"}`}, nil},
	{`{"type":"object","properties":{"a":true},"minProperties":2}`, []string{`{"a":1,"b":1}`, `{"a":1,"b":1,"c":1}`}, []string{`{"a":1}`, `{"b":1}`, `{}`}, []string{`{"b":1,"c":1}`}},
	{`{"type":"object","propertyNames":{"maxLength":2,"pattern":"^[a-c]"},"properties":{"zz":true},"required":["a"]}`, []string{`{"a":1}`, `{"a":1,"b":2,"c€":3}`}, []string{`{"a":1,"zz":1}`, `{"a":1,"abc":1}`, `{"a":1,"":1}`}, nil},
	{`{"type":"string","pattern":"^[a-z]+\\.\\d{2}$"}`, []string{`"abc.12"`}, []string{`"abc12"`, `"abc.123"`, `".12"`, `"a.12\n"`}, nil},
	{`{"type":"string","pattern":"b|^c","maxLength":3}`, []string{`"b"`, `"abc"`, `"c"`, `"\"b\\"`, `"c\u0000"`}, []string{`""`, `"ac"`, `"abcd"`}, nil},
	{`{"pattern":"^[ -~]*\\bfoo\\b[ -~]\\S","maxLength":8}`, []string{`"a foo!x"`, `"foo é"`, `3`}, []string{`"foob x"`, `"foo  "`, `"foo"`}, nil},
	{`{"type":"string","pattern":"^\\u00e9\\/[\\w-]\\x41[^\\]]$"}`, []string{`"é/-A€"`, `"é/bA["`}, []string{`"é/ÄA€"`, `"é/-A]"`}, nil},
	{`{"type":"integer","multipleOf":7,"minimum":-20,"maximum":1000}`, []string{`0`, `7`, `-14`, `994`}, []string{`1`, `-21`, `1001`, `13`}, nil},
	{`{"type":"number","multipleOf":0.25}`, []string{`0.25`, `-1.50`, `3`, `17.75`}, []string{`0.3`, `0.125`, `1.1`}, nil},
	{`{"not":{"type":["integer","object"]}}`, []string{`1.5`, `"a"`, `[]`, `null`}, []string{`1`, `{}`, `-7`}, nil},
	{`{"type":"string","not":{"enum":["a","b"]},"maxLength":1}`, []string{`""`, `"c"`}, []string{`"a"`, `"b"`}, nil},
	{`{"type":"object","properties":{"a":true,"b":true},"not":{"required":["a","b"]}}`, []string{`{}`, `{"a":1}`, `{"b":1,"c":1}`}, []string{`{"a":1,"b":1}`}, nil},
	{`{"type":"object","properties":{"kind":{"enum":["x","y"]},"n":{"type":"integer"}},"required":["kind"],"if":{"properties":{"kind":{"const":"x"}}},"then":{"required":["n"]},"else":{"properties":{"n":false}}}`,
		[]string{`{"kind":"x","n":1}`, `{"kind":"y"}`, `{"kind":"y","m":1}`}, []string{`{"kind":"x"}`, `{"kind":"y","n":1}`, `{}`}, nil},
	{`{"type":"object","if":{"required":["a"]},"then":{"$ref":"#/$defs/b"},"else":{"$ref":"#/$defs/b"},"$defs":{"b":{"required":["b"]}}}`, []string{`{"b":1}`}, []string{`{}`, `{"a":1}`}, nil},
	{`{"oneOf":[{"type":"integer","multipleOf":2},{"type":"integer","multipleOf":3}]}`, []string{`2`, `3`, `9`, `-4`}, []string{`6`, `0`, `1`, `12`}, nil},
	{`{"oneOf":[{"properties":{"k":{"const":1}},"required":["k"]},{"properties":{"k":{"const":2},"v":{"$ref":"#"}},"required":["k"],"additionalProperties":false}],"type":"object"}`,
		[]string{`{"k":1,"z":1}`, `{"k":2,"v":{"k":2}}`}, []string{`{}`, `{"k":3}`, `{"k":2,"z":1}`, `{"k":2,"v":{}}`}, nil},
	{`{"oneOf":[{"required":["a"]},{"required":["b"]}],"properties":{"a":{"type":"null"},"b":{"type":"null"}},"type":"object"}`, []string{`{"a":null}`, `{"b":null,"c":1}`}, []string{`{}`, `{"a":null,"b":null}`}, nil},
	{`{"oneOf":[{"properties":{"a":{"type":"null"},"b":{"type":"null"}},"additionalProperties":false},{"properties":{"a":{"type":"null"},"c":{"type":"null"}},"additionalProperties":false}],"type":"object"}`,
		[]string{`{"b":null}`, `{"a":null,"c":null}`, `{"c":null}`}, []string{`{}`, `{"a":null}`, `{"b":null,"c":null}`, `{"b":1}`, `{"x":null}`}, nil},
	{`{"type":"object","properties":{"a":true,"b":{"type":["integer","null"]}},"additionalProperties":false,"not":{"properties":{"a":true},"additionalProperties":{"type":"integer"}}}`,
		[]string{`{"b":null}`, `{"a":1,"b":null}`}, []string{`{}`, `{"b":1}`, `{"a":1}`}, nil},
	{`{"type":"array","items":{"enum":["a",1,null]},"uniqueItems":true,"minItems":1}`, []string{`["a"]`, `[1,"a"]`, `[null, 1,"a"]`}, []string{`[]`, `[1,1]`, `["a",null,"a"]`, `[2]`}, nil},
	{`{"type":"array","items":{"type":"integer","minimum":3,"maximum":12},"uniqueItems":true,"maxItems":3,"minItems":2}`, []string{`[3,5]`, `[10,11,12]`}, []string{`[3]`, `[3,3]`, `[3,4,5,6]`, `[3,13]`}, []string{`[5,3]`}},
	{`{"type":"array","uniqueItems":true,"maxItems":1}`, []string{`[]`, `["x"]`}, []string{`[1,2]`}, nil},
	{`{"type":"object","allOf":[{"$ref":"#/$defs/base"},{"patternProperties":{"^x":{"type":"null"}}}],"properties":{"a":true},"unevaluatedProperties":false,"$defs":{"base":{"properties":{"b":{"type":"integer"}},"required":["b"]}}}`,
		[]string{`{"a":1,"b":2}`, `{"b":2,"xy":null}`}, []string{`{"a":1}`, `{"b":1,"c":1}`, `{"b":1,"x":1}`}, nil},
	{`{"type":"array","prefixItems":[{"type":"null"}],"allOf":[{"prefixItems":[true,{"type":"integer"}]}],"unevaluatedItems":{"type":"string"}}`, []string{`[null]`, `[null,1,"a"]`}, []string{`[1]`, `[null,"a"]`, `[null,1,2]`}, nil},
	{`{"type":"object","properties":{"k":{"type":"string"}},"required":["k"],"allOf":[` + strings.Repeat(`{"if":{"properties":{"k":{"const":"a"}}},"then":{"required":["v"]}},{"if":{"properties":{"k":{"const":"b"}}},"then":{"required":["w"]}},`, 8) + `true]}`,
		[]string{`{"k":"a","v":1}`, `{"k":"b","w":1}`, `{"k":"ab"}`}, []string{`{"k":"a","w":1}`, `{"k":"b","v":1}`, `{}`}, nil},
	{`{"oneOf":[{"maxLength":2},{"minLength":2}],"type":"string"}`, []string{`"a"`, `"abc"`}, []string{`"ab"`}, nil},
	{`{"type":"object","dependentRequired":{"a":["b","c"]},"dependentSchemas":{"x":{"properties":{"b":{"type":"integer"}},"required":["b"]}},"properties":{"a":true,"x":true}}`,
		[]string{`{}`, `{"b":"s"}`, `{"a":1,"b":"s","c":1}`, `{"x":1,"b":2}`}, []string{`{"a":1}`, `{"a":1,"b":1}`, `{"x":1}`, `{"x":1,"b":"s"}`}, nil},
	{`{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":["b"],"c":{"required":["d"]}},"type":"object"}`, []string{`{"b":1}`, `{"a":1,"b":1}`, `{"c":1,"d":1}`}, []string{`{"a":1}`, `{"c":1}`}, nil},
	{`{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"$ref":"#/definitions/s","type":"null"}},"definitions":{"s":{"$id":"#s","type":"string"}},"required":["a"],"type":"object"}`, []string{`{"a":"x"}`}, []string{`{"a":null}`}, nil},
	{`{"prefixItems":[{"const":"a"},{"type":"integer"}],"not":{"prefixItems":[true,{"minimum":5}],"maxItems":4},"type":"array"}`, []string{`["a",3]`, `["a",9,0,0,0]`}, []string{`["a",5]`, `[]`, `["a"]`}, nil},
	{`{"if":{"type":"integer"},"then":{"$ref":"#/$defs/n"},"else":{"$ref":"#/$defs/n"},"$defs":{"n":{"type":["integer","null"]}}}`, []string{`1`, `null`}, []string{`"a"`, `1.5`}, nil},
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
	judge, err := compileJudge(schema)
	if err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	return judge
}

// judgeIfAny is judgeOf for what the other library may not take for a schema: nil then.
func judgeIfAny(schema []byte) func(text string) error {
	judge, _ := compileJudge(string(schema))
	return judge
}

func compileJudge(schema string) (func(text string) error, error) {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
	if err != nil {
		return nil, err
	}
	j := jsonschema.NewCompiler()
	j.AssertFormat()
	j.UseRegexpEngine(func(s string) (jsonschema.Regexp, error) {
		e, err := regexp2.Compile(s, regexp2.ECMAScript)
		return (*ecmaJudge)(e), err
	})
	if err := j.AddResource("file:///schema.json", doc); err != nil {
		return nil, err
	}
	s, err := j.Compile("file:///schema.json")
	if err != nil {
		return nil, err
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
	}, nil
}

// ecmaJudge is an expression in the dialect of JSON schemas.
type ecmaJudge regexp2.Regexp

func (e *ecmaJudge) String() string { return (*regexp2.Regexp)(e).String() }

func (e *ecmaJudge) MatchString(s string) bool {
	ok, err := (*regexp2.Regexp)(e).MatchString(s)
	return ok && err == nil
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
		{`{"properties":{"a/b":{"contains":true}}}`, &unsupported, `"contains" at /properties/a~1b is not supported`},
		{`{"items":[{"pattern":"(?=a)b"}],"$schema":"http://json-schema.org/draft-07/schema#"}`, &unsupported, `"pattern" at /items/0 is not supported: "(?=a)b": the expression looks around`},
		{`{"pattern":"(a)\\1"}`, &unsupported, `refers back`},
		{`{"pattern":"("}`, &unsupported, `missing closing )`},
		{`{"patternProperties":{"\\p{X}":{}}}`, &unsupported, `"patternProperties"`},
		{`{"multipleOf":0.12345}`, &unsupported, `"multipleOf"`},
		{`{"anyOf":[{"not":{"additionalProperties":false}}]}`, &unsupported, `"not" at /anyOf/0`},
		{`{"not":{"items":{"type":"null"}}}`, &unsupported, `"not"`},
		{`{"not":{"format":"date"}}`, &unsupported, `"not"`},
		{`{"oneOf":[{"patternProperties":{"a":{"type":"null"}}},{"patternProperties":{"b":{"type":"null"}}}]}`, &unsupported, `"oneOf"`},
		{`{"dependencies":{}}`, &unsupported, `another draft`},
		{`{"items":{"anyOf":[{"properties":{"a":true}}],"unevaluatedProperties":false}}`, &unsupported, `"unevaluatedProperties" at /items is not supported: it depends on what anyOf finds`},
		{`{"type":"array","uniqueItems":true}`, &unsupported, `"uniqueItems"`},
		{`{"multipleOf":0}`, &schema, `not above 0`},
		{`{"pattern":"[ab].{200}[ab].{200}"}`, &limit, `20000 states`},
		{`{"$ref":"http://else.where/x"}`, &unsupported, `"$ref" at the top of the schema`},
		{`{"$schema":"http://json-schema.org/draft-03/schema#"}`, &unsupported, `"$schema"`},
		{`{"type":"object","minProperties":3}`, &unsupported, `"minProperties"`},
		{`{"allOf":[{"$ref":"#"}]}`, &schema, `leads to itself`},
		{`{"type":"strin"}`, &schema, `"strin" is not a type`},
		{`{"properties":{"a":3}}`, &schema, `/properties/a: a number stands where an object must`},
		{`{"$ref":"#/nowhere"}`, &schema, `leads nowhere`},
		{`{`, &schema, `not valid JSON`},
		{`{"properties": {"a\n": {"items": 3}}}`, &schema, `"/properties/a\n/items": a number stands`},
		{`{"items": {"type": "null"`, &schema, `/items: the schema is not valid JSON: unexpected EOF, at line 1, column 26`},
		{`{} {}`, &schema, `something follows the schema, at line 1, column 5`},
		{"{\"é\": true,\n \"a\": {\"b\": 1,}}", &schema, `looking for beginning of object key string, at line 2, column 15`},
		{strings.Repeat(`{"not":`, 300), &limit, `200 levels`},
		{`{"minimum":1e9999}`, &limit, `1000 digits`},
	} {
		_, err := JSONSchema([]byte(c.schema))
		if err == nil || !errors.As(err, c.as) || !strings.Contains(err.Error(), c.message) {
			t.Errorf("%s: %v; want %q", c.schema, err, c.message)
		}
	}
	for _, none := range []string{`false`, `{"type":"string","minLength":3,"maxLength":2}`, `{"type":"object","required":["a"],"properties":{"a":{"$ref":"#"}}}`,
		`{"allOf":[{"type":"string"},{"type":"null"}]}`, `{"enum":[]}`, `{"type":"integer","minimum":1,"exclusiveMaximum":2,"not":{"const":1}}`,
		`{"type":"string","pattern":"^a","not":{"pattern":"a"}}`, `{"type":"integer","multipleOf":2,"enum":[1,3]}`} {
		if _, err := JSONSchema([]byte(none)); !errors.Is(err, ErrUnsatisfiable) {
			t.Errorf("%s: %v", none, err)
		}
	}
}

// What a format gives, the other library takes; and of what the format is known for, both say the
// same.
func TestJSONSchemaFormats(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	v := jsonVocabulary(rng)
	texts := map[string][]string{
		"date":          {"2024-02-29", "2023-02-29", "2000-02-29", "1900-02-29", "2024-04-31", "2024-12-31", "2024-13-01", "24-01-01"},
		"time":          {"23:59:59Z", "24:00:00Z", "12:00:00.5+01:30", "12:00:00", "12:60:00Z"},
		"date-time":     {"2024-02-29T12:00:00Z", "2024-02-30T12:00:00Z", "2024-02-29 12:00:00Z"},
		"duration":      {"P1D", "P1Y2M3DT4H5M6S", "PT1H", "P", "PT", "P1W", "P1W1D", "P1H"},
		"email":         {"a@b.de", "a.b+c@d-e.f", "a", "a..b@c.d", "a@"},
		"hostname":      {"a", "a-b.c", "-a", "a..b"},
		"ipv4":          {"1.2.3.4", "255.255.255.255", "256.1.1.1", "1.2.3", "01.2.3.4"},
		"ipv6":          {"::", "::1", "1::", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7", "1::2::3", "12345::", "fe80::a:b", "1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:8:9"},
		"uuid":          {"2eb8aa08-aa98-11ea-b4aa-73b441d16380", "2eb8aa08-aa98-11ea-b4aa-73b441d1638", "2eb8aa08aa9811eab4aa73b441d16380"},
		"uri":           {"http://a.b/c?d#e", "urn:isbn:1", "//a", "a", "http://a b"},
		"uri-reference": {"http://a.b/c?d#e", "//a", "a/b", "#c", "", "%"}, "json-pointer": {"", "/a~0", "a", "/~2"},
		"relative-json-pointer": {"0", "1/a", "2#", "/a", "01"},
		"iri":                   {"http://a.b/c"}, "iri-reference": {"a"}, "idn-email": {"a@b.de"}, "idn-hostname": {"a.de"}, "uri-template": {"/a/{b}", "{"},
	}
	for name := range formats {
		schema := `{"type":"string","format":"` + name + `"}`
		g, err := JSONSchema([]byte(schema))
		if err != nil {
			t.Fatal(err)
		}
		judge := judgeOf(t, schema)
		for range 40 {
			if text := walk(t, g, v, rng); judge(text) != nil {
				t.Errorf("%s: drew %s: %v", name, text, judge(text))
			}
		}
		for _, text := range texts[name] {
			if text = quote(text); g.Matches(text) != (judge(text) == nil) {
				t.Errorf("%s: %s: %v, but the other library says %v", name, text, g.Matches(text), judge(text))
			}
		}
		if len(texts[name]) == 0 {
			t.Errorf("no texts for %s", name)
		}
	}
}
