package jinja

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// kindOf is the kind of err, "" if there is none.
func kindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}

// Templates that would take for ever, or all memory, end with an error instead, and soon.
func TestLimits(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       Kind
	}{
		{"nested loops", "{% for a in range(99999) %}{% for b in range(99999) %}{% for c in range(99999) %}{% endfor %}{% endfor %}{% endfor %}", KindLimit},
		{"output", "{% for a in range(99999) %}{% for b in range(99) %}xxxxxxxxxxxxxxxxxxxxxxxxxxx{% endfor %}{% endfor %}", KindLimit},
		{"repeat a string", "{{ 'abc' * 10 ** 15 }}", KindLimit},
		{"repeat a list", "{{ [1] * 10 ** 12 }}", KindLimit},
		{"power", "{{ 10 ** (10 ** 10) }}", KindLimit},
		{"squares", "{% set ns = namespace(n=3) %}{% for i in range(99) %}{% set ns.n = ns.n * ns.n %}{% endfor %}", KindLimit},
		{"doubling", "{% set ns = namespace(s='x') %}{% for i in range(99) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}", KindLimit},
		{"shared lists", "{% set ns = namespace(l=[]) %}{% for i in range(99) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l }}", KindLimit},
		{"shared lists as JSON", "{% set ns = namespace(l=[]) %}{% for i in range(99) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l|tojson }}", KindLimit},
		{"shared lists compared", "{% set a = namespace(l=[]) %}{% set b = namespace(l=[]) %}{% for i in range(99) %}{% set a.l = [a.l, a.l] %}" +
			"{% set b.l = [b.l, b.l] %}{% endfor %}{{ a.l == b.l }}", KindLimit},
		{"shared tuples as a key", "{% set ns = namespace(l=()) %}{% for i in range(99) %}{% set ns.l = (ns.l, ns.l) %}{% endfor %}{{ {ns.l: 1} }}", KindLimit},
		{"deep list printed", "{% set ns = namespace(l=[]) %}{% for i in range(20000) %}{% set ns.l = [ns.l] %}{% endfor %}{{ ns.l }}", KindRecursion},
		{"deep list as JSON", "{% set ns = namespace(l=[]) %}{% for i in range(20000) %}{% set ns.l = [ns.l] %}{% endfor %}{{ ns.l|tojson }}", KindRecursion},
		{"deep list compared", "{% set a = namespace(l=[]) %}{% set b = namespace(l=[]) %}{% for i in range(20000) %}{% set a.l = [a.l] %}" +
			"{% set b.l = [b.l] %}{% endfor %}{{ a.l == b.l }}", KindRecursion},
		{"deep filters", "{% set ns = namespace(l=[1]) %}{% for i in range(20000) %}{% set ns.l = ns.l|map('string') %}{% endfor %}{{ ns.l|list }}", KindRecursion},
		{"macro without end", "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", KindRecursion},
		{"macros without end", "{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}", KindRecursion},
		{"loop without end", "{% set l = [1] %}{% for i in l recursive %}{{ loop(l) }}{% endfor %}", KindRecursion},
		{"center", "{{ 'a'|center(10 ** 12) }}", KindLimit},
		{"zfill", "{{ 'a'.zfill(10 ** 12) }}", KindLimit},
		{"tabs", "{{ '\\t'.expandtabs(10 ** 12) }}", KindLimit},
		{"indent", "{{ 'a\\nb'|indent(10 ** 12) }}", KindLimit},
		{"indent of JSON", "{{ [1]|tojson(indent=10 ** 12) }}", KindLimit},
		{"replace", "{{ ('a' * 10 ** 6).replace('a', 'b' * 10 ** 6) }}", KindLimit},
		{"replace nothing", "{{ ('a' * 10 ** 6).replace('', 'b' * 10 ** 6) }}", KindLimit},
		{"join", "{{ range(99999)|join('x' * 10 ** 6) }}", KindLimit},
		{"batch", "{{ [1]|batch(10 ** 12, 0)|list }}", KindLimit},
		{"slice", "{{ [1]|slice(10 ** 12, 0)|list }}", KindLimit},
		{"range", "{{ range(10 ** 12) }}", KindOverflow},
		{"range by overflow", "{{ range(-2 ** 62, 2 ** 63 - 1) }}", KindOverflow},
	} {
		tmpl, err := Parse(c.name, c.text)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		got, err := tmpl.RenderWith(nil, Config{MaxSteps: 1_000_000, MaxOutputBytes: 8 << 20, MaxAllocBytes: 64 << 20})
		if kindOf(err) != c.want {
			t.Errorf("%s: got %d bytes, error %v, want %s", c.name, len(got), err, c.want)
		}
		if d := time.Since(start); d > 20*time.Second {
			t.Errorf("%s: took %v", c.name, d)
		}
	}
}

// One value has the bound of the output, even where nothing of it is printed.
func TestBoundOfOneValue(t *testing.T) {
	cfg := Config{MaxOutputBytes: 100}
	for _, text := range []string{
		"{{ ('a' * 99 ~ 'bb')|length }}", "{{ ('a' * 99 + 'bb')|length }}", "{{ 'a'.center(101)|length }}",
		"{{ ['a' * 60, 'b' * 60]|join|length }}", "{{ ('a' * 60).replace('a', 'bb')|length }}", "{{ ('a' * 60 ~ '\n' * 60)|length }}",
		"{{ '{}b'.format('a' * 100)|length }}", "{{ ['a' * 99]|tojson|length }}", "{{ ['a' * 99]|string|length }}", "{{ '1'.zfill(101)|length }}",
		"{% set x %}{{ 'a' * 60 }}{{ 'a' * 60 }}{% endset %}", "{{ ('<' * 60)|e|length }}", "{{ [1] * 7 }}", "{{ 'abcdefg'|list|length }}",
	} {
		tmpl, err := Parse("bound", text)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := tmpl.RenderWith(nil, cfg); kindOf(err) != KindLimit {
			t.Errorf("%s: got %q, %v, want %s", text, got, err, KindLimit)
		}
	}
	tmpl, err := Parse("bound", "{{ 'a' * 50 }}{{ 'a' * 50 }}")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := tmpl.RenderWith(nil, cfg); err != nil || len(got) != 100 {
		t.Errorf("got %q, %v, want 100 bytes", got, err)
	}
}

// Sources nested without bound are refused; long ones that are not nested are fine.
func TestDepthOfSource(t *testing.T) {
	const n = 100_000
	for _, c := range []struct{ name, text string }{
		{"parentheses", "{{ " + strings.Repeat("(", n) + "1" + strings.Repeat(")", n) + " }}"},
		{"lists", "{{ " + strings.Repeat("[", n) + strings.Repeat("]", n) + " }}"},
		{"dicts", "{{ " + strings.Repeat("{1:", n) + "1" + strings.Repeat("}", n) + " }}"},
		{"not", "{{ " + strings.Repeat("not ", n) + "1 }}"},
		{"minus", "{{ " + strings.Repeat("-", n) + "1 }}"},
		{"if else", "{{ " + strings.Repeat("1 if 1 else ", n) + "1 }}"},
		{"sum", "{{ 1" + strings.Repeat(" + 1", n) + " }}"},
		{"attributes", "{{ a" + strings.Repeat(".a", n) + " }}"},
		{"filters", "{{ a" + strings.Repeat("|e", n) + " }}"},
		{"calls", "{{ a" + strings.Repeat("()", n) + " }}"},
		{"blocks", strings.Repeat("{% if 1 %}", n) + strings.Repeat("{% endif %}", n)},
		{"target", "{% set " + strings.Repeat("(", n) + "a" + strings.Repeat(")", n) + " = 1 %}"},
	} {
		if _, err := Parse(c.name, c.text); kindOf(err) != KindSyntax {
			t.Errorf("%s: got %v, want %s", c.name, err, KindSyntax)
		}
	}
	for _, text := range []string{
		strings.Repeat("{% if x %}a{% endif %}", n),
		"{% if x %}" + strings.Repeat("{% elif x %}a", n) + "{% endif %}",
		"{{ 'a'" + strings.Repeat(" ~ 'a'", n) + " }}",
		"{{ [" + strings.Repeat("1, ", n) + "] | length }}",
	} {
		tmpl, err := Parse("long", text)
		if err == nil {
			_, err = tmpl.Render(nil)
		}
		if err != nil {
			t.Errorf("%.40s...: %v", text, err)
		}
	}
}

// An error names the template and the line on which it arose.
func TestErrorPlaces(t *testing.T) {
	for _, c := range []struct {
		text string
		line int
		kind Kind
		msg  string
	}{
		{"a\nb{{ x.y }}", 2, KindUndefined, "'x' is undefined"},
		{"{% if true %}\n\n{{ raise_exception('no: %s') }}\n{% endif %}", 3, KindTemplate, "no: %s"},
		{"\n{% for x in [1] %}\n{{ x +\n'a' }}{% endfor %}", 3, KindType, "unsupported operand type(s) for +: 'int' and 'str'"},
		{"\n{% macro m() %}\n{{ 1 / 0 }}{% endmacro %}\n\n{{ m() }}", 3, KindZeroDivide, "division by zero"},
		{"{#\n\n#}{% raw %}\n{% endraw %}{{ 1 | nosuch }}", 4, KindAssertion, "No filter named 'nosuch'."},
		{"{{ 'a\nb' }}\n{{ 'x\n' ~ }}", 4, KindSyntax, "unexpected 'end of print statement'"},
		{"a\n{%- endfor %}", 2, KindSyntax, "Encountered unknown tag 'endfor'."},
		{"\n{% include 'x' %}", 2, KindUnsupported, "the tag 'include' is not supported in chat templates"},
		{"{% block x %}{% endblock %}", 1, KindUnsupported, "the tag 'block' is not supported in chat templates"},
		{"{% extends 'x' %}", 1, KindUnsupported, "the tag 'extends' is not supported in chat templates"},
		{"{% import 'x' as y %}", 1, KindUnsupported, "the tag 'import' is not supported in chat templates"},
		{"{{ '%s' % 1 }}", 1, KindUnsupported, "the operator % on a string is not supported in chat templates"},
		{"{{ missing }}\n{{ '%s' % missing }}", 2, KindUnsupported, "the operator % on a string is not supported in chat templates"},
		{"{{ '{:>5}'.format(1) }}", 1, KindUnsupported, "the format specification '>5' is not supported in chat templates"},
		{"{{ '{0!a}'.format('é') }}", 1, KindUnsupported, "the conversion !a is not supported in chat templates"},
		{"{{ '%s' | format(1) }}", 1, KindUnsupported, "the filter 'format' is not supported in chat templates"},
		{"{{ '1' | int }}", 1, KindUnsupported, "the filter 'int' is not supported in chat templates"},
		{"{{ ['1'] | map('float') | list }}", 1, KindUnsupported, "the filter 'float' is not supported in chat templates"},
		{"{{ 1.5 | round }}", 1, KindUnsupported, "the filter 'round' is not supported in chat templates"},
		{"{{ 1 | abs }}", 1, KindUnsupported, "the filter 'abs' is not supported in chat templates"},
		{"{{ 1 | pprint }}", 1, KindUnsupported, "the filter 'pprint' is not supported in chat templates"},
		{"{{ strftime_now('%Y') }}", 1, KindRuntime, "strftime_now: the program gave no clock (Config.Now)"},
	} {
		var got string
		tmpl, err := Parse("tmpl.jinja", c.text)
		if err == nil {
			got, err = tmpl.Render(nil)
		}
		var e *Error
		if !errors.As(err, &e) || *e != (Error{c.kind, "tmpl.jinja", c.line, c.msg}) {
			t.Errorf("%q\n got %q, %v\nwant line %d, %s: %s", c.text, got, err, c.line, c.kind, c.msg)
		}
	}
}
