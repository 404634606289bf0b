package gpu

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestKinds wants of the source that the constants Kind… and the operations are the same, one to
// one, that no two operations have one name, and that devices are tested with each.
func TestKinds(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	kinds, names := map[string]string{}, map[string]string{} // the operation of each
	for _, e := range files {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), e.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			m, ok := d.(*ast.FuncDecl)
			if !ok || m.Recv == nil || m.Name.Name != "Kind" && m.Name.Name != "Name" {
				continue
			}
			star, ok := m.Recv.List[0].Type.(*ast.StarExpr)
			if !ok {
				t.Fatalf("%s: %s has a receiver that is not a pointer", e.Name(), m.Name.Name)
			}
			op, all, value := star.X.(*ast.Ident).Name, kinds, ""
			switch r := m.Body.List[0].(*ast.ReturnStmt).Results[0].(type) {
			case *ast.Ident:
				value = r.Name
				if value != "Kind"+op {
					t.Errorf("%s is of the kind %s", op, value)
				}
			case *ast.BasicLit:
				value, all = r.Value, names
			}
			if other := all[value]; other != "" {
				t.Errorf("%s and %s share %s", other, op, value)
			}
			all[value] = op
		}
	}
	if len(kinds) != NumKinds || len(names) != NumKinds {
		t.Errorf("%d operations with a kind and %d with a name, want NumKinds = %d", len(kinds), len(names), NumKinds)
	}
	cases := sources(t, "gputest")
	for _, op := range kinds {
		if !strings.Contains(cases, "gpu."+op+"{") {
			t.Errorf("package gputest has no case of %s", op)
		}
	}
}

// sources returns the text of a directory's Go files.
func sources(t *testing.T, dir string) string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no Go files in %s: %v", dir, err)
	}
	var all strings.Builder
	for _, p := range paths {
		text, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}
