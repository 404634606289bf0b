package jinja

import (
	"errors"
	"testing"
)

func seeds(f *testing.F) {
	_, cases := readCases(f)
	for _, c := range cases {
		f.Add(c[0])
	}
	for _, name := range []string{"a", "b", "c"} {
		f.Add(string(readFile(f, "testdata/chat/"+name+".jinja")))
	}
}

func checkError(t *testing.T, err error, text string) {
	t.Helper()
	var e *Error
	if err != nil && (!errors.As(err, &e) || e.Line < 1 || e.Kind == "") {
		t.Errorf("%v is no error with a place\nin %q", err, text)
	}
}

// No text makes Parse panic.
func FuzzParse(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, text string) {
		_, err := Parse("fuzz", text)
		checkError(t, err, text)
	})
}

// No template makes Render panic or go beyond its bounds, and it gives the same text twice.
func FuzzRender(f *testing.F) {
	seeds(f)
	vars, _ := readCases(f)
	cfg := Config{Now: testNow, MaxOutputBytes: 1 << 18, MaxAllocBytes: 1 << 22, MaxSteps: 200_000, MaxDepth: 1000}
	f.Fuzz(func(t *testing.T, text string) {
		tmpl, err := Parse("fuzz", text)
		if err != nil {
			return
		}
		got, err := tmpl.RenderWith(vars, cfg)
		checkError(t, err, text)
		if len(got) > cfg.MaxOutputBytes {
			t.Errorf("%d bytes of text, bound %d\nin %q", len(got), cfg.MaxOutputBytes, text)
		}
		again, err2 := tmpl.RenderWith(vars, cfg)
		if got != again || (err == nil) != (err2 == nil) {
			t.Errorf("twice rendered, twice different: %q, %v and %q, %v\nin %q", got, err, again, err2, text)
		}
	})
}

// No JSON text makes DecodeJSON panic, and what it reads can be written and read again.
func FuzzDecodeJSON(f *testing.F) {
	for _, s := range []string{`{"a": [1, 1.0, -0, 1e5, 123456789012345678901234567890, null, true, "\ud83d\ude00\ud800"]}`, `[1,]`, `{"a":1,"a":2}`, ``, `1 2`} {
		f.Add([]byte(s))
	}
	tmpl, err := Parse("fuzz", "{{ v | tojson }}")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := DecodeJSON(data)
		if err != nil {
			return
		}
		vars := NewDict()
		vars.Set("v", v)
		text, err := tmpl.Render(vars)
		if err != nil {
			t.Fatalf("%v\nfor %q", err, data)
		}
		w, err := DecodeJSON([]byte(text))
		if err != nil {
			return // infinities have no JSON
		}
		vars.Set("v", w)
		if again, err := tmpl.Render(vars); err != nil || again != text {
			t.Errorf("%q became %q, %v", text, again, err)
		}
	})
}
