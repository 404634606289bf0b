package constraint

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
)

// schemaMaker writes random schemas, of every keyword that binds values but those that reach other
// documents. Some are refused, and some have no value.
type schemaMaker struct {
	rng  *rand.Rand
	defs int // definitions that there are
	// below is how many definitions a reference at the same place of a text may lead to: all where
	// an item or a member lies between, else those before the present one, so that none leads to
	// itself.
	below int
}

var (
	makerNames    = []string{"a", "b", "c", "é", "a b", `q"`}
	makerTexts    = []string{``, `a`, `b`, `ab`, `é`, `A1`, `1`, "x\n", `2024-02-29`, `"\`}
	makerNumbers  = []string{`0`, `1`, `2`, `3`, `-1`, `-2`, `0.5`, `1.5`, `10`, `12.25`, `-0.5`, `100`}
	makerPatterns = []string{`^a`, `b$`, `^[a-c]{1,3}$`, `a|é`, `^(ab)*$`, `[0-9]`, `^\\d{2}-\\w+$`, `.`, `^$`, `x\\n?`, `^[^a]*$`, `^.{2}$`, `^\\S+@\\S+$`}
	makerFormats  = []string{"date", "date-time", "time", "uuid", "ipv4", "ipv6", "email", "hostname", "uri", "duration", "x-unknown"}
	makerTypes    = []string{"null", "boolean", "string", "integer", "number", "array", "object"}
)

// root writes a schema with definitions that may lead to themselves.
func (m *schemaMaker) root(depth int) string {
	m.defs = m.rng.IntN(4)
	defs := make([]string, m.defs)
	for i := range defs {
		m.below = i
		defs[i] = fmt.Sprintf(`"d%d":%s`, i, m.schema(depth-1))
	}
	m.below = m.defs
	s := m.object(depth)
	if len(defs) == 0 {
		return s
	}
	return fmt.Sprintf(`{"$defs":{%s}%s`, strings.Join(defs, ","), comma(s[1:]))
}

// comma puts a comma before the members of an object, if there are any.
func comma(members string) string {
	if members == "}" {
		return members
	}
	return "," + members
}

func (m *schemaMaker) chance(of int) bool         { return m.rng.IntN(of) == 0 }
func (m *schemaMaker) one(list []string) string   { return list[m.rng.IntN(len(list))] }
func (m *schemaMaker) count(most int) string      { return fmt.Sprint(m.rng.IntN(most + 1)) }
func quoted(s string) string                      { b, _ := json.Marshal(s); return string(b) }
func (m *schemaMaker) number() string             { return m.one(makerNumbers) }
func (m *schemaMaker) list(parts []string) string { return "[" + strings.Join(parts, ",") + "]" }

// some returns some of a list, each at most once, in its order.
func (m *schemaMaker) some(list []string) (out []string) {
	for _, x := range list {
		if m.chance(3) {
			out = append(out, x)
		}
	}
	return out
}

func (m *schemaMaker) schema(depth int) string {
	switch {
	case m.chance(12):
		return "true"
	case m.chance(40):
		return "false"
	}
	return m.object(depth)
}

// object writes a schema that is an object.
func (m *schemaMaker) object(depth int) string {
	var s []string
	switch r := m.rng.IntN(20); {
	case depth <= 0 && r < 8, r == 0:
		s = append(s, m.values())
	case r == 1 && m.below > 0:
		s = append(s, fmt.Sprintf(`"$ref":"#/$defs/d%d"`, m.rng.IntN(m.below)))
	case depth > 0 && r < 6:
		s = append(s, m.combined(depth))
		if m.chance(2) {
			s = append(s, m.typed(m.one(makerTypes), depth)...)
		}
	default:
		s = m.typed(m.one(makerTypes), depth)
	}
	if m.chance(10) {
		s = append(s, m.typed(m.one(makerTypes[2:]), 0)[1:]...) // of another type
	}
	return m.together(s)
}

// together returns an object of members; of those with one name the first stays.
func (m *schemaMaker) together(members []string) string {
	seen, out := map[string]bool{}, []string{}
	for _, x := range members {
		if name, _, _ := strings.Cut(x, ":"); !seen[name] {
			seen[name] = true
			out = append(out, x)
		}
	}
	return "{" + strings.Join(out, ",") + "}"
}

// values is a list of values, or one.
func (m *schemaMaker) values() string {
	if m.chance(3) {
		return `"const":` + m.value(2)
	}
	var list []string
	for range 1 + m.rng.IntN(5) {
		list = append(list, m.value(2))
	}
	return `"enum":` + m.list(list)
}

// value is any JSON value.
func (m *schemaMaker) value(depth int) string {
	switch r := m.rng.IntN(9); {
	case r == 0:
		return m.one([]string{"null", "true", "false"})
	case r < 4:
		return quoted(m.one(makerTexts))
	case r < 7 || depth == 0:
		return m.number()
	case r == 7:
		var list []string
		for range m.rng.IntN(3) {
			list = append(list, m.value(depth-1))
		}
		return m.list(list)
	}
	var list []string
	for _, name := range m.some(makerNames) {
		list = append(list, quoted(name)+":"+m.value(depth-1))
	}
	return "{" + strings.Join(list, ",") + "}"
}

// combined is schemas that are combined.
func (m *schemaMaker) combined(depth int) string {
	switch m.rng.IntN(8) {
	case 0, 1:
		return `"anyOf":` + m.subs(depth)
	case 2:
		return `"oneOf":` + m.subs(depth)
	case 3, 4: // of one type, so that something is left
		kind := m.one(makerTypes)
		var list []string
		for range 1 + m.rng.IntN(3) {
			list = append(list, m.together(m.typed(kind, depth-1)))
		}
		return `"allOf":` + m.list(list)
	case 5:
		if m.chance(2) { // of one or a few keywords
			return `"not":` + m.together(m.typed(m.one(makerTypes), 0)[m.rng.IntN(2):])
		}
		return `"not":` + m.schema(depth-1)
	case 6:
		s := []string{`"if":` + m.schema(depth-1)}
		if !m.chance(4) {
			s = append(s, `"then":`+m.schema(depth-1))
		}
		if !m.chance(4) {
			s = append(s, `"else":`+m.schema(depth-1))
		}
		return strings.Join(s, ",")
	}
	kinds := m.some(makerTypes)
	for i := range kinds {
		kinds[i] = quoted(kinds[i])
	}
	if len(kinds) == 0 {
		kinds = []string{`"string"`, `"null"`}
	}
	return `"type":` + m.list(kinds)
}

func (m *schemaMaker) subs(depth int) string {
	var list []string
	for range 1 + m.rng.IntN(3) {
		list = append(list, m.schema(depth-1))
	}
	return m.list(list)
}

// deeper writes a schema of what is inside an array or an object.
func (m *schemaMaker) deeper(depth int) string {
	defer func(before int) { m.below = before }(m.below)
	m.below = m.defs
	if m.defs > 0 && m.chance(6) {
		return fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, m.rng.IntN(m.defs))
	}
	return m.schema(depth - 1)
}

// typed writes the keywords of a type.
func (m *schemaMaker) typed(kind string, depth int) []string {
	s := []string{`"type":` + quoted(kind)}
	add := func(of int, format string, args ...any) {
		if m.chance(of) {
			s = append(s, fmt.Sprintf(format, args...))
		}
	}
	switch kind {
	case "string":
		add(4, `"minLength":%s`, m.count(3))
		add(4, `"maxLength":%s`, m.count(6))
		add(4, `"pattern":"%s"`, m.one(makerPatterns))
		add(8, `"format":"%s"`, m.one(makerFormats))
	case "integer", "number":
		add(3, `"%s":%s`, m.one([]string{"minimum", "exclusiveMinimum"}), m.number())
		add(3, `"%s":%s`, m.one([]string{"maximum", "exclusiveMaximum"}), m.number())
		add(6, `"multipleOf":%s`, m.one([]string{"1", "2", "3", "0.5", "0.25", "7", "1.5"}))
	case "array":
		s = append(s, m.array(depth)...)
	case "object":
		s = append(s, m.members(depth)...)
	}
	m.rng.Shuffle(len(s)-1, func(i, j int) { s[i+1], s[j+1] = s[j+1], s[i+1] })
	return s
}

func (m *schemaMaker) array(depth int) (s []string) {
	if depth > 0 && m.chance(3) {
		var list []string
		for range 1 + m.rng.IntN(3) {
			list = append(list, m.deeper(depth))
		}
		s = append(s, `"prefixItems":`+m.list(list))
	}
	if depth > 0 && !m.chance(3) {
		s = append(s, `"items":`+m.deeper(depth))
	}
	if m.chance(3) {
		s = append(s, `"minItems":`+m.count(3))
	}
	if m.chance(3) {
		s = append(s, `"maxItems":`+m.count(5))
	}
	if m.chance(10) {
		s = append(s, m.one([]string{`"uniqueItems":true`, `"contains":{"type":"null"}`, `"unevaluatedItems":false`, `"unevaluatedItems":{"type":"null"}`}))
	}
	return s
}

func (m *schemaMaker) members(depth int) (s []string) {
	named := func(keyword string, names []string, schema func(depth int) string) {
		var list []string
		for _, name := range names {
			list = append(list, quoted(name)+":"+schema(depth))
		}
		s = append(s, quoted(keyword)+":{"+strings.Join(list, ",")+"}")
	}
	names := m.some(makerNames)
	m.rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	if depth > 0 && len(names) > 0 {
		named("properties", names, m.deeper)
	}
	if m.chance(2) {
		s = append(s, `"additionalProperties":`+m.one([]string{"false", m.deeper(depth)}))
	}
	strings := func(names []string) string {
		for i := range names {
			names[i] = quoted(names[i])
		}
		return m.list(names)
	}
	if m.chance(2) {
		s = append(s, `"required":`+strings(m.some(makerNames)))
	}
	if m.chance(6) {
		s = append(s, `"minProperties":`+m.count(2))
	}
	if m.chance(6) {
		s = append(s, `"maxProperties":`+m.count(4))
	}
	if m.chance(8) {
		named("patternProperties", m.some([]string{`^a`, `b$`, `^[b-d]+$`, `é`}), m.deeper)
	}
	if m.chance(10) {
		s = append(s, `"propertyNames":`+m.together(m.typed("string", 0)))
	}
	if m.chance(10) {
		s = append(s, fmt.Sprintf(`"dependentRequired":{%s:%s}`, quoted(m.one(makerNames)), strings(m.some(makerNames))))
	}
	if m.chance(12) {
		s = append(s, m.one([]string{`"unevaluatedProperties":false`, `"unevaluatedProperties":{"type":"null"}`}))
	}
	if m.chance(12) {
		named("dependentSchemas", m.some(makerNames), func(depth int) string { return m.schema(depth - 1) })
	}
	return s
}
