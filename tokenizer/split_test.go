package tokenizer

import (
	"errors"
	"slices"
	"testing"
)

// The first five rows are the behaviours as the reference documents them, for
// "the-final--countdown" split at "-".
func TestSplitBehaviors(t *testing.T) {
	const text = "the-final--countdown"
	for _, c := range []struct {
		behavior string
		invert   bool
		text     string
		want     []string
	}{
		{"Removed", false, text, []string{"the", "final", "countdown"}},
		{"Isolated", false, text, []string{"the", "-", "final", "-", "-", "countdown"}},
		{"MergedWithPrevious", false, text, []string{"the-", "final-", "-", "countdown"}},
		{"MergedWithNext", false, text, []string{"the", "-final", "-", "-countdown"}},
		{"Contiguous", false, text, []string{"the", "-", "final", "--", "countdown"}},
		{"Removed", true, text, []string{"-", "-", "-"}},
		{"Isolated", true, text, []string{"the", "-", "final", "-", "-", "countdown"}},
		{"Contiguous", true, "a--b", []string{"a", "--", "b"}},
		{"MergedWithPrevious", true, "a-b-", []string{"a", "-b", "-"}},
		{"MergedWithNext", true, "a-b-", []string{"a-", "b-"}},
		{"MergedWithPrevious", false, "--a", []string{"-", "-", "a"}},
		{"Removed", false, "---", nil},
		{"MergedWithNext", false, "a-", []string{"a", "-"}},
		{"MergedWithPrevious", false, "-a", []string{"-", "a"}},
	} {
		for _, kind := range []string{"String", "Regex"} {
			step := parseStep(t, `{"type":"Split","pattern":{"`+kind+`":"-"},"behavior":"`+c.behavior+`","invert":`+jsonBool(c.invert)+`}`)
			if got := stepPieces(t, &step, c.text); !slices.Equal(got, c.want) {
				t.Errorf("%s, %s, invert %v: pieces of %q\n got %q\nwant %q", c.behavior, kind, c.invert, c.text, got, c.want)
			}
		}
	}
}

func jsonBool(b bool) string {
	if b {
		return "true"
	}
	return "false"
}

func parseStep(tb testing.TB, raw string) splitStep {
	tb.Helper()
	var tok Tokenizer
	if err := tok.parsePreTokenizer("pre_tokenizer", []byte(raw), 0); err != nil {
		tb.Fatal(err)
	}
	return tok.pre.splits[0]
}

func TestSplitEmptyMatchesAndWideCharacters(t *testing.T) {
	step := parseStep(t, `{"type":"Split","pattern":{"Regex":"x*"},"behavior":"Removed"}`)
	if got, want := stepPieces(t, &step, "éx😀xxa"), []string{"é", "😀", "a"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	step = parseStep(t, `{"type":"Split","pattern":{"Regex":"x*"},"behavior":"MergedWithNext"}`)
	if got, want := stepPieces(t, &step, "axb"), []string{"a", "xb"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q: the empty match after x is none", got, want)
	}
	step = parseStep(t, `{"type":"Split","pattern":{"Regex":"[é😀]+$"},"behavior":"Isolated"}`)
	if got, want := stepPieces(t, &step, "aé\nb😀"), []string{"a", "é", "\nb", "😀"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q: $ is the end of a line", got, want)
	}
}

// What the two dialects of expressions read differently is refused, what they read alike is not.
func TestPatternDialect(t *testing.T) {
	for _, pattern := range []string{
		`\h+`, `[[:alpha:]]`, `[a-z&&[^b]]`, `a{,3}`, `(?m:.)`, `(?<name>a)`, `\w+`, `\bx`, `[]a]`, `[^]a]`, `\Gx`, `\R`, `[\w]`,
	} {
		_, err := compilePattern("k", pattern)
		if unsupported := (*UnsupportedError)(nil); !errors.As(err, &unsupported) {
			t.Errorf("compilePattern(%q): got error %v, want an *UnsupportedError", pattern, err)
		}
	}
	for _, pattern := range []string{
		`(?=a)b(?!c)(?<=d)(?<!e)(?:f)(?i:g)(h)`, `[\[\]&]`, `a&&b`, `[^\s\p{L}]+`, `\P{N}{1,3}`, `\{,\(\?`, `^a$|.`, `[a-zA-Z\-]`,
	} {
		if _, err := compilePattern("k", pattern); err != nil {
			t.Errorf("compilePattern(%q): %v", pattern, err)
		}
	}
	for pattern := range knownPatterns {
		if pattern == patternKimi {
			continue // has a cutter because no other engine here reads it, see TestKimiPatternInJSON
		}
		if _, err := compilePattern("k", pattern); err != nil {
			t.Errorf("compilePattern(%q): %v", pattern, err)
		}
	}
	for _, pattern := range []string{`(`, `a{2}+`, `a**`, `[a`, `\p{Nonsense}`} {
		if _, err := compilePattern("k", pattern); err == nil {
			t.Errorf("compilePattern(%q): no error", pattern)
		}
	}
}
