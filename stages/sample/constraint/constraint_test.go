package constraint

import (
	"errors"
	"math/rand/v2"
	"regexp"
	"testing"
)

// testVocabulary has all bytes, random tokens over a few characters, a control token and an end.
func testVocabulary(rng *rand.Rand) *Vocabulary {
	tokens := make([][]byte, 256)
	for b := range tokens {
		tokens[b] = []byte{byte(b)}
	}
	alphabet := []rune("aab01 \n.-é€😀")
	for range 700 {
		var text []rune
		for range 1 + rng.IntN(6) {
			text = append(text, alphabet[rng.IntN(len(alphabet))])
		}
		b := []byte(string(text))
		tokens = append(tokens, b[rng.IntN(2)*rng.IntN(len(b)):]) // some begin inside a character
	}
	return NewVocabulary(append(tokens, nil, nil), []int32{int32(len(tokens) + 1)})
}

// walk draws a text under g and checks every mask against Accepts.
func walk(t *testing.T, g *Grammar, v *Vocabulary, rng *rand.Rand) string {
	t.Helper()
	s, text := g.Start(v), ""
	for n := 0; ; n++ {
		var allowed []int32
		mask := s.Mask()
		for id := range int32(v.Size()) {
			ok := mask[id/64]>>(id%64)&1 == 1
			if ok != s.Accepts(id) {
				t.Fatalf("after %q: token %q: mask says %v, Accepts the opposite", text, v.tokens[id], ok)
			}
			if ok {
				allowed = append(allowed, id)
			}
		}
		if len(allowed) == 0 {
			t.Fatalf("after %q nothing is allowed", text)
		}
		if only := len(allowed) == 1 && allowed[0] == v.ends[0]; s.Complete() && !only {
			t.Fatalf("%q is complete, and tokens %v may follow", text, allowed)
		}
		id := allowed[rng.IntN(len(allowed))]
		if s.MayEnd() && n > 20 {
			id = v.ends[0]
		}
		if err := s.Advance(id); err != nil {
			t.Fatal(err)
		}
		if id == v.ends[0] {
			if !s.Complete() {
				t.Fatalf("%q has ended, and is not complete", text)
			}
			return text
		}
		text += string(v.tokens[id])
		if n > 3000 {
			t.Fatalf("%q does not end", text)
		}
	}
}

var expressions = []string{
	`a*b`, `(a|b)*a(a|b){3}`, `[^a]+`, `(?i)ab|é`, `a{2,5}`, `(?m)^a+$(\n^b$)?`, `\ba+\b( \b[01]+\b)*`, `-?(0|1[01]*)(\.[01]+)?`, `.*€.*`, `a\Bb`, `^a$|^b$`, `(?s).{1,9}`,
}

// What is drawn matches by the standard library, and what the library says of random texts the
// automaton says too.
func TestRegexp(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	v := testVocabulary(rng)
	matched := 0
	for _, e := range expressions {
		g, err := Regexp(e)
		if err != nil {
			t.Fatal(err)
		}
		judge := regexp.MustCompile(`\A(?:` + e + `)\z`)
		for range 10 {
			if text := walk(t, g, v, rng); !judge.MatchString(text) {
				t.Errorf("%s: drew %q", e, text)
			}
		}
		for range 3000 {
			var text []rune
			for range rng.IntN(8) {
				text = append(text, []rune("aaabb01 \n.-é€")[rng.IntN(13)])
			}
			want := judge.MatchString(string(text))
			if got := g.Matches(string(text)); got != want {
				t.Errorf("%s: %q matches: %v, want %v", e, string(text), got, want)
			}
			if want {
				matched++
			}
		}
	}
	if matched < 1000 {
		t.Errorf("only %d texts matched", matched)
	}
}

// A grammar with counted repetitions, nesting and empty times against what it means.
func TestGBNF(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	v := testVocabulary(rng)
	for _, c := range []struct{ grammar, same string }{
		{`root ::= "a"{2,4} | [01]+ # two`, `a{2,4}|[01]+`},
		{`root ::= [^€]{2,3} "a"{1,9}`, `[^€]{2,3}a{1,9}`}, // a token may go on into what follows
		{"root ::= x{1,3} \"b\"\nx ::= \"a\"? y\ny ::= [0-1]*", `(a?[01]*){1,3}b`},
		{`root ::= ("a" | "b"{3,})* [^a-z]{2}`, `(a|b{3,})*[^a-z]{2}`},
		{"root ::= x | y\nx ::= \"a\" x? \"b\"{0,2}\ny ::= \"a\"{3} \"-\" |\n \"\\u00e9\" .", `a+b*|a{3}-|é(?s:.)`},
	} {
		g, err := GBNF(c.grammar)
		if err != nil {
			t.Fatalf("%s: %v", c.grammar, err)
		}
		judge := regexp.MustCompile(`\A(?:` + c.same + `)\z`)
		for range 40 {
			if text := walk(t, g, v, rng); !judge.MatchString(text) {
				t.Errorf("%s: drew %q", c.grammar, text)
			}
		}
	}
	nested, err := GBNF("root ::= \"(\" root? \")\"")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{"()": true, "((()))": true, "(()": false, "": false, "())": false} {
		if got := nested.Matches(text); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
	var left *LeftRecursionError
	if _, err := GBNF("root ::= x \"b\"\nx ::= \"a\"? x | \"c\""); !errors.As(err, &left) || left.Rule != "x" {
		t.Errorf("left recursion: %v", err)
	}
}

// What is wrong with a grammar is said with the line and the column, in characters.
func TestGBNFErrors(t *testing.T) {
	for grammar, want := range map[string]string{
		"":                               `there is no rule "root", which is what a whole text matches`,
		"a ::= \"x\"":                    `there is no rule "root", which is what a whole text matches`,
		"root ::= x":                     `line 1, column 10: rule "x" is not defined`,
		"\nroot ::= ( \"é\" | b )\n":     `line 2, column 18: rule "b" is not defined`,
		"root ::= \"a":                   "line 1, column 10: a literal is not closed",
		"root ::= \"a\"\n | [b":          "line 2, column 4: a class is not closed",
		"root ::= (\"a\" (\"b\")\n":      "line 1, column 10: a parenthesis is not closed",
		"root ::= (\"a\" é)":             "line 1, column 15: unexpected 'é' in a parenthesis",
		"root = \"a\"":                   `line 1, column 6: ::= must follow "root"`,
		"root ::= \"a\"\n::= x":          "line 2, column 1: the name of a rule must come here",
		"root ::= \"a\" )":               "line 1, column 14: unexpected ')'",
		"root ::= \"a\"\nroot ::= \"b\"": `line 2, column 9: rule "root" is defined twice`,
		"root ::= [b-a]":                 "line 1, column 14: the range 'b' to 'a' is empty",
		"root ::= [a-":                   "line 1, column 13: a range has no end",
		"root ::= \"\\q\"":               `line 1, column 13: the escape \q is not known, or too short`,
		"root ::= \"\\ud800\"":           `line 1, column 13: \ud800 is no character`,
		"root ::= \"a\"{2,1}":            "line 1, column 18: {2,1} is not a number of times",
		"root ::= \"a\"{x}":              `line 1, column 16: "x" is not a number of times from 0 to 100000`,
		"root ::= \"a\"{1":               "line 1, column 14: a brace is not closed",
		"root ::= \"a\" root":            "the grammar matches no text, or none within 256 nested rules",
		"root ::= \"\xff\"":              "the grammar is not valid UTF-8",
	} {
		if _, err := GBNF(grammar); err == nil || err.Error() != want {
			t.Errorf("%q: %v\nwant %s", grammar, err, want)
		}
	}
}

// Choices give each of the texts and no other, also when places are forgotten all the time.
func TestChoices(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	v := testVocabulary(rng)
	list := map[string]bool{"a": true, "ab": true, "é€": true, "b 0": true}
	g, err := Choices([]string{"a", "ab", "é€", "b 0"})
	if err != nil {
		t.Fatal(err)
	}
	g.m.limit = 1
	seen := map[string]bool{}
	for range 300 {
		text := walk(t, g, v, rng)
		if seen[text] = true; !list[text] {
			t.Errorf("drew %q", text)
		}
	}
	if len(seen) != len(list) {
		t.Errorf("drew only %v", seen)
	}
	s := g.Start(v)
	var refused *RefusedError
	if err := s.Advance('x'); !errors.As(err, &refused) || s.Complete() || !s.Accepts('a') {
		t.Errorf("a refused token: %v", err)
	}
}
