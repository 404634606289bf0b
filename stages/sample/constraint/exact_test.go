package constraint

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/testenv"
)

// language returns all texts of a grammar, whose number is finite, in order: those of the bytes
// that the automaton takes at each place.
func language(t *testing.T, g *Grammar, most int) (texts []string) {
	t.Helper()
	var from func(at *place, text []byte)
	from = func(at *place, text []byte) {
		if len(texts) > most || len(text) > 1000 {
			t.Fatalf("the language has more than %d texts, or longer ones, as %.80q", most, text)
		}
		if at.ends {
			texts = append(texts, string(text))
		}
		for b := range 256 {
			if next := at.after(byte(b)); next != nowhere {
				from(next, append(slices.Clip(text), byte(b)))
			}
		}
	}
	from(g.m.current().start, nil)
	return texts
}

// smallValues is a schema of few values, and all of them.
func smallValues() (schema string, values []string) {
	leaves := []string{`null`, `true`, `false`, `-1`, `0`, `1`, `2`, `0.5`, `""`, `"a"`, `"ab"`, `"é"`, `"A1"`}
	inside := []string{`1`, `"a"`, `null`, `0.5`}
	values = slices.Clone(leaves)
	var pairs []string
	for _, x := range inside {
		values = append(values, `[`+x+`]`, `{"a":`+x+`}`, `{"b":`+x+`}`)
		for _, y := range inside {
			pairs = append(pairs, `[`+x+`,`+y+`]`, `{"a":`+x+`,"b":`+y+`}`)
		}
	}
	values = append(append(values, `[]`, `{}`), pairs...)
	list := func(of []string) string { return `{"enum":[` + strings.Join(of, ",") + `]}` }
	return fmt.Sprintf(`{"anyOf":[%s,{"type":"array","items":%s,"maxItems":2},{"type":"object","properties":{"a":%s,"b":%[2]s},"additionalProperties":false}]}`,
		list(leaves), list(inside), list(inside)), values
}

// opposites are schemas of which random ones have too few.
var opposites = []string{
	`"not":{"minItems":1}`, `"not":{"maxItems":1}`, `"not":{"type":"array","minItems":2}`, `"not":{"minProperties":1}`, `"not":{"minProperties":2}`,
	`"not":{"maxProperties":0}`, `"not":{"maxProperties":1}`, `"not":{"minLength":2}`, `"not":{"maxLength":1}`, `"not":{"required":["a"]}`,
	`"not":{"properties":{"a":{"const":1}}}`, `"not":{"prefixItems":[{"const":1},{"type":"string"}]}`, `"not":{"minimum":0.5}`, `"not":{"exclusiveMaximum":1}`,
	`"not":{"multipleOf":0.5}`, `"not":{"pattern":"^a"}`, `"not":{"enum":[1,"a",null,[1],{"a":1}]}`, `"not":{"anyOf":[{"type":"number"},{"minItems":1}]}`,
	`"oneOf":[{"minItems":1},{"maxItems":1}]`, `"oneOf":[{"minimum":0},{"maximum":1},{"type":"string"}]`, `"oneOf":[{"required":["a"]},{"required":["b"]}]`,
	`"if":{"minItems":1},"then":{"maxItems":1},"else":{"type":["array","object"]}`, `"if":{"required":["a"]},"else":{"type":"object","required":["b"]}`,
	`"dependentRequired":{"a":["b"]}`, `"dependentSchemas":{"b":{"properties":{"a":{"type":"null"}}}}`, `"propertyNames":{"const":"a"}`, `"uniqueItems":true`,
}

// Within a small set of values, the texts that the automaton takes are exactly the values that are
// valid, each in one order and with no other freedom than a blank after a colon or a comma.
func TestExactLanguages(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 16))
	small, values := smallValues()
	for _, schema := range opposites {
		if _, ok := checkExact(t, `{`+schema+`,"allOf":[`+small+`]}`, values); !ok {
			t.Errorf("%s is refused", schema)
		}
	}
	compiled, allowed := 0, 0
	for compiled < testenv.Rounds(30, 75, 3000) {
		m := schemaMaker{rng: rng}
		schema := m.root(1 + rng.IntN(2))
		schema = strings.TrimSuffix(schema, "}") + comma(`"allOf":[`+small+`]}`)
		if strings.Count(schema, `"allOf":`) != strings.Count(small, `"allOf":`)+1 || strings.HasPrefix(schema, ",") {
			continue // it has an allOf of its own, which would be lost
		}
		if n, ok := checkExact(t, schema, values); ok {
			compiled++
			allowed += n
		}
	}
	t.Logf("%d schemas of %d values, %d of them valid", compiled, len(values), allowed)
	if allowed < 3*compiled {
		t.Errorf("%d values are valid under %d schemas: these tests would not notice much", allowed, compiled)
	}
}

// checkExact compares what a schema allows with which values are valid, and returns how many are;
// not ok if the schema is refused.
func checkExact(t *testing.T, schema string, values []string) (valid int, ok bool) {
	t.Helper()
	var got []string
	g, err := JSONSchema([]byte(schema))
	switch {
	case errors.Is(err, ErrUnsatisfiable):
	case err != nil:
		whyRefused(t, schema, err)
		return 0, false
	default:
		got = language(t, g, 20_000)
	}
	judge := judgeOf(t, schema)
	want := slices.DeleteFunc(slices.Clone(values), func(text string) bool { return judge(text) != nil })
	checkLanguage(t, schema, got, want)
	return len(want), true
}

// checkLanguage compares texts, in which blanks are free, with values.
func checkLanguage(t *testing.T, schema string, texts, values []string) {
	t.Helper()
	found := map[string]map[string]bool{} // values to their texts without blanks
	for _, text := range texts {
		compact := strings.NewReplacer(": ", ":", ", ", ",").Replace(text)
		v, err := parseJSON([]byte(compact))
		if err != nil {
			t.Errorf("%s: allows %q: %v", schema, text, err)
			return
		}
		slices.Sort(v.names)
		if found[v.json()] == nil {
			found[v.json()] = map[string]bool{}
		}
		found[v.json()][compact] = true
	}
	for _, want := range values {
		if len(found[want]) == 0 {
			t.Errorf("%s: refuses %s", schema, want)
		}
		delete(found, want)
	}
	for value := range found {
		t.Errorf("%s: allows %s", schema, value)
	}
}
