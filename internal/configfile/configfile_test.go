package configfile

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	got, err := Read(strings.NewReader("# ours\naddr: 127.0.0.1:80\nmodel:\n  - a=/x\n  - /y # z\nopen-to-anyone: yes\nctx: 4096\nseed: \"0012\"\nhost: [a, b]\nalias: []\n"))
	want := []Setting{
		{"addr", []string{"127.0.0.1:80"}, false, 2}, {"model", []string{"a=/x", "/y"}, true, 3}, {"open-to-anyone", []string{"yes"}, false, 6},
		{"ctx", []string{"4096"}, false, 7}, {"seed", []string{"0012"}, false, 8}, {"host", []string{"a", "b"}, true, 9}, {"alias", nil, true, 10},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	for _, empty := range []string{"", "\n# nothing\n", "---\n"} {
		if got, err := Read(strings.NewReader(empty)); len(got) > 0 || err != nil && empty != "---\n" {
			t.Errorf("%q: %v, %v", empty, got, err)
		}
	}
}

func TestMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"- a\n":                    "line 1: there must be lines of NAME: VALUE",
		"just text":                "line 1: there must be lines",
		"a: 1\n\nb:\n":             "line 3: b has no value",
		"a: 1\nb: 2\na: 3\n":       "line 3",
		"a:\n  b: 1\n":             "line 1: a must be a value",
		"a:\n  - x: 1\n":           "line 2: a must be a list of plain values",
		"a: [1\n":                  "line",
		"a: &x 1\nb: *x\n":         "line 2: b must be a value",
		"? [a]\n: 1\n":             "line 1: a name must be a text",
		strings.Repeat("#", 2<<20): "longer than",
	} {
		if got, err := Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, %v; want %q", text, got, err, want)
		}
	}
}

// What is written is read as it was, whatever characters it has.
func TestWrite(t *testing.T) {
	var b bytes.Buffer
	want := []Setting{{"a", []string{"127.0.0.1:80"}, false, 1}, {"b", []string{"true", "x: # y", "- z", " 'q\" ", "", "50%"}, true, 2}, {"c", []string{"12"}, false, 9}, {"d", []string{"two\nlines"}, false, 10}}
	for i := range want {
		if err := want[i].Write(&b); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Read(&b)
	for i := range got {
		got[i].Line = want[i].Line
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	if (&Setting{Name: "x"}).Write(&b) == nil {
		t.Error("a setting without a value is written")
	}
}

func FuzzRead(f *testing.F) {
	f.Add("a: 1\nb: [x, y]\n")
	f.Add("a: &x\n  - *x\n")
	f.Fuzz(func(t *testing.T, text string) {
		settings, err := Read(strings.NewReader(text))
		if err != nil {
			return
		}
		for _, s := range settings {
			if s.Line < 1 || !s.List && len(s.Values) != 1 {
				t.Errorf("%+v", s)
			}
		}
	})
}
