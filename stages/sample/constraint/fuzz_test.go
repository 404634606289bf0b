package constraint

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/internal/testenv"
)

// tooLong is the processor time that no grammar may take to compile: several times what the slowest
// takes on a slow core.
const tooLong = 20 * time.Second

// inTime fails the test if f takes too long.
func inTime(t *testing.T, f func()) {
	t.Helper()
	if took := testenv.ProcessorTime(f); took > tooLong {
		t.Errorf("it took %v", took)
	}
}

// drawnBy draws a few texts, and gives those that end to a judge.
func drawnBy(t *testing.T, g *Grammar, judge func(text string)) {
	t.Helper()
	rng := rand.New(rand.NewPCG(17, 18))
	d := newDrawer(t, jsonVocabulary(rng), rng)
	for range 3 {
		if text, ended := d.upTo(g, 200); ended {
			if !g.Matches(text) {
				t.Errorf("drew %q, which the grammar does not match", text)
			}
			judge(text)
		}
	}
}

// No bytes break the compiler or keep it long, and what is drawn under a schema is valid if another
// library takes the schema for one.
func FuzzJSONSchema(f *testing.F) {
	for _, c := range schemaCases {
		f.Add([]byte(c.schema))
	}
	m := schemaMaker{rng: rand.New(rand.NewPCG(19, 20))}
	for range 30 {
		f.Add([]byte(m.root(3)))
	}
	f.Fuzz(func(t *testing.T, schema []byte) {
		var g *Grammar
		var err error
		if inTime(t, func() { g, err = JSONSchema(schema) }); err != nil {
			if strings.ContainsAny(err.Error(), "\n") {
				t.Errorf("the error has several lines: %q", err)
			}
			return
		}
		judge := judgeIfAny(schema)
		if bytes.Contains(bytes.ToLower(schema), []byte(`\b`)) {
			judge = nil // whose words are not those of ECMA-262, but of all scripts
		}
		drawnBy(t, g, func(text string) {
			if !json.Valid([]byte(text)) {
				t.Errorf("%s: drew %s, which is not JSON", schema, text)
			} else if judge != nil && judge(text) != nil {
				t.Errorf("%s: drew %s: %v", schema, text, judge(text))
			}
		})
	})
}

// byteSource is a source of random numbers that a fuzzer chooses, as long as its bytes last.
type byteSource struct {
	bytes []byte
	rest  rand.Source
}

func (s *byteSource) Uint64() uint64 {
	if len(s.bytes) < 2 {
		return s.rest.Uint64()
	}
	n := binary.LittleEndian.Uint16(s.bytes)
	s.bytes = s.bytes[2:]
	return uint64(n) << 48
}

// Schemas that a fuzzer puts together allow what another library finds valid, and nothing else.
func FuzzSchemaTexts(f *testing.F) {
	rng := rand.New(rand.NewPCG(21, 22))
	for range 30 {
		b := make([]byte, 100)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, choices []byte) {
		m := schemaMaker{rng: rand.New(&byteSource{choices, rand.NewPCG(23, 24)})}
		schema := m.root(3)
		var g *Grammar
		var err error
		if inTime(t, func() { g, err = JSONSchema([]byte(schema)) }); err != nil {
			whyRefused(t, schema, err)
			return
		}
		judge := judgeOf(t, schema)
		drawnBy(t, g, func(text string) {
			if err := judge(text); err != nil {
				t.Errorf("%s: drew %s: %v", schema, text, err)
				return
			}
			compareValue(t, schema, g, judge, m.changed(t, text))
		})
	})
}

func FuzzGBNF(f *testing.F) {
	for _, g := range []string{
		`root ::= "a"{2,4} | [01]+ # two`, "root ::= x{1,3} \"b\"\nx ::= \"a\"? y\ny ::= [0-1]*", `root ::= ("a" | "b"{3,})* [^a-z]{2}`,
		"root ::= \"(\" root? \")\"", "root ::= x \"b\"\nx ::= \"a\"? x | \"c\"", `root ::= "\u00e9\x41\n" .`, "root ::= (", "root ::= \"a\"{100000}{100000}",
		"root ::= x x x x\nx ::= y y y y\ny ::= z* z* z*\nz ::= \"a\"?",
	} {
		f.Add(g)
	}
	f.Fuzz(func(t *testing.T, grammar string) {
		var g *Grammar
		var err error
		if inTime(t, func() { g, err = GBNF(grammar) }); err == nil {
			drawnBy(t, g, func(string) {})
		}
	})
}

func FuzzRegexp(f *testing.F) {
	for _, e := range expressions {
		f.Add(e, "ab0\n")
	}
	f.Add(`(((a{30}){30}){30}`, "a")
	f.Add(`(a|b)*a(a|b){14}`, "abbbbbbbbbbbbbbb")
	f.Fuzz(func(t *testing.T, expression, text string) {
		var g *Grammar
		var err error
		if inTime(t, func() { g, err = Regexp(expression) }); err != nil {
			return
		}
		judge, err := regexp.Compile(`\A(?:` + expression + `)\z`)
		if err != nil {
			return // it is itself, but not in parentheses
		}
		if text = strings.ToValidUTF8(text, "é"); g.Matches(text) != judge.MatchString(text) {
			t.Errorf("%q and %q: %v, want %v", expression, text, g.Matches(text), judge.MatchString(text))
		}
		drawnBy(t, g, func(text string) {
			if !judge.MatchString(text) {
				t.Errorf("%q: drew %q", expression, text)
			}
		})
	})
}
