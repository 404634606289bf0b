package jinja

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

// caseFile is what testdata/make_cases.py writes.
type caseFile struct {
	Variables json.RawMessage
	Cases     [][]string
}

// testNow is the clock of the reference results.
func testNow() time.Time { return time.Date(2024, 3, 7, 15, 4, 5, 678901000, time.UTC) }

func readCases(t testing.TB) (*Dict, [][]string) {
	t.Helper()
	data, err := os.ReadFile("testdata/cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var f caseFile
	if err := json.Unmarshal(data, &f); err != nil {
		t.Fatal(err)
	}
	vars, err := DecodeJSON(f.Variables)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Cases) < 775 {
		t.Fatalf("only %d cases", len(f.Cases))
	}
	return vars.(*Dict), f.Cases
}

func renderText(name, text string, vars *Dict) (string, error) {
	tmpl, err := Parse(name, text)
	if err != nil {
		return "", err
	}
	return tmpl.RenderWith(vars, Config{Now: testNow})
}

// Every case gives what Jinja2 gives: the text, or an error of the same kind.
func TestReference(t *testing.T) {
	vars, cases := readCases(t)
	for _, c := range cases {
		got, err := renderText("case", c[0], vars)
		if c[1] == "ok" {
			if err != nil || got != c[2] {
				t.Errorf("%s\n got %q, %v\nwant %q", c[0], got, err, c[2])
			}
			continue
		}
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%s\n got %q, %v\nwant %s: %s", c[0], got, err, c[2], c[3])
			continue
		}
		if !sameError(e, c[2], c[3]) {
			t.Errorf("%s\n got %v\nwant %s: %s", c[0], e, c[2], c[3])
		}
		if e.Line < 1 || e.Name != "case" {
			t.Errorf("%s\nno place in %v", c[0], e)
		}
	}
}

// sameError compares an error with the reference's. Python's complaints about the number of
// arguments come in many wordings, and errors of the Python compiler have places in generated code:
// of these only the kind has to match.
func sameError(e *Error, class, msg string) bool {
	switch {
	case class == "SyntaxError":
		return e.Kind == KindSyntax
	case class == "TypeError" && strings.Contains(msg, "argument"):
		return e.Kind == KindType
	}
	return string(e.Kind) == class && e.Msg == msg
}
