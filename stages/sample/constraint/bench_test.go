package constraint

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
	"time"
)

// vocabularyEnv names the tokenizer.json of a real vocabulary for the benchmarks, byte-level BPE;
// without it they are left out.
const vocabularyEnv = "MOEFLUX_BENCH_TOKENIZER"

// realTokens reads the vocabulary.
func realTokens(b *testing.B) [][]byte {
	b.Helper()
	name := os.Getenv(vocabularyEnv)
	if name == "" {
		b.Skip("no " + vocabularyEnv)
	}
	return byteLevelTokens(b, name)
}

// byteLevelTokens reads the vocabulary of a tokenizer.json, and adds an end. The entries are
// spelled in the byte alphabet: printable characters of Latin-1 stand for themselves, and those
// from U+0100 on for the other bytes, in order.
func byteLevelTokens(b testing.TB, name string) [][]byte {
	b.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		b.Fatal(err)
	}
	var file struct {
		Model struct{ Vocab map[string]int }
	}
	if err := json.Unmarshal(data, &file); err != nil {
		b.Fatal(err)
	}
	spelled := map[rune]byte{}
	for c, other := 0, rune(0x100); c < 256; c++ {
		if c >= '!' && c <= '~' || c >= 0xa1 && c <= 0xac || c >= 0xae {
			spelled[rune(c)] = byte(c)
		} else {
			spelled[other] = byte(c)
			other++
		}
	}
	tokens := make([][]byte, len(file.Model.Vocab)+1) // the last ends a text
	for entry, id := range file.Model.Vocab {
		for _, r := range entry {
			c, ok := spelled[r]
			if !ok {
				b.Fatalf("token %d, %q, is not in the byte alphabet", id, entry)
			}
			tokens[id] = append(tokens[id], c)
		}
	}
	return tokens
}

// realVocabulary returns the vocabulary, and how a greedy tokenizer might write a text in it.
func realVocabulary(b *testing.B) (v *Vocabulary, encode func(text string) []int32) {
	tokens := realTokens(b)
	ids := map[string]int32{}
	for id, t := range tokens {
		ids[string(t)] = int32(id)
	}
	v = NewVocabulary(tokens, []int32{int32(len(tokens) - 1)})
	return v, func(text string) (out []int32) {
		for len(text) > 0 {
			n := min(len(text), 16)
			for ids[text[:n]] == 0 && n > 1 { // the token 0 is a character
				n--
			}
			out, text = append(out, ids[text[:n]]), text[n:]
		}
		return out
	}
}

func BenchmarkVocabulary(b *testing.B) {
	tokens := realTokens(b)
	for b.Loop() {
		NewVocabulary(tokens, []int32{int32(len(tokens) - 1)})
	}
	b.ReportMetric(float64(len(tokens)), "tokens")
}

// benchSchema has most of what schemas have, also members that no property names.
const benchSchema = `{"type":"object","properties":{
	"city":{"type":"string","minLength":1,"maxLength":80},"when":{"type":"string","format":"date-time"},
	"unit":{"enum":["celsius","fahrenheit"]},"days":{"type":"integer","minimum":1,"maximum":14},
	"at":{"type":"object","properties":{"lat":{"type":"number","minimum":-90,"maximum":90},"lon":{"type":"number","minimum":-180,"maximum":180}},"required":["lat","lon"]},
	"code":{"type":"string","pattern":"^[A-Z]{2}-[0-9]{3,6}$"},"tags":{"type":"array","items":{"type":"string"},"maxItems":10},
	"note":{"anyOf":[{"type":"string"},{"type":"null"}]},"parts":{"type":"array","items":{"$ref":"#/$defs/part"}}},
	"required":["city","when","parts"],"additionalProperties":false,
	"$defs":{"part":{"type":"object","properties":{"name":{"type":"string"},"parts":{"type":"array","items":{"$ref":"#/$defs/part"}}},"required":["name"]}}}`

const benchDocument = `{"city": "Bad Tölz, in the south", "when": "2026-11-23T13:50:00Z", "unit": "celsius", "days": 12, ` +
	`"at": {"lat": 47.7602, "lon": 11.5576}, "code": "DE-83646", "tags": ["first of all", "second", "more"], ` +
	`"note": "the quick brown fox jumps over the lazy dog, and läuft weiter", "parts": [{"name": "a part", "parts": [{"name": "inner", "more": [1, true]}]}, {"name": "another"}]}`

// realCase is a grammar with a text of it.
type realCase struct {
	name    string
	grammar func() (*Grammar, error)
	text    string
}

// toolSchemas are schemas of tools as agents send them, with arguments.
func toolSchemas() (cases []realCase) {
	for _, c := range [][3]string{
		{"edit", `{"type":"object","properties":{"path":{"type":"string","description":"The absolute path of the file"},"old":{"type":"string","description":"The text to replace"},
			"new":{"type":"string","description":"What comes in its place"},"all":{"type":"boolean","default":false,"description":"Replace all of them"}},"required":["path","old","new"],"additionalProperties":false}`,
			`{"path": "/srv/app/internal/store/cache.go","old": "\tif err != nil {\n\t\treturn nil, err\n\t}\n","new": "\tif err != nil {\n\t\treturn nil, fmt.Errorf(\"the cache cannot be read: %w\", err)\n\t}\n","all": false}`},
		{"search", `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"pattern":{"type":"string"},"folder":{"type":"string"},"glob":{"type":"string"},
			"mode":{"type":"string","enum":["content","files","count"]},"before":{"type":"integer","minimum":0},"after":{"type":"integer","minimum":0},"ignore_case":{"type":"boolean"},
			"limit":{"type":"integer","exclusiveMinimum":0,"maximum":9007199254740991}},"required":["pattern"],"additionalProperties":false}`,
			`{"pattern": "func New[A-Z]\\w*\\(","glob": "**/*.go","mode": "content","before": 2,"after": 12,"ignore_case": false,"limit": 250}`},
		{"plan", `{"type":"object","properties":{"steps":{"type":"array","minItems":1,"maxItems":40,"items":{"type":"object","properties":{"text":{"type":"string","minLength":1,"maxLength":400},
			"state":{"enum":["open","active","done"]},"id":{"type":"string","pattern":"^[a-z]+-[0-9]{1,4}$"}},"required":["text","state","id"],"additionalProperties":false}}},"required":["steps"],"additionalProperties":false}`,
			`{"steps": [{"text": "Read the configuration and say what is missing","state": "done","id": "cfg-1"}, {"text": "Write the migration","state": "active","id": "db-12"}, {"text": "Run all tests","state": "open","id": "test-3"}]}`},
		{"order", `{"type":"object","properties":{"customer":{"$ref":"#/$defs/person"},"placed":{"type":"string","format":"date-time"},"lines":{"type":"array","items":{"anyOf":[{"$ref":"#/$defs/goods"},{"$ref":"#/$defs/service"}]}},
			"total":{"type":"number","minimum":0},"note":{"type":["string","null"]}},"required":["customer","lines","total"],"additionalProperties":false,
			"$defs":{"person":{"type":"object","properties":{"name":{"type":"string"},"email":{"type":"string","format":"email"}},"required":["name"],"additionalProperties":false},
			"goods":{"type":"object","properties":{"kind":{"const":"goods"},"sku":{"type":"string","pattern":"^[A-Z]{3}-\\d{4}$"},"count":{"type":"integer","minimum":1,"maximum":999}},"required":["kind","sku","count"],"additionalProperties":false},
			"service":{"type":"object","properties":{"kind":{"const":"service"},"hours":{"type":"number","minimum":0.25,"multipleOf":0.25}},"required":["kind","hours"],"additionalProperties":false}}}`,
			`{"customer": {"name": "Ada Lovelace","email": "ada@example.org"},"placed": "2026-11-23T14:30:00Z","lines": [{"kind": "goods","sku": "ABC-1234","count": 12}, {"kind": "service","hours": 2.75}],"total": 1234.5,"note": null}`},
		{"any", `{"type":"object"}`, `{"name": "free", "list": [1, 2.5e3, {"deep": [true, null, "läuft weiter"]}], "empty": {}}`},
	} {
		cases = append(cases, realCase{c[0], func() (*Grammar, error) { return JSONSchema([]byte(c[1])) }, c[2]})
	}
	return cases
}

// A text of a grammar, and the masks at each of its places.
func BenchmarkReal(b *testing.B) {
	v, encode := realVocabulary(b)
	cases := append(toolSchemas(), []realCase{
		{"json", func() (*Grammar, error) {
			return Regexp(`\{"name": "([^"\\\x00-\x1f]|\\.)*", "size": -?(0|[1-9][0-9]*)(\.[0-9]+)?, "tags": \[("[^"\\\x00-\x1f]*"(, "[^"\\\x00-\x1f]*")*)?\], "done": (true|false)\}`)
		}, `{"name": "the quick brown fox jumps over the lazy dog, and läuft weiter", "size": -12345.678, "tags": ["first of all", "second", "more"], "done": true}`},
		{"choices", func() (*Grammar, error) {
			return Choices([]string{"strongly agree", "agree", "neither agree nor disagree", "disagree", "strongly disagree", "no answer"})
		}, "neither agree nor disagree"},
		{"schema", func() (*Grammar, error) { return JSONSchema([]byte(benchSchema)) }, benchDocument},
	}...)
	for _, c := range cases {
		ids := encode(c.text)
		b.Run(c.name+"/compile", func(b *testing.B) {
			for b.Loop() {
				if _, err := c.grammar(); err != nil {
					b.Fatal(err)
				}
			}
		})
		// Nothing is known but the vocabulary: also not which of its tokens are plain text.
		b.Run(c.name+"/first", func(b *testing.B) { b.ReportAllocs(); coldMasks(b, v, c.grammar, ids, true) })
		b.Run(c.name+"/places", func(b *testing.B) { coldMasks(b, v, c.grammar, ids, false) })
		g, err := c.grammar()
		if err != nil {
			b.Fatal(err)
		}
		b.Run(c.name+"/mask", func(b *testing.B) { walkText(b, g, v, ids, func(s *State, _ int32) { s.Mask() }) })
		b.Run(c.name+"/accept", func(b *testing.B) {
			walkText(b, g, v, ids, func(s *State, id int32) {
				if !s.Accepts(id) {
					b.Fatalf("token %d is refused", id)
				}
			})
		})
	}
}

// coldMasks makes a mask at each place of a text under a new grammar, and reports the mean and the
// longest.
func coldMasks(b *testing.B, v *Vocabulary, grammar func() (*Grammar, error), ids []int32, forget bool) {
	var all, first []float64
	for b.Loop() {
		if forget {
			v.texts = nil
		}
		var s *State
		first = append(first, float64(timed(func() {
			g, err := grammar()
			if err != nil {
				b.Fatal(err)
			}
			s = g.Start(v)
			s.Mask()
		})))
		for _, id := range ids {
			all = append(all, float64(timed(func() { s.Mask() })))
			if err := s.Advance(id); err != nil {
				b.Fatal(err)
			}
		}
	}
	sum := 0.0
	for _, ns := range all {
		sum += ns
	}
	b.ReportMetric(sum/float64(len(all))/1e3, "µs/mask")
	b.ReportMetric(slices.Max(all)/1e3, "µs-longest")
	slices.Sort(first)
	b.ReportMetric(first[len(first)/2]/1e6, "ms-to-first")
}

// walkText follows a text again and again. A step is one token.
func walkText(b *testing.B, g *Grammar, v *Vocabulary, ids []int32, do func(s *State, id int32)) {
	s, at := g.Start(v), 0
	b.ReportAllocs()
	for b.Loop() {
		if at == len(ids) {
			s, at = g.Start(v), 0
		}
		do(s, ids[at])
		if err := s.Advance(ids[at]); err != nil {
			b.Fatal(err)
		}
		at++
	}
}

func timed(f func()) time.Duration {
	begin := time.Now()
	f()
	return time.Since(begin)
}
