package tools

import (
	"encoding/json"
	"testing"
)

// The scanner takes what encoding/json takes.
func FuzzJSONScan(f *testing.F) {
	for _, s := range []string{`{"a": [1, -0.5e+3, true, false, null, "\u00e9\n"], "b": {}}`, "\"a\nb\"", `"\x"`, `"\u12g4"`, `01`, `-`, `1.`, `1e`, `1e+`, `0.5`, `[1,]`,
		`{"a":1,}`, `{,}`, `[}`, `{"a"}`, `{1: 2}`, `tru`, `trux`, `[] []`, ` 7 `, `[[]`, `"`, ``, `{"a": 1 "b"}`, "\"\x1f\"", "-0", "10", `["\"]"]`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var scan jsonScan
		got := true
		for i := 0; i < len(text) && got; i++ {
			got = scan.step(text[i])
		}
		whole := scan.state == jsonDone
		if scan.number() && len(scan.stack) == 0 { // what follows ends it
			whole = scan.step(' ')
		}
		if got = got && whole; got != json.Valid([]byte(text)) && len(text) < maxJSONNesting {
			t.Errorf("%q: taken %v, encoding/json says %v", text, got, !got)
		}
	})
}
