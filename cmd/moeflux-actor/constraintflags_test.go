package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What bounds the text does, with --chat too, and --json says what it was.
func TestRunBoundsTheText(t *testing.T) {
	fixture, _ := loadE2E(t)
	chatty := withTemplate(t, fixture, chatML)
	grammar := writeFile(t, "list.gbnf", "root ::= \"[\" item (\",\" item)? \"]\"\nitem ::= [0-9]{1,3} | \"\\\"\" [a-z]{1,4} \"\\\"\"\n")
	schema := writeFile(t, "thing.json", `{"type": "object", "properties": {"name": {"enum": ["a", "é"]}, "size": {"type": "integer", "minimum": -99, "maximum": 99}}, "required": ["name"], "additionalProperties": false}`)
	for _, c := range []struct {
		name  string
		flags []string
		want  string // an expression
		used  constraintUsed
	}{
		{"regex", []string{"--regex", `[0-9]{1,4}(px|em)`}, `[0-9]{1,4}(px|em)`, constraintUsed{Kind: "regex", Regex: `[0-9]{1,4}(px|em)`, Complete: true}},
		{"grammar", []string{"--grammar", grammar}, `\[([0-9]{1,3}|"[a-z]{1,4}")(,([0-9]{1,3}|"[a-z]{1,4}"))?\]`, constraintUsed{Kind: "grammar", File: grammar, Complete: true}},
		{"schema", []string{"--schema", schema}, `\{"name": ?"(a|é)"(, ?"size": ?-?[0-9]{1,2})?\}`, constraintUsed{Kind: "schema", File: schema, Complete: true}},
		{"the empty text", []string{"--regex", ``}, ``, constraintUsed{Kind: "regex", Complete: true}},
	} {
		for _, mode := range [][]string{{"--temperature", "1"}, {"--temperature", "0"}, {"--temperature", "1", "--chat"}} {
			args := append(append([]string{"run", "--model", chatty, "-p", "const size = ", "--seed", "3"}, c.flags...), mode...)
			o := mustCall(t, "", append(args, "--json")...)
			r := parseRun(t, o)
			said := r.Text
			if r.Content != nil { // it may think before
				said = *r.Content
			}
			if !regexp.MustCompile(`\A(?:`+c.want+`)\z`).MatchString(said) || r.StopReason != "eos" || r.Constraint == nil || *r.Constraint != c.used {
				t.Errorf("%s %v: text %q, reason %q, constraint %+v; want a text of %s and %+v", c.name, mode, r.Text, r.StopReason, r.Constraint, c.want, c.used)
			}
			if strings.Contains(o.stderr, "complete") {
				t.Errorf("%s %v: stderr %q", c.name, mode, o.stderr)
			}
			if s := mustCall(t, "", args...); s.stdout != r.Text {
				t.Errorf("%s %v: streams %q, want %q", c.name, mode, s.stdout, r.Text)
			}
		}
	}
	if r := parseRun(t, mustCall(t, "", "run", "--model", chatty, "-p", "x", "-n", "2", "--json")); r.Constraint != nil {
		t.Errorf("without a constraint --json says %+v", r.Constraint)
	}
}

// A text that is cut short is said to be, unless the constraint allows it as it is.
func TestRunSaysWhatIsNotComplete(t *testing.T) {
	fixture, _ := loadE2E(t)
	grammar := writeFile(t, "long.gbnf", `root ::= "ab"{100} "x"`)
	for _, c := range []struct {
		name     string
		flags    []string
		reason   string
		complete bool
		want     string // on stderr
	}{
		{"-n", []string{"--regex", "[a-z]{200}", "-n", "3"}, "length", false, "the text is not complete: the regex needs more than the 3 tokens of -n; give a larger -n"},
		{"-n of one", []string{"--regex", "[a-z]{200}", "-n", "1"}, "length", false, "more than the 1 token of -n"},
		{"a grammar", []string{"--grammar", grammar, "-n", "3"}, "length", false, "the grammar needs more than the 3 tokens of -n"},
		{"-n where it may end", []string{"--regex", "[a-z]*", "-n", "3"}, "length", true, ""},
		{"context", []string{"--regex", "[a-z]{200}", "-n", "0", "--ctx", "12"}, "context", false, "the context is full before the regex is done; give a larger --ctx"},
		{"stop string", []string{"--regex", "q{3}", "--stop", "qq"}, "stop", false, "a --stop ended the text"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := mustCall(t, "", append([]string{"run", "--model", fixture, "-p", "x", "--temperature", "1", "--json"}, c.flags...)...)
			r := parseRun(t, o)
			if string(r.StopReason) != c.reason || r.Constraint == nil || r.Constraint.Complete != c.complete {
				t.Errorf("text %q, reason %q, constraint %+v; want %q and complete %v", r.Text, r.StopReason, r.Constraint, c.reason, c.complete)
			}
			if said := strings.Contains(o.stderr, "complete"); said != (c.want != "") || !strings.Contains(o.stderr, c.want) {
				t.Errorf("stderr %q, want %q", o.stderr, c.want)
			}
			if !strings.HasSuffix(o.stderr, r.Stats.line()+"\n") {
				t.Errorf("the last line of stderr %q is not of figures", o.stderr)
			}
		})
	}
}

// What is wrong with a constraint is said before the model is looked for, on one line.
func TestRunRefusesConstraints(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	grammar := writeFile(t, "a.gbnf", `root ::= "a"`)
	for _, c := range []struct {
		name  string
		flags []string
		code  int
		want  string
	}{
		{"two", []string{"--regex", "a", "--grammar", grammar}, exitUsage, "--grammar and --regex are given; use one of them"},
		{"three", []string{"--regex", "", "--grammar", grammar, "--schema", grammar}, exitUsage, "--grammar and --regex and --schema are given; use one of them"},
		{"no such schema", []string{"--schema", missing}, exitFailed, "the schema cannot be read: open " + missing},
		{"a schema that is no JSON", []string{"--schema", writeFile(t, "a.json", `{"type": "string",}`)}, exitFailed, "a.json cannot be used: "},
		{"a schema that is none", []string{"--schema", writeFile(t, "b.json", `{"items": {"type": "text"}}`)}, exitFailed, `b.json cannot be used: /items/type: "text" is not a type`},
		{"a keyword that is not supported", []string{"--schema", writeFile(t, "c.json", `{"properties": {"a": {"uniqueItems": true}}}`)}, exitFailed, `c.json cannot be used: "uniqueItems" at /properties/a is not supported`},
		{"a schema of nothing", []string{"--schema", writeFile(t, "d.json", `false`)}, exitFailed, "no JSON value satisfies the schema"},
		{"an expression that is none", []string{"--regex", "(a"}, exitUsage, `--regex: regular expression "(a": missing closing )`},
		{"look-ahead", []string{"--regex", "(?=a)b"}, exitUsage, `invalid or unsupported Perl syntax: "(?="`},
		{"an expression of nothing", []string{"--regex", "a$b"}, exitUsage, "matches no text"},
		{"not UTF-8", []string{"--regex", "\xff"}, exitUsage, `--regex "\xff" is not UTF-8 text`},
		{"no such file", []string{"--grammar", missing}, exitFailed, "the grammar cannot be read: open " + missing},
		{"a folder", []string{"--grammar", filepath.Dir(missing)}, exitFailed, "is a directory"},
		{"a grammar that is none", []string{"--grammar", writeFile(t, "b.gbnf", "root ::= \"a\" |\n  (\"b\"\n")}, exitFailed, "b.gbnf cannot be used: line 2, column 3: a parenthesis is not closed"},
		{"a grammar without a rule", []string{"--grammar", writeFile(t, "c.gbnf", "root ::= \"é\" x")}, exitFailed, `line 1, column 14: rule "x" is not defined`},
		{"left recursion", []string{"--grammar", writeFile(t, "d.gbnf", "root ::= root \"a\" | \"b\"")}, exitFailed, `rule "root" begins with itself`},
		{"tools", []string{"--chat", "--tools", grammar, "--regex", "a"}, exitUsage, "--tools does nothing with --regex"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := call(t, "", append([]string{"run", "-p", "x", "--model", missing}, c.flags...)...)
			if o.code != c.code || !strings.Contains(o.stderr, c.want) {
				t.Errorf("exit %d, stderr %q; want %d and %q", o.code, o.stderr, c.code, c.want)
			}
			checkErrorLine(t, o)
		})
	}
}
