package metal

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// declared are messages that darwinkit v0.5.0 has no bindings for, as Apple's headers declare them:
// result, then arguments, in the types of C.
var declared = map[string][]string{
	// MTLBuffer.h, macOS 13: @property (readonly) MTLGPUAddress / uint64_t gpuAddress
	"MTLBuffer gpuAddress": {"uint64_t"},
	// MTLDevice.h, macOS 15
	"MTLDevice newResidencySetWithDescriptor:error:": {"id", "id", "void *"},
	// MTLResidencySet.h, macOS 15
	"MTLResidencySet addAllocation:": {"void", "id"},
	// MTLResidencySet.h, macOS 15
	"MTLResidencySet removeAllocation:": {"void", "id"},
	// MTLResidencySet.h, macOS 15
	"MTLResidencySet commit": {"void"},
	// MTLCommandQueue.h, macOS 15
	"MTLCommandQueue addResidencySet:": {"void", "id"},
	"NSObject retain":                  {"id"},   // NSObject.h
	"NSObject release":                 {"void"}, // NSObject.h
	"NSObject new":                     {"id"},   // NSObject.h
}

// receivers says whom the messages of selectors_darwin.go are sent to.
var receivers = map[string]string{
	"newPipelineMessage": "MTLDevice", "newResidencySetMessage": "MTLDevice", "newMessage": "NSObject", "addAllocationMessage": "MTLResidencySet",
	"removeAllocationMessage": "MTLResidencySet", "commitAllocationsMessage": "MTLResidencySet", "addResidencySetMessage": "MTLCommandQueue",
}

// bindings are darwinkit's: "MTLDevice newFence" to result and arguments in the types of C.
func bindings(t *testing.T) map[string][]string {
	t.Helper()
	// Only macOS builds with darwinkit, so on other systems the module may not have been fetched.
	out, err := exec.Command("go", "mod", "download", "-json", "github.com/progrium/darwinkit").Output()
	var module struct{ Dir string }
	if err := errors.Join(err, json.Unmarshal(out, &module)); err != nil {
		t.Fatalf("where darwinkit lies: %v: %s", err, out)
	}
	all := map[string][]string{}
	for folder, prefix := range map[string]string{"metal": "MTL", "foundation": "NS"} {
		files, err := filepath.Glob(filepath.Join(module.Dir, "macos", folder, "*.gen.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("darwinkit has no bindings of %s: %v", folder, err)
		}
		var parsed []*ast.File
		for _, f := range files {
			p, err := parser.ParseFile(token.NewFileSet(), f, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			parsed = append(parsed, p)
		}
		numbers := numberTypes(parsed)
		for _, f := range parsed {
			for _, d := range f.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok {
					if key, types := binding(fn, prefix, numbers); key != "" {
						all[key] = types
					}
				}
			}
		}
	}
	if len(all) < 1000 {
		t.Fatalf("only %d methods were found in darwinkit's bindings", len(all))
	}
	return all
}

// numberTypes finds the types that are numbers: Go's name to C's.
func numberTypes(files []*ast.File) map[string]string {
	c := map[string]string{"uint": "NSUInteger", "int": "NSInteger", "uint64": "uint64_t", "bool": "BOOL", "float64": "double"}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.TypeSpec); ok {
				if id, ok := s.Type.(*ast.Ident); ok && c[id.Name] != "" {
					c[s.Name.Name] = c[id.Name]
				}
			}
			return true
		})
	}
	return c
}

// binding returns what a generated method binds: the first message that its body sends, to the
// receiver.
func binding(fn *ast.FuncDecl, prefix string, numbers map[string]string) (key string, types []string) {
	if fn.Recv == nil || fn.Body == nil {
		return "", nil
	}
	receiver, ok := fn.Recv.List[0].Type.(*ast.Ident)
	if !ok {
		return "", nil
	}
	selector := ""
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || selector != "" {
			return true
		}
		if f, ok := call.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Sel" {
			selector, _ = strconv.Unquote(call.Args[0].(*ast.BasicLit).Value)
		}
		return true
	})
	if selector == "" || strings.HasPrefix(fn.Name.Name, "Has") && fn.Type.Params.NumFields() == 0 {
		return "", nil
	}
	types = []string{"void"}
	if r := fn.Type.Results; r != nil {
		types[0] = cType(r.List[0].Type, numbers)
	}
	for _, p := range fn.Type.Params.List {
		for range max(1, len(p.Names)) {
			types = append(types, cType(p.Type, numbers))
		}
	}
	return prefix + strings.TrimSuffix(receiver.Name, "Object") + " " + selector, types
}

// cType is the type of C that a binding's type stands for.
func cType(e ast.Expr, numbers map[string]string) string {
	switch e := e.(type) {
	case *ast.Ident:
		if c := numbers[e.Name]; c != "" {
			return c
		}
		switch {
		case e.Name == "Size":
			return "MTLSize"
		case strings.HasSuffix(e.Name, "Handler"):
			return "void *"
		}
		return "id" // objects, and strings, which are NSString
	case *ast.SelectorExpr:
		switch e.Sel.Name {
		case "Pointer":
			return "void *"
		case "TimeInterval":
			return "double"
		}
		return "id"
	case *ast.FuncType, *ast.StarExpr:
		return "void *"
	}
	return "id"
}

var line = regexp.MustCompile(`MESSAGE\((\w+), (\w+), "([^"]+)", ([^,]+), \(id, SEL(?:, ([^)]*))?\)\)`)

// Every message that encode.c sends is one that darwinkit's bindings, or Apple's headers, have,
// with the types of its arguments and its result.
func TestMessages(t *testing.T) {
	text, err := os.ReadFile("messages.h")
	if err != nil {
		t.Fatal(err)
	}
	bound := bindings(t)
	used := map[string]bool{}
	found := line.FindAllStringSubmatch(string(text), -1)
	if want := strings.Count(string(text), "\n  MESSAGE("); len(found) != want {
		t.Fatalf("%d of %d lines of messages.h can be read", len(found), want)
	}
	for _, m := range found {
		key := m[1] + " " + m[3]
		got := []string{m[4]}
		if m[5] != "" {
			got = append(got, strings.Split(m[5], ", ")...)
		}
		holds(t, bound, used, key, got)
		if n := strings.Count(m[3], ":"); n != len(got)-1 {
			t.Errorf("%s has %d arguments, %d types are given", key, n, len(got)-1)
		}
	}
	names, sends := declaredMessages(t)
	for name, selector := range names {
		to, ok := receivers[name]
		if !ok {
			t.Errorf("the test does not know whom %s is sent to", name)
			continue
		}
		holds(t, bound, used, to+" "+selector, nil)
	}
	for _, s := range sends {
		if names[s] == "" && s != "message" {
			t.Errorf("system_darwin.go sends %s, which is not in selectors_darwin.go", s)
		}
	}
	for key := range declared {
		if !used[key] {
			t.Errorf("nobody sends %s", key)
		}
		if bound[key] != nil && !strings.HasPrefix(key, "NSObject") {
			t.Errorf("darwinkit has a binding of %s: take it out of the list", key)
		}
	}
}

// holds compares a message with what binds or declares it; types nil compares its name alone.
func holds(t *testing.T, bound map[string][]string, used map[string]bool, key string, types []string) {
	t.Helper()
	want, ok := declared[key]
	if ok {
		used[key] = true
	} else if want, ok = bound[key]; !ok {
		t.Errorf("neither darwinkit nor the list of what Apple's headers declare has %s", key)
		return
	}
	if types == nil {
		return
	}
	types = slices.Clone(types)
	for i, x := range types {
		if strings.HasSuffix(x, "*") { // Go's bindings do not tell pointers apart
			types[i] = "void *"
		}
	}
	if !slices.Equal(types, want) {
		t.Errorf("%s is sent with the types %q, its declaration has %q", key, types, want)
	}
}

// declaredMessages returns the constants of selectors_darwin.go, and what system_darwin.go gives to
// objc.Sel.
func declaredMessages(t *testing.T) (names map[string]string, sends []string) {
	t.Helper()
	names = map[string]string{}
	for _, file := range []string{"selectors_darwin.go", "system_darwin.go"} {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				if file == "selectors_darwin.go" && strings.HasSuffix(n.Names[0].Name, "Message") {
					names[n.Names[0].Name], _ = strconv.Unquote(n.Values[0].(*ast.BasicLit).Value)
				}
			case *ast.CallExpr:
				if f, ok := n.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Sel" {
					if id, ok := n.Args[0].(*ast.Ident); ok {
						sends = append(sends, id.Name)
					} else {
						t.Errorf("%s: objc.Sel of something that is no constant of selectors_darwin.go", file)
					}
				}
			}
			return true
		})
	}
	if len(sends) == 0 || len(names) == 0 {
		t.Errorf("%d messages in selectors_darwin.go, %d sent", len(names), len(sends))
	}
	return names, sends
}
