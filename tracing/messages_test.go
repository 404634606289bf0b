package tracing

import (
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"path/filepath"
	"testing"
)

// stepMessages returns the names of the message types of package stages that embed Step.
func stepMessages(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob("../stages/*messages.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		f, err := parser.ParseFile(gotoken.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok && len(s.Fields.List) > 0 {
				first := s.Fields.List[0]
				if id, ok := first.Type.(*ast.Ident); ok && len(first.Names) == 0 && id.Name == "Step" {
					names = append(names, spec.Name.Name)
				}
			}
			return true
		})
	}
	if len(names) < 15 {
		t.Fatalf("found %d messages of a step: %v", len(names), names)
	}
	return names
}
