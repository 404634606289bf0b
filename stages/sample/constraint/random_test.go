package constraint

import (
	"errors"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/testenv"
)

// What is drawn under random schemas is valid JSON that another library finds valid, and of values
// like it the grammar allows those that are valid and no others, if only in one order.
func TestRandomSchemas(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	draws := []*drawer{newDrawer(t, jsonVocabulary(rng), rng), newDrawer(t, demoVocabulary(t), rng)}
	refused, compiled, texts, values := map[string]int{}, 0, 0, 0
	for compiled < testenv.Rounds(20, 40, 1000) {
		m := schemaMaker{rng: rng}
		schema := m.root(1 + rng.IntN(4))
		g, err := JSONSchema([]byte(schema))
		if err != nil {
			refused[whyRefused(t, schema, err)]++
			continue
		}
		compiled++
		judge := judgeOf(t, schema)
		for range 6 {
			text := draws[rng.IntN(4)/3].text(g)
			texts++
			if err := judge(text); err != nil {
				t.Errorf("%s: drew %s: %v", schema, text, err)
				continue
			}
			for range 6 {
				values += compareValue(t, schema, g, judge, m.changed(t, text))
			}
		}
	}
	t.Logf("%d schemas, %d texts, %d values like them; refused: %v", compiled, texts, values, refused)
	for _, why := range slices.Sorted(maps.Keys(refused)) {
		if refused[why] > 2*compiled {
			t.Errorf("%d schemas are refused for %s, and %d compiled", refused[why], why, compiled)
		}
	}
}

// compareValue checks that a grammar allows a value in one of its spellings if and only if it is
// valid, and returns 1, or 0 if there are too many to tell.
func compareValue(t *testing.T, schema string, g *Grammar, judge func(string) error, text string) int {
	t.Helper()
	list, all := spellings(t, text, 500)
	invalid := judge(text)
	spelling, ok := matchesSome(g, list)
	switch {
	case invalid != nil && ok:
		t.Errorf("%s: allows %s: %v", schema, spelling, invalid)
	case invalid == nil && !ok && all && !isNarrowed(schema):
		t.Errorf("%s: refuses %s, which is valid", schema, list[0])
	case !ok && !all:
		return 0
	}
	return 1
}

// isNarrowed reports whether a grammar may refuse valid values of a schema: unusual texts of a
// format, different items in another order than the schema's, and objects with several members that
// no property names where their number counts, of which all but one must have a name of the
// schema's.
func isNarrowed(schema string) bool {
	return strings.Contains(schema, `"format"`) || strings.Contains(schema, `"uniqueItems"`) || regexp.MustCompile(`"minProperties":[2-9]`).MatchString(schema) ||
		strings.Contains(schema, `"maxProperties"`) && regexp.MustCompile(`"(not|oneOf|if)"`).MatchString(schema)
}

// whyRefused returns the keyword or the kind of an error, and reports an error that a schema of
// schemaMaker must not have.
func whyRefused(t *testing.T, schema string, err error) string {
	t.Helper()
	if u, ok := errors.AsType[*UnsupportedError](err); ok {
		root, err := parseJSON([]byte(schema))
		if err != nil {
			t.Fatal(err)
		}
		if at := root.at(u.Pointer); at == nil || at.member[u.Keyword] == nil {
			t.Errorf("%s: refused for %q at %q, where it is not", schema, u.Keyword, u.Pointer)
		}
		return u.Keyword
	}
	switch {
	case errors.Is(err, ErrUnsatisfiable):
		checkUnsatisfiable(t, schema)
		return "(unsatisfiable)"
	case errors.As(err, new(*LimitError)):
		return "(limit)"
	}
	t.Errorf("%s: %v", schema, err)
	return "(other)"
}

// checkUnsatisfiable tries values on a schema that is said to have none.
func checkUnsatisfiable(t *testing.T, schema string) {
	t.Helper()
	judge := judgeOf(t, schema)
	m := schemaMaker{rng: rand.New(rand.NewPCG(13, 14))}
	for range 100 {
		if text := m.value(3); judge(text) == nil {
			t.Errorf("%s: no value is said to satisfy it, and %s does", schema, text)
		}
	}
}

// changed returns a JSON text in which something small is otherwise.
func (m *schemaMaker) changed(t *testing.T, text string) string {
	t.Helper()
	v, err := parseJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var all []*value
	var visit func(v *value)
	visit = func(v *value) {
		all = append(all, v)
		for _, item := range v.items {
			visit(item)
		}
		for _, name := range v.names {
			visit(v.member[name])
		}
	}
	visit(v)
	m.change(all[m.rng.IntN(len(all))])
	return v.json()
}

// change changes a value: what is in it, or all of it.
func (m *schemaMaker) change(v *value) {
	any := func() *value { n, _ := parseJSON([]byte(m.value(1))); return n }
	switch n := m.rng.IntN(4); {
	case n == 0:
		*v = *any()
	case v.kind == kindObject && n == 1 && len(v.names) > 0:
		i := m.rng.IntN(len(v.names))
		delete(v.member, v.names[i])
		v.names = slices.Delete(v.names, i, i+1)
	case v.kind == kindObject:
		name := m.one(makerNames)
		if _, ok := v.member[name]; !ok {
			v.names = append(v.names, name)
		}
		v.member[name] = any()
	case v.kind == kindArray && n == 1 && len(v.items) > 0:
		v.items = v.items[1:]
	case v.kind == kindArray:
		v.items = append(v.items, any())
	case v.kind == kindString:
		v.text = []string{v.text + "a", "b" + v.text, m.one(makerTexts)}[n-1]
	case v.kind == kindNumber:
		v.text = m.number()
	default:
		*v = *any()
	}
}

// json writes a value as it stands.
func (v *value) json() string {
	switch v.kind {
	case kindString:
		return quoted(v.text)
	case kindNumber:
		return v.text
	case kindArray:
		text := "["
		for i, item := range v.items {
			text += map[bool]string{true: ","}[i > 0] + item.json()
		}
		return text + "]"
	case kindObject:
		text := "{"
		for i, name := range v.names {
			text += map[bool]string{true: ","}[i > 0] + quoted(name) + ":" + v.member[name].json()
		}
		return text + "}"
	}
	return string(v.kind)
}
