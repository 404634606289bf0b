package main

import (
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/figures"
)

// The demo model is measured in all ways, and they say the same. Speeds are another matter: it is
// so small that HTTP may well cost more than it may.
func TestRun(t *testing.T) {
	var out strings.Builder
	err := run(t.Context(), []string{"-texts", "3", "-prompt", "8", "-tokens", "4", "-pairs", "2", "-known", "20", "-firsts", "3", "-generate", "-expert-memory", "3000000"}, &out)
	if err != nil && !errors.Is(err, errShort) {
		t.Fatal(err, out.String())
	}
	for _, want := range []string{
		`demo-\S+: \d+ of 256 slots, \d+ threads; 3 texts of 4 tokens after prompts of 8; a prompt of 20\n`,
		`tokens/s( +\w+ texts/step){3} +HTTP/engine\n +1( +\d+\.\d\d +[1-3]\.\d){3} +\d+\.\d{3}\n +2 `, `\nfirst text, Generate +\d+\.\d\d ms`, `\nfirst text, HTTP +\d`,
		`\nHTTP of the engine, by pair: \d+\.\d{3} `, `\nfirst text later than the engine's, by pair: -?\d`,
	} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("%s is not in\n%s", want, out.String())
		}
	}
}

func TestRefuses(t *testing.T) {
	for part, args := range map[string][]string{
		"is no flag": {"more"}, "-pairs 0": {"-pairs", "0"}, "-prompt 1": {"-prompt", "1"}, "nowhere": {"-model", "/nowhere"},
	} {
		if err := run(t.Context(), args, io.Discard); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q: %v, want an error that says %s", args, err, part)
		}
	}
}

func TestJudge(t *testing.T) {
	for _, tc := range []struct {
		share, later float64
		short        bool
	}{{0.95, 20, false}, {0.949, 1, true}, {1, 20.1, true}, {1.1, -3, false}} {
		err := judge(io.Discard, figures.Spread{Median: tc.share}, figures.Spread{Median: tc.later})
		if (err != nil) != tc.short {
			t.Errorf("%+v: %v", tc, err)
		}
	}
}

// What a server does not send is noticed.
func TestRead(t *testing.T) {
	const end = `data: {"choices":[],"usage":{"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":5}}}`
	for _, tc := range []struct{ stream, said, wrong string }{
		{": ping|data: {\"choices\":[{\"text\":\"a\"}]}|data: {\"choices\":[{\"text\":\"b\"}]}|" + end + "|data: [DONE]", "ab", ""},
		{end, "", "ended early"}, {`data: {"error":{"message":"no"}}`, "", "no"}, {"data: {", "", "JSON"},
	} {
		var lines [][]byte
		for line := range strings.SplitSeq(tc.stream, "|") {
			lines = append(lines, []byte(line+"\n"))
		}
		x := new(text)
		err := x.read(lines)
		if (err == nil) != (tc.wrong == "") || err != nil && !strings.Contains(err.Error(), tc.wrong) {
			t.Errorf("%s: %v", tc.stream, err)
		}
		if err == nil && (x.said != tc.said || x.tokens != 2 || x.known != 5 || x.whole(2) != nil || x.whole(3) == nil) {
			t.Errorf("%s: %+v", tc.stream, x)
		}
	}
}
