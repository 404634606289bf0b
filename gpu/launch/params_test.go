package launch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu/msl"
	"github.com/moeflux/moeflux-actor/shaders"
)

// number is a number of a struct, inner structs and arrays unfolded.
type number struct {
	name   string // as Go has it: "gate.codes", "set[1].xRow"; "_" is not looked at
	typ    string // Go's; a pointer is a uint64
	offset int
}

func (n number) String() string { return fmt.Sprintf("%s %s at %d", n.name, n.typ, n.offset) }

// padding is what kernels call numbers that they do not look at.
const padding = "pad"

// structOf is the layout of a struct: its numbers in order, and its size and alignment in bytes.
type structOf struct {
	numbers     []number
	size, align int
}

// add appends a field.
func (s *structOf) add(name string, f structOf) {
	s.size = (s.size + f.align - 1) / f.align * f.align
	for _, n := range f.numbers {
		path := name
		if n.name != "" && n.name[0] != '[' {
			path += "."
		}
		s.numbers = append(s.numbers, number{path + n.name, n.typ, s.size + n.offset})
	}
	s.size, s.align = s.size+f.size, max(s.align, f.align)
}

// end rounds the size.
func (s *structOf) end() { s.size = (s.size + s.align - 1) / max(s.align, 1) * max(s.align, 1) }

func scalar(typ string, size int) structOf { return structOf{[]number{{"", typ, 0}}, size, size} }

// kernelStructs are the layouts of the structs of a kernel's text, as C++ lays them out. Fields
// that are no numbers, pointers, or structs of these make a struct that is left out: none is a
// parameter.
func kernelStructs(text string, defines map[string]int) map[string]structOf {
	known := map[string]structOf{"uint": scalar("uint32", 4), "u32": scalar("uint32", 4), "int": scalar("int32", 4), "float": scalar("float32", 4),
		"ulong": scalar("uint64", 8), "u64": scalar("uint64", 8)}
	text = regexp.MustCompile(`//[^\n]*`).ReplaceAllString(text, "")
	field := regexp.MustCompile(`^(?:const\s+)?(\w+)\s*(.*)$`)
	name := regexp.MustCompile(`^(\*?)\s*(\w+)(?:\[(\w+)\])?$`)
	all := map[string]structOf{}
	for _, m := range regexp.MustCompile(`(?s)struct (\w+) \{(.*?)\n\};`).FindAllStringSubmatch(text, -1) {
		var s structOf
		whole := true
		for decl := range strings.SplitSeq(m[2], ";") {
			decl = regexp.MustCompile(`\b(device|constant)\s`).ReplaceAllString(strings.TrimSpace(decl), "")
			f := field.FindStringSubmatch(decl)
			if f == nil {
				continue
			}
			typ, rest := f[1], f[2]
			for declarator := range strings.SplitSeq(rest, ",") {
				d := name.FindStringSubmatch(strings.TrimSpace(declarator))
				inner, ok := known[typ]
				if d != nil && d[1] == "*" || strings.HasPrefix(rest, "*") {
					inner, ok = scalar("uint64", 8), true
				}
				if d == nil || !ok {
					whole = false
					break
				}
				if d[3] == "" {
					s.add(goName(d[2]), inner)
					continue
				}
				count, err := strconv.Atoi(d[3])
				if err != nil {
					count, ok = defines[d[3]]
					whole = whole && ok
				}
				for i := range count {
					s.add(fmt.Sprintf("%s[%d]", goName(d[2]), i), inner)
				}
			}
		}
		if s.end(); whole {
			known[m[1]], all[m[1]] = s, s
		}
	}
	return all
}

// goName is the name that a field has in Go: x_row is xRow.
func goName(s string) string {
	return regexp.MustCompile(`_(\w)`).ReplaceAllStringFunc(s, func(m string) string { return strings.ToUpper(m[1:]) })
}

// goStructs are the layouts of this package's structs of numbers.
func goStructs(t *testing.T) map[string]structOf {
	t.Helper()
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, p := range paths {
		if strings.HasSuffix(p, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, p, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	// Other packages are not read, and nothing of them is a parameter.
	conf := types.Config{IgnoreFuncBodies: true, Error: func(error) {}}
	pkg, _ := conf.Check("launch", fset, files, nil)
	all := map[string]structOf{}
	for _, name := range pkg.Scope().Names() {
		if typ, ok := pkg.Scope().Lookup(name).(*types.TypeName); ok {
			if s, ok := layoutOf(typ.Type()); ok {
				all[name] = s
			}
		}
	}
	return all
}

// layoutOf is the layout of a type of numbers, as Go lays it out on machines of 64 bits.
func layoutOf(typ types.Type) (s structOf, ok bool) {
	switch u := typ.Underlying().(type) {
	case *types.Basic:
		size, ok := map[string]int{"uint32": 4, "int32": 4, "float32": 4, "uint64": 8}[u.Name()]
		return scalar(u.Name(), size), ok
	case *types.Array:
		inner, ok := layoutOf(u.Elem())
		if !ok {
			return s, false
		}
		for i := range int(u.Len()) {
			s.add(fmt.Sprintf("[%d]", i), inner)
		}
		return s, true
	case *types.Struct:
		for f := range u.Fields() {
			inner, ok := layoutOf(f.Type())
			if !ok {
				return s, false
			}
			s.add(f.Name(), inner)
		}
		s.end()
		return s, true
	}
	return s, false
}

// compare wants a struct of a kernel and the one that mirrors it to have the same numbers at the
// same places.
func compare(t *testing.T, kernel string, want structOf, mirror string, got structOf, known bool) {
	t.Helper()
	if !known {
		t.Errorf("%s: the package has no struct %s of numbers", kernel, mirror)
		return
	}
	if got.size != want.size || len(got.numbers) != len(want.numbers) {
		t.Errorf("%s has %d numbers in %d bytes, %s %d in %d", kernel, len(want.numbers), want.size, mirror, len(got.numbers), got.size)
		return
	}
	for i, w := range want.numbers {
		g := got.numbers[i]
		if w.name == padding || strings.HasSuffix(w.name, "."+padding) {
			g.name = w.name
		}
		if g != w {
			t.Errorf("%s: %v is %v in %s", kernel, w, g, mirror)
		}
	}
}

// byDevice are structs that only kernels write and read, and the pages, which Go has as addresses.
var byDevice = []string{"ExpertJob", "Page"}

// TestParameters compares each struct that a kernel is given with the one of its name in this
// package. AddParams of the shaders is addParams here, and x_row is xRow.
func TestParameters(t *testing.T) {
	modules, err := Modules()
	if err != nil {
		t.Fatal(err)
	}
	files, err := shaders.Files()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]structOf{}
	for _, f := range files {
		text, err := shaders.Read(f)
		if err != nil {
			t.Fatal(err)
		}
		for name, s := range kernelStructs(text, map[string]int{"SETS": headSets}) {
			if old, ok := all[name]; ok && !reflect.DeepEqual(old, s) {
				t.Errorf("%s: a second struct %s, with other numbers", f, name)
			}
			all[name] = s
		}
	}
	mine, seen := goStructs(t), map[string]bool{}
	for _, m := range modules {
		for _, k := range m.Kernels {
			for _, a := range k.Args {
				if seen[a.Type] || a.Kind == msl.Buffer && strings.ToLower(a.Type) == a.Type || slices.Contains(byDevice, a.Type) {
					continue
				}
				seen[a.Type] = true
				want, ok := all[a.Type]
				if !ok {
					t.Errorf("%s: %s is no struct of numbers", k.Name, a.Type)
					continue
				}
				mirror := strings.ToLower(a.Type[:1]) + a.Type[1:]
				compare(t, a.Type, want, mirror, mine[mirror], mine[mirror].size > 0)
			}
		}
	}
	if len(seen) < 30 {
		t.Errorf("kernels are given %d structs, want 30 at least", len(seen))
	}
}

// TestLimbParameters does the same for the kernels of limbs.
func TestLimbParameters(t *testing.T) {
	mine := goStructs(t)
	for _, c := range []struct{ file, name, mirror string }{
		{"limbs_split.cu", "SplitParams", "limbSplitParams"},
		{"parts.cu", "PartParams", "limbPartParams"},
		{"parts.cu", "MatMulParams", "limbMatMulParams"}, // what comes before the parts
		{"limbs.cu", "ExpertWeights", "expertWeights"},
		{"limbs.cu", "ExpertParams", "limbExpertParams"},
	} {
		text, err := os.ReadFile(filepath.Join("..", "cuda", "override", c.file))
		if err != nil {
			t.Fatal(err)
		}
		want, ok := kernelStructs(string(text), map[string]int{"PARTS": 0})[c.name]
		if !ok {
			t.Errorf("%s: %s is no struct of numbers", c.file, c.name)
			continue
		}
		compare(t, c.name, want, c.mirror, mine[c.mirror], mine[c.mirror].size > 0)
	}
}
