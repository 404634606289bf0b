package moeflux

import (
	"errors"
	"regexp"
	"testing"
)

// What the demo model writes at temperature 1 matches, whatever the seed; so it does with cuts that
// leave little.
func TestConstraints(t *testing.T) {
	m := openDemo(t, Options{})
	for _, c := range []struct {
		constraint *Constraint
		matches    string
	}{
		{Regexp(`func [a-z]{3,8}\((x|y) int\) (int|bool) \{ return [0-9]{1,3} \}`), `func [a-z]{3,8}\((x|y) int\) (int|bool) \{ return [0-9]{1,3} \}`},
		{Regexp(`\{"name": "[^"\\\n]{1,12}", "size": -?(0|[1-9][0-9]{0,4}), "tags": \[("é"|"€")?\]\}`), `\{"name": "[^"\\\n]{1,12}", "size": -?(0|[1-9][0-9]{0,4}), "tags": \[("é"|"€")?\]\}`},
		{Choices("if x {", "if x", "É", "return"), `if x \{|if x|É|return`},
		{JSONSchema([]byte(`{"properties":{"a":{"type":"boolean"},"b":{"enum":["é",12]}},"required":["b"],"type":"object","additionalProperties":false}`)),
			`\{("a": ?(true|false), ?)?"b": ?("é"|12)\}`},
		{GBNF("root ::= \"[\" n{1,3} \"]\"\nn ::= [0-9]{2} | \"x\""), `\[([0-9]{2}|x){1,3}\]`},
	} {
		judge, came := regexp.MustCompile(`\A(?:`+c.matches+`)\z`), map[string]bool{}
		for seed := range uint64(8) {
			r := Request{Prompt: "package main\n\n", Constraint: c.constraint, Sampling: Sampling{Temperature: new(1.0), Seed: new(seed)}}
			if seed%2 == 1 {
				r.Sampling.TopK, r.Sampling.TopP = new(3), new(0.9)
			}
			end, err := m.Generate(t.Context(), r).Wait()
			if err != nil {
				t.Fatal(err)
			}
			came[end.Message.Content] = true
			if !judge.MatchString(end.Message.Content) || end.Reason != StopEOS || !end.Complete {
				t.Errorf("%s, seed %d: %q for %q", c.matches, seed, end.Message.Content, end.Reason)
			}
		}
		if len(came) < 2 {
			t.Errorf("%s: all seeds write %v", c.matches, came)
		}
	}
	for _, bad := range []*Constraint{Regexp("("), GBNF("x"), Choices("\xff"), JSONSchema([]byte(`{"contains":{}}`))} {
		_, err := m.Generate(t.Context(), Request{Prompt: "x", Constraint: bad}).Wait()
		e, ok := errors.AsType[*RequestError](err)
		if !ok || e.Field != "Constraint" {
			t.Errorf("a constraint that is none: %v", err)
			continue
		}
		if err := bad.Validate(); err != e.Err {
			t.Errorf("Validate says %v, a request %v", err, e.Err)
		}
	}
}

// End.Complete tells a text that was cut short from one that the constraint allows as it is.
func TestComplete(t *testing.T) {
	m := openDemo(t, Options{})
	for _, c := range []struct {
		r    Request
		want bool
	}{
		{Request{Constraint: Regexp("[a-z]{50}"), MaxTokens: 2}, false},
		{Request{Constraint: Regexp("[a-z]*"), MaxTokens: 2}, true},
		{Request{Constraint: Regexp("é{5}"), MaxTokens: 3}, false}, // may end within a character
		{Request{Constraint: Regexp("ab|abc")}, true},
		{Request{Constraint: Regexp("q{9}"), Stop: []string{"qq"}}, false},
		{Request{MaxTokens: 2}, false},
	} {
		c.r.Prompt, c.r.Sampling = "x", Sampling{Temperature: new(0.0)}
		end, err := m.Generate(t.Context(), c.r).Wait()
		if err != nil {
			t.Fatal(err)
		}
		if end.Complete != c.want {
			t.Errorf("%q for %q: complete %v, want %v", end.Message.Content, end.Reason, end.Complete, c.want)
		}
	}
	r := Request{Prompt: "x", Constraint: Regexp("[a-z]{50}"), Interrupted: func() bool { return true }}
	if end, err := m.Generate(t.Context(), r).Wait(); err != nil || end.Complete {
		t.Errorf("interrupted before the text: %+v, %v", end, err)
	}
}

// Errors of schemas can be told by their types.
func TestJSONSchemaErrors(t *testing.T) {
	err := JSONSchema([]byte(`{"properties":{"a":{"$dynamicRef":"#b"}}}`)).Validate()
	if e, ok := errors.AsType[*UnsupportedSchemaError](err); !ok || e.Pointer != "/properties/a" || e.Keyword != "$dynamicRef" {
		t.Errorf("a keyword that is not supported: %v", err)
	}
}
