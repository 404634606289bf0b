package jinja

import (
	"math/big"
	"strings"
	"testing"
)

func TestDecodeJSON(t *testing.T) {
	tmpl, err := Parse("repr", "{{ v is none or v }}|{{ [v] }}")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ text, want string }{
		{`1`, `[1]`}, {`1.0`, `[1.0]`}, {`-0`, `[0]`}, {`-0.0`, `[-0.0]`}, {`1e2`, `[100.0]`}, {`1E400`, `[inf]`},
		{`12345678901234567890123`, `[12345678901234567890123]`},
		{`-9223372036854775808`, `[-9223372036854775808]`},
		{` {"b": 1, "a": [true, false, null], "b": 2} `, `[{'b': 2, 'a': [True, False, None]}]`},
		{`"\u00e9\ud83d\ude00\n\ud800"`, `['é😀\n` + "\ufffd" + `']`},
		{`{"": {}}`, `[{'': {}}]`},
	} {
		vars := NewDict()
		vars.Set("v", decode(t, []byte(c.text)))
		got, err := tmpl.Render(vars)
		if _, got, _ = strings.Cut(got, "|"); err != nil || got != c.want {
			t.Errorf("%s: got %s, %v, want %s", c.text, got, err, c.want)
		}
	}
	for _, text := range []string{``, `{`, `[1,]`, `{"a":1,}`, `{a:1}`, `1 2`, `nul`, `"\x"`, `01`, `+1`, `.5`, `NaN`, `{"a" 1}`, "\"\n\"", `[1}`} {
		if v, err := DecodeJSON([]byte(text)); kindOf(err) != KindValue {
			t.Errorf("%q: got %v, %v, want a ValueError", text, v, err)
		}
	}
	for text, want := range map[string]Kind{
		strings.Repeat("[", 5000) + strings.Repeat("]", 5000): KindRecursion,
		strings.Repeat("9", 5000):                             KindValue,
	} {
		if _, err := DecodeJSON([]byte(text)); kindOf(err) != want {
			t.Errorf("%.20s...: got %v, want %s", text, err, want)
		}
	}
}

// What a program builds is what a template sees.
func TestValuesFromGo(t *testing.T) {
	d := NewDict()
	d.Set("int", 7)
	d.Set("big", new(big.Int).Lsh(big.NewInt(1), 70))
	d.Set("small", big.NewInt(5))
	d.Set("list", NewList(1, "a", nil, 2.5, NewTuple(true)))
	d.Set("int", 8)
	for i := range 20 {
		d.Set("k"+string(rune('a'+i)), i)
	}
	d.Set("odd", struct{ x int }{1})
	if keys := d.Keys(); len(keys) != 25 || keys[0] != "int" || keys[24] != "odd" {
		t.Errorf("keys %q", keys)
	}
	vars := NewDict()
	vars.Set("d", d)
	for _, c := range []struct{ text, want string }{
		{"{{ d.int + 1 }} {{ d.big }} {{ d.small is integer }}", "9 1180591620717411303424 True"},
		{"{{ d.list }} {{ d.kt }}", "[1, 'a', None, 2.5, (True,)] 19"},
		{"{{ d.odd is none }}{{ d.odd is defined }}{{ d.odd == d.odd }}", "FalseTrueFalse"},
	} {
		if got, err := renderText("go", c.text, vars); err != nil || got != c.want {
			t.Errorf("%s: got %q, %v, want %q", c.text, got, err, c.want)
		}
	}
	for _, text := range []string{"{{ d.odd }}", "{{ d.odd + 1 }}", "{{ d.odd|tojson }}", "{{ {d.odd: 1} }}", "{% for x in d.odd %}{% endfor %}", "{{ d }}"} {
		if got, err := renderText("go", text, vars); kindOf(err) != KindType {
			t.Errorf("%s: got %q, %v, want a TypeError", text, got, err)
		}
	}
}
