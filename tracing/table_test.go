package tracing

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"
)

// The documentation has the table of attributes as the code has it.
func TestTheTableIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/trace.md")
	if err != nil {
		t.Fatal(err)
	}
	table := strings.Join(Table(), "\n") + "\n"
	if !strings.Contains(string(text), "\n"+table) {
		t.Errorf("docs/trace.md does not have this table:\n%s", table)
	}
	if !strings.Contains(string(text), "conventions for generative AI, version "+Conventions) {
		t.Errorf("docs/trace.md does not say that the conventions are of version %s", Conventions)
	}
	for _, s := range spanNames(t) {
		if !strings.Contains(string(text), "| `"+s+"` |") {
			t.Errorf("docs/trace.md does not list the span %s", s)
		}
	}
}

// Every key is in the table once, and every span that the table names exists.
func TestTheTableIsWhole(t *testing.T) {
	constants := constantsOf(t, "Key")
	if len(constants) != len(Attributes) {
		t.Errorf("%d keys, and the table has %d: %v", len(constants), len(Attributes), constants)
	}
	seen := map[string]bool{}
	for _, a := range Attributes {
		if seen[string(a.Key)] || a.Key == "" || len(a.Spans) == 0 {
			t.Errorf("%q is listed twice, or for no span", a.Key)
		}
		seen[string(a.Key)] = true
		for _, s := range a.Spans {
			if s != spanCall && !slices.Contains(spanNames(t), s) {
				t.Errorf("%s is said to be of spans %q, which do not exist", a.Key, s)
			}
		}
	}
}

func spanNames(t *testing.T) []string {
	names := []string{SpanEval, SpanStep, SpanLayer, SpanMix, SpanRoute, SpanExpertIO, SpanExperts, SpanRetire, SpanPrefetch, SpanRead, SpanAway, SpanHead, SpanWait, SpanSequence}
	if got := len(constantsOf(t, "Span")); got != len(names) {
		t.Fatalf("%d names of spans, and the test knows %d", got, len(names))
	}
	return names
}

// constantsOf returns the constants of keys.go that begin with a word.
func constantsOf(t *testing.T, word string) (names []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "keys.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(v.Names[0].Name, word) {
			names = append(names, v.Names[0].Name)
		}
		return true
	})
	return names
}
