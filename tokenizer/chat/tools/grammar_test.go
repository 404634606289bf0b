package tools

import (
	"encoding/json"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/stages/sample/constraint"
	"github.com/moeflux/moeflux-actor/tokenizer/chat"
)

var allFormats = []Format{Hermes, Coder, DeepSeek, Kimi, GLM, MiniMax, MiniMax3, Hunyuan, List, Mistral, Harmony}

func compiled(t testing.TB, g Grammar) *constraint.Grammar {
	t.Helper()
	c, err := constraint.GBNFWith(g.Rules, g.Schemas)
	if err != nil {
		t.Fatalf("%v\n%s", err, g.Rules)
	}
	return c
}

// bytesOnly is a vocabulary whose tokens are single bytes.
func bytesOnly() *constraint.Vocabulary {
	tokens := make([][]byte, 256)
	for i := range tokens {
		tokens[i] = []byte{byte(i)}
	}
	return constraint.NewVocabulary(tokens, nil)
}

// wander writes a random text of a grammar, "" if it gets too long. Where a quote or a tag may come
// it often does, so that texts end.
func wander(g *constraint.Grammar, v *constraint.Vocabulary, random *rand.Rand) string {
	var text []byte
	for s := g.Start(v); len(text) < 4000; {
		var may []int32
		for i, word := range s.Mask() {
			for ; word != 0; word &= word - 1 {
				may = append(may, int32(64*i+bits.TrailingZeros64(word)))
			}
		}
		if len(may) == 0 || s.MayEnd() && random.IntN(3) == 0 {
			return string(text)
		}
		next := may[random.IntN(len(may))]
		for _, likely := range []int32{'"', '<', '/', 'p', 'a', '>', 0x80} {
			if slices.Contains(may, likely) && random.IntN(3) == 0 {
				next = likely
			}
		}
		if err := s.Advance(next); err != nil {
			panic(err)
		}
		text = append(text, byte(next))
	}
	return ""
}

const strictTools = `[{"name": "f", "parameters": {"type": "object", "properties": {"z": {"type": "integer", "minimum": -5, "maximum": 99},
	"word": {"enum": ["red", "<b> \"x\"\n"]}, "text": {"type": "string"}, "o": {"$ref": "#/$defs/o"}, "yes": {"type": "boolean"}, "maybe": {"type": ["null", "array"], "items": {"const": 1}}},
	"required": ["z", "word"], "additionalProperties": false, "$defs": {"o": {"type": "object", "properties": {"k": {"type": "boolean"}}, "required": ["k"], "additionalProperties": false}}}},
	{"name": "get.weather-now_2", "parameters": {"properties": {}, "additionalProperties": false}}, {"name": "third"}]`

// legal reports what is wrong with the arguments of a call of strictTools.
func legal(c chat.ToolCall, form Format) string {
	var a map[string]any
	if err := json.Unmarshal([]byte(c.Arguments), &a); err != nil {
		return err.Error()
	}
	switch c.Name {
	case "f":
		z, whole := a["z"].(float64)
		if !whole || z != float64(int(z)) || z < -5 || z > 99 || a["word"] != "red" && a["word"] != "<b> \"x\"\n" {
			return "z or word"
		}
		if text, given := a["text"]; given {
			if _, ok := text.(string); !ok {
				return "text"
			}
		}
		if o, given := a["o"]; given {
			if _, ok := o.(map[string]any)["k"].(bool); !ok || len(o.(map[string]any)) != 1 {
				return "o"
			}
		}
		for name := range a {
			if !slices.Contains([]string{"z", "word", "text", "o", "yes", "maybe"}, name) {
				return name
			}
		}
	case "get.weather-now_2":
		if len(a) > 0 {
			return "some"
		}
	case "third":
		if len(a) > 0 && form != Hermes && form != DeepSeek && form != Kimi && form != List && form != Mistral && form != Harmony {
			return "some"
		}
	default:
		return "no such function"
	}
	return ""
}

// Whatever a grammar of calls allows is calls of the functions, with arguments that their schemas
// allow, and nothing else.
func TestCallGrammar(t *testing.T) {
	list, err := chat.ReadTools(strings.NewReader(strictTools))
	if err != nil {
		t.Fatal(err)
	}
	// Of lists and objects not all forms have a grammar.
	plain, err := chat.ReadTools(strings.NewReader(strings.NewReplacer(`"o": {"$ref": "#/$defs/o"}, `, "", `, "maybe": {"type": ["null", "array"], "items": {"const": 1}}`, "").Replace(strictTools)))
	if err != nil {
		t.Fatal(err)
	}
	random, v := rand.New(rand.NewPCG(1, 2)), bytesOnly()
	for _, format := range allFormats {
		list := list
		if format == MiniMax3 {
			list = plain
		}
		for _, many := range []bool{false, true} {
			g, err := Syntax{Calls: format}.CallGrammar(list, many)
			if err != nil {
				t.Fatal(err)
			}
			whole, called, several, texts := compiled(t, g), map[string]int{}, 0, map[string]bool{}
			for range 300 {
				text := wander(whole, v, random)
				if text == "" {
					continue
				}
				m := message(Parse(Syntax{Calls: format}, Options{Tools: list}, text))
				if m.Content != "" || len(m.ToolCalls) == 0 || len(m.ToolCalls) > 1 && !many {
					t.Fatalf("%s, many %v: %q is read as %+v", format, many, text, m)
				}
				texts[text], several = true, several+len(m.ToolCalls)-1
				for _, c := range m.ToolCalls {
					called[c.Name]++
					if why := legal(c, format); why != "" {
						t.Fatalf("%s: %q has a call %+v: %s", format, text, c, why)
					}
				}
			}
			if len(called) != 3 || len(texts) < 50 || several == 0 == (many && format != Harmony) { // a call ends its turn
				t.Errorf("%s, many %v: %d texts, calls %v, %d of them not alone", format, many, len(texts), called, several)
			}
		}
	}
}

// A text without a mark may come, whatever else is in it, and no other.
func TestTextGrammar(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, format := range allFormats {
		s := Syntax{Calls: format}
		g := compiled(t, s.TextGrammar())
		yes, no := 0, 0
		for range 4000 {
			text := ""
			for range random.IntN(6) {
				mark := []rune(s.Opens()[random.IntN(len(s.Opens()))])
				text += string(mark[:random.IntN(len(mark)+1)]) + []string{"", "<", "x", "é", ">", "\n"}[random.IntN(6)]
			}
			_, mark := find(text, s.Opens())
			if got := g.Matches(text); got != (mark == "") {
				t.Fatalf("%s: %q may come: %v", format, text, got)
			}
			if mark == "" {
				yes++
			} else {
				no++
			}
		}
		if yes < 300 || no < 300 {
			t.Errorf("%s: %d and %d texts of each kind", format, yes, no)
		}
	}
}

// What no call can say is refused by name.
func TestGrammarRefuses(t *testing.T) {
	for _, c := range []struct {
		tools, want string
		formats     []Format
	}{
		{`[{"name": "a b"}]`, `the name of the function "a b"`, allFormats},
		{`[]`, "no function", allFormats},
		{`[{"name": "f", "parameters": {"type": "string"}}]`, `the type of its parameters is "string"`, allFormats},
		{`[{"name": "f", "parameters": {"properties": {"a>b": {}}}}]`, `"a>b"`, []Format{Coder, GLM, MiniMax}},
		{`[{"name": "f", "parameters": {"properties": {}, "required": ["x"]}}]`, "its parameter x is required", []Format{Coder, GLM, MiniMax}},
		{`[{"name": "f", "parameters": {"properties": {"x": {"enum": ["</parameter>"]}}}}]`, "holds what ends a value", []Format{Coder, MiniMax}},
		{`[{"name": "f", "parameters": {"properties": {"x": {"enum": []}}}}]`, "enum is empty", []Format{Coder, GLM, MiniMax}},
		{`[{"name": "f", "parameters": {"properties": []}}]`, "its properties", []Format{Coder, GLM, MiniMax}},
		{`[{"name": "f", "parameters": {"properties": {}, "required": 1}}]`, "its required parameters", []Format{Coder, GLM, MiniMax}},
		{`[{"name": "f", "parameters": {"properties": {"x": {"type": ["string", "array"]}}}}]`, "its parameter x: this form of calls nests", []Format{MiniMax3}},
		{`[{"name": "f", "parameters": {"properties": {"x y": {"type": "string"}}}}]`, `"x y"`, []Format{MiniMax3}},
	} {
		list, err := chat.ReadTools(strings.NewReader(c.tools))
		if err != nil {
			t.Fatal(err)
		}
		for _, format := range c.formats {
			if _, err := (Syntax{Calls: format}).CallGrammar(list, true); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %s: %v, want %s", format, c.tools, err, c.want)
			}
		}
	}
	if _, err := (Syntax{}).CallGrammar(nil, true); err != ErrNoForm {
		t.Errorf("no form: %v", err)
	}
}
