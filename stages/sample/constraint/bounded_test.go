package constraint

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/internal/testenv"
)

// times returns n copies of a text that has its number where it says %d, with commas between them.
func times(n int, format string) string {
	list := make([]string, n)
	for i := range list {
		list[i] = strings.ReplaceAll(format, "%d", fmt.Sprint(i))
	}
	return strings.Join(list, ",")
}

// Schemas that ask for very much are compiled, or refused, soon: and so is their first mask.
func TestBounded(t *testing.T) {
	v := demoVocabulary(t)
	many := testenv.Rounds(12, 12, 40)
	nested := func(n int, open, close string) string {
		return strings.Repeat(open, n) + "true" + strings.Repeat(close, n)
	}
	for name, schema := range map[string]string{
		"alternatives to be combined":        `{"allOf":[` + times(40, `{"anyOf":[{"required":["a%d"]},{"required":["b%d"]}]}`) + `]}`,
		"strings of alternatives":            `{"allOf":[` + times(many, `{"anyOf":[{"pattern":"a%d"},{"pattern":"b%d"}]}`) + `]}`,
		"one of many":                        `{"oneOf":[` + times(60, `{"properties":{"a%d":{"type":"string"}},"required":["a%d"]}`) + `]}`,
		"names of many kinds":                `{"type":"object","patternProperties":{` + times(many, `"x%d":{"minimum":%d}`) + `}}`,
		"names of many lengths":              `{"type":"object","patternProperties":{` + times(25, `"^.{%d}a":{"minimum":%d}`) + `}}`,
		"a pattern of many states":           `{"type":"string","pattern":"^(a|b)*a(a|b){24}$"}`,
		"patterns of many states together":   `{"allOf":[` + times(12, `{"pattern":"^(..{%d})*$"}`) + `],"type":"string"}`,
		"repetitions of repetitions":         `{"type":"string","pattern":"^((a{1,200}){1,200}){1,200}$"}`,
		"a long string":                      `{"type":"string","minLength":1000000000}`,
		"a long string of a pattern":         `{"type":"string","minLength":100000,"pattern":"^[ab]*$"}`,
		"a long list":                        `{"type":"array","minItems":1000000000}`,
		"a long list of lists":               nested(60, `{"type":"array","minItems":50,"items":`, `}`),
		"many members":                       `{"type":"object","properties":{` + times(3000, `"a%d":{"type":"integer"}`) + `}}`,
		"many members, counted":              `{"type":"object","properties":{` + times(800, `"a%d":{"type":"integer"}`) + `},"additionalProperties":false,"minProperties":400}`,
		"many values":                        `{"enum":[` + times(30000, `"value %d"`) + `]}`,
		"many numbers":                       `{"enum":[` + times(3000, `%d.5`) + `]}`,
		"many objects":                       `{"enum":[` + times(1500, `{"a":%d,"b":[%d]}`) + `]}`,
		"a large number":                     `{"multipleOf":9973,"minimum":-1e900,"maximum":1e900}`,
		"opposites of opposites":             nested(150, `{"not":{"required":["a"],"properties":{"a":`, `}}}`),
		"conditions in conditions":           nested(60, `{"if":{"type":"object"},"then":`, `}`),
		"references that double":             `{"$ref":"#/$defs/d0","$defs":{` + times(40, `"d%d":{"properties":{"a":{"$ref":"#/$defs/e%d"},"b":{"$ref":"#/$defs/e%d"}}},"e%d":{"allOf":[{"$ref":"#/$defs/f%d"},{"$ref":"#/$defs/f%d"}]},"f%d":{"type":"object"}`) + `}}`,
		"dependents":                         `{"dependentRequired":{` + times(40, `"a%d":["b%d"]`) + `}}`,
		"different items":                    `{"uniqueItems":true,"type":"array","items":{"enum":[` + times(900, `%d`) + `]}}`,
		"lists of schemas with one in other": `{"anyOf":[` + times(300, `{"type":"array","prefixItems":[{"const":%d}],"items":{"enum":[1,2,%d]}}`) + `]}`,
	} {
		var g *Grammar
		var err error
		compiled := testenv.ProcessorTime(func() { g, err = JSONSchema([]byte(schema)) })
		var first time.Duration
		switch {
		case err == nil:
			first = testenv.ProcessorTime(func() { g.Start(v).Mask() })
		case !errors.As(err, new(*LimitError)) && !errors.As(err, new(*UnsupportedError)):
			t.Errorf("%s: %v", name, err)
		}
		if compiled+first > tooLong {
			t.Errorf("%s: %v of a processor, %v for the first mask", name, compiled, first)
		}
		t.Logf("%s: %v, %v for the first mask: %.150v", name, compiled, first, err)
	}
}
