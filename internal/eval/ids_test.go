package eval

import (
	"fmt"
	"strings"
	"testing"
)

func TestParseIDs(t *testing.T) {
	if got, err := ParseIDs([]byte(" [1, 2,\n3] ")); err != nil || fmt.Sprint(got) != "[1 2 3]" {
		t.Errorf("got %v, %v, want [1 2 3]", got, err)
	}
	for _, in := range []string{"", "null", "{}", "[1", "[1.5]", `["1"]`, "[1][2]", "[3000000000]", "[null]", "1"} {
		if got, err := ParseIDs([]byte(in)); err == nil {
			t.Errorf("%q is taken as %v, want an error", in, got)
		}
	}
}

func TestCheckVocab(t *testing.T) {
	if err := CheckVocab([]int32{0, 9}, 10); err != nil {
		t.Errorf("ids 0 and 9 of 10: %v, want no error", err)
	}
	for _, ids := range [][]int32{{0, 10}, {1, -1}} {
		if err := CheckVocab(ids, 10); err == nil || !strings.Contains(err.Error(), "index 1") {
			t.Errorf("ids %v of 10: error %v, want one that names index 1", ids, err)
		}
	}
}

func TestParsePrompts(t *testing.T) {
	got, err := ParsePrompts([]byte(`{"b": [1, 2], "a": [3]}`))
	if err != nil || fmt.Sprint(got) != "[{b [1 2]} {a [3]}]" {
		t.Errorf("got %v, %v, want b then a", got, err)
	}
	for _, c := range []struct{ in, want string }{
		{"", "not a JSON object"}, {"[1]", "not a JSON object"}, {"null", "not a JSON object"},
		{"{}", "empty"}, {`{"a": []}`, `"a"`}, {`{"a": null}`, `"a"`}, {`{"a": [1], "a": [2]}`, "twice"}, {`{"": [1]}`, "empty"},
		{`{"a": [1.5]}`, `"a"`}, {`{"a": "x"}`, `"a"`}, {`{"a": [1]`, "end"}, {`{"a": [1]} 7`, "follows"}, {`{"a"`, ""},
	} {
		if got, err := ParsePrompts([]byte(c.in)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, error %v, want one with %q", c.in, got, err, c.want)
		}
	}
}

func FuzzParsePrompts(f *testing.F) {
	f.Add([]byte(`{"a": [1, 2], "b": [0]}`))
	f.Add([]byte(`{"a": [`))
	f.Fuzz(func(t *testing.T, data []byte) {
		all, err := ParsePrompts(data)
		if err == nil && len(all) == 0 {
			t.Errorf("%q: nothing and no error", data)
		}
		for _, p := range all {
			if p.Name == "" || len(p.IDs) == 0 {
				t.Errorf("%q: %+v", data, p)
			}
		}
	})
}
