package stages_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocNamesEveryMessage checks that doc.go has a line for each message type, and no line for a
// type that is gone.
func TestDocNamesEveryMessage(t *testing.T) {
	types, doc := parse(t)
	lines := make(map[string]bool)
	for _, l := range strings.Split(doc, "\n") {
		if m := regexp.MustCompile(`^\t([A-Z][A-Za-z]+)(?: +\S.* -> |$)`).FindStringSubmatch(l); m != nil {
			lines[m[1]] = true
		}
	}
	n := 0
	for name, message := range types {
		if message {
			n++
			if !lines[name] {
				t.Errorf("message %s has no line in doc.go", name)
			}
		}
	}
	for name := range lines {
		if !types[name] {
			t.Errorf("doc.go has a line for %s, which is not a message", name)
		}
	}
	if n < 40 {
		t.Errorf("found %d message types; the test looks for structs that embed Step or Outside", n)
	}
}

// parse returns the package's types, whether each is a message, and the package's documentation.
func parse(t *testing.T) (types map[string]bool, doc string) {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	types = make(map[string]bool)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if name == "doc.go" {
			doc = f.Doc.Text()
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.TypeSpec); ok {
				types[s.Name.Name] = isMessage(s.Type)
			}
			return true
		})
	}
	return types, doc
}

// isMessage reports whether a type is a struct that embeds Step or Outside.
func isMessage(e ast.Expr) bool {
	s, ok := e.(*ast.StructType)
	if !ok {
		return false
	}
	for _, f := range s.Fields.List {
		if id, ok := f.Type.(*ast.Ident); ok && len(f.Names) == 0 && (id.Name == "Step" || id.Name == "Outside") {
			return true
		}
	}
	return false
}
