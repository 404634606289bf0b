package depcheck

import (
	_ "embed"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

//go:embed rules.txt
var rulesText string

func mustParse(t *testing.T, text string) *Rules {
	t.Helper()
	r, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// This module keeps to its rules.
func TestModule(t *testing.T) {
	rules := mustParse(t, rulesText)
	tree, err := Scan(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	if len(tree.Packages["internal/depcheck"]) == 0 {
		t.Fatalf("the scan of %s did not even find this package", tree.Module)
	}
	for _, v := range Check(tree, rules) {
		t.Error(v)
	}
}

// The rules mean what they should: a few arrows that must and must not exist.
func TestRulesText(t *testing.T) {
	r := mustParse(t, rulesText)
	for _, tc := range []struct {
		from, to string
		ok       bool
	}{
		{"actors", "stages/sequencer", true},
		{"actors", "stages", true},
		{"actors", "gpu", true},
		{"actors", "gpu/host", false},
		{"actors", "actors/runtime", true},
		{"actors/runtime", "gpu", false},
		{"actors/runtime", "actors/expertmem", false},
		{"actors/expertmem", "actors/runtime", false},
		{"actors/metering", "actors/runtime", false},
		{"cmd/moeflux-actor", "actors/runtime", false},
		{"actors", "tracing/export", false},
		{"actors", "io/convert", true},
		{"actors", "tokenizer", false},
		{"actors", "stages/stagetest", false},
		{"stages/router", "gpu", false},
		{"stages/dispatch", "gpu", true},
		{"stages/router", "stages/combine", false},
		{"stages/sequencer", "stages/pages", true},
		{"actors", "stages/pages", false},
		{"io/weights", "model", true},
		{"io/expertfile", "gpu", false},
		{"io/readpool", "model", false},
		{"gpu", "model/quant", true},
		{"gpu", "model", false},
		{"tracing/export", "tracing", true},
		{"tracing/export", "stages", false},
		{"tracing", "actors", false},
		{"cmd/moeflux-actor", "stages/router", true},
		{"tokenizer", "model", false},
		{"server", "moeflux", true},
		{"server", "actors", false},
		{"server", "gpu/host", false},
		{"moeflux", "actors", true},
		{"moeflux", "gpu/cuda", false},
		{"moeflux", "server", false},
		{"actors", "moeflux", false},
		{"cmd/moeflux-actor", "moeflux", true},
		{"server", "stages", false},
	} {
		if ok := r.may[tc.from][tc.to] && !r.never[tc.from][tc.to]; ok != tc.ok {
			t.Errorf("%s may import %s: %v, want %v", tc.from, tc.to, ok, tc.ok)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		want       []string // parts of the error
	}{
		{"a cycle of arrows", "a < b < c; c < a;", []string{"cycle: a imports c imports b imports a"}},
		{"a package below itself", "a < a;", []string{"cycle"}},
		{"no semicolon", "a < b", []string{`"a < b"`, "semicolon"}},
		{"no arrow", "a, b;", []string{`"a, b"`, "nothing"}},
		{"an empty name", "a,, b < c;", []string{`"" is not a package name`}},
		{"two words", "a b < c;", []string{`"a b" is not a package name`}},
		{"an undeclared importer of a module", "a < b; module m.org/x: d;", []string{"package d is not declared"}},
		{"an undeclared ban", "a < b; d !< a;", []string{"package d is not declared"}},
		{"a glob over nothing", "a < b; x/* < b;", []string{"below x"}},
		{"a module without packages", "a < b; module m.org/x;", []string{"module path: packages"}},
		{"a folder path", "folders a/b;", []string{`"a/b" is not a folder name`}},
		{"two errors", "a b < c; d !< c;", []string{`"a b"`, "package d"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Parse(tc.text)
			for _, want := range tc.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("rules %q: error %v, want it to say %s", tc.text, err, want)
				}
			}
		})
	}
}

const testRules = `
	NONE < a, b;               # a comment; with a semicolon
	a, b < c < d;
	a, x/y, x/z < e;
	x/* < f;  x/z !< f;
	a, b, missing < d;         # missing need not exist
	module m.org/lib: a;
	module m.org/lib/deep: b;
	module C: e;
	folders a, b, c, d, e, f, x;
	nogo x;
`

// src returns a file that imports these paths; our own packages go by their short names.
func src(imports ...string) *fstest.MapFile {
	var b strings.Builder
	b.WriteString("package p\n")
	for _, i := range imports {
		if name, ours := strings.CutPrefix(i, "./"); ours {
			i = "ex.org/mod/" + name
		}
		b.WriteString("import _ \"" + i + "\"\n")
	}
	return &fstest.MapFile{Data: []byte(b.String())}
}

func raw(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

func TestCheck(t *testing.T) {
	for _, tc := range []struct {
		name string
		tree fstest.MapFS
		want []string // parts of the violations, in order
	}{
		{"nothing yet", nil, nil},
		{"all as it should be", fstest.MapFS{
			"a/a.go": src("fmt", "m.org/lib", "m.org/lib/sub"), "b/b.go": src("m.org/lib/deep/er"), "c/c.go": src("./a", "./b"),
			"d/d.go": src("./a", "./c"), "e/e.go": src("C", "./x/y"), "f/f.go": src("./x/y"), "x/y/y.go": src(), "x/z/z.go": src(),
		}, nil},
		{"a violation", fstest.MapFS{"a/a.go": src("fmt", "./b")}, []string{"a/a.go:3: a imports ex.org/mod/b, which no arrow allows"}},
		{"against the arrow", fstest.MapFS{"a/a.go": src("./c")}, []string{"a imports ex.org/mod/c"}},
		{"banned in spite of an arrow", fstest.MapFS{"f/f.go": src("./x/z")}, []string{"which it must never"}},
		{"whatever the system", fstest.MapFS{"a/a_plan9.go": raw("//go:build plan9\n\npackage p\nimport _ \"ex.org/mod/b\"\n")}, []string{"a/a_plan9.go:4"}},
		{"a cycle", fstest.MapFS{"a/a.go": src("./c"), "c/c.go": src("./a")}, []string{"a imports ex.org/mod/c", "an import cycle: a imports c imports a"}},
		{"a package in no rule", fstest.MapFS{"a/new/n.go": src()}, []string{"a/new: the package is in no rule"}},
		{"a package at the root", fstest.MapFS{"main.go": src()}, []string{"p: the package is in no rule"}},
		{"the root imported", fstest.MapFS{"a/a.go": src("ex.org/mod")}, []string{"a imports ex.org/mod,"}},
		{"the root by its name", fstest.MapFS{"a.go": raw("package b\n"), "c/c.go": src("ex.org/mod")}, nil},
		{"a module of others elsewhere", fstest.MapFS{"b/b.go": src("m.org/lib")}, []string{"only these may import m.org/lib: a"}},
		{"the longer prefix counts", fstest.MapFS{"a/a.go": src("m.org/lib/deep")}, []string{"only these may import m.org/lib/deep: b"}},
		{"a name that only begins the same", fstest.MapFS{"a/a.go": src("m.org/library")}, []string{"no rule names"}},
		{"our name as a prefix", fstest.MapFS{"a/a.go": src("ex.org/module/b")}, []string{"no rule names"}},
		{"a module without a rule", fstest.MapFS{"a/a.go": src("n.org/x")}, []string{"n.org/x, which is of a module that no rule names"}},
		{"cgo elsewhere", fstest.MapFS{"a/a.go": src("C")}, []string{"only these may import C: e"}},
		{"a file in a bare folder", fstest.MapFS{"x/x.go": src()}, []string{"x/: a .go file lies in it"}},
		{"a folder at the top", fstest.MapFS{"util/readme.txt": raw("")}, []string{"util/: a folder at the top"}},
		{"testdata at the top", fstest.MapFS{"testdata/x.txt": raw("")}, []string{"testdata/: a folder at the top"}},
		{"what is exempt", fstest.MapFS{
			"a/a_test.go": src("./b", "n.org/x"), "a/testdata/t.go": raw("not go"), "a/.hidden/h.go": raw("not go"), ".ci/run": raw(""),
			"a/_old/o.go": raw("not go"), "a/gen/go.mod": raw("module gen"), "a/gen/g.go": src("n.org/x"), "bin/moeflux": raw(""),
			"a/gen.go": raw("//go:build ignore\n\npackage main\nimport _ \"n.org/x\"\n"), ".gitignore": raw("/bin/\n*.prof\n"),
		}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tree := fstest.MapFS{"go.mod": raw("module ex.org/mod\n\ngo 1.26\n")}
			for name, f := range tc.tree {
				tree[name] = f
			}
			scanned, err := Scan(tree)
			if err != nil {
				t.Fatal(err)
			}
			got := Check(scanned, mustParse(t, testRules))
			if len(got) != len(tc.want) {
				t.Fatalf("got %d violations %q, want %d: %q", len(got), got, len(tc.want), tc.want)
			}
			for _, want := range tc.want {
				if !strings.Contains(strings.Join(got, "\n"), want) {
					t.Errorf("got %q, want %q", got, want)
				}
			}
		})
	}
}

func TestScanErrors(t *testing.T) {
	for _, tc := range []struct {
		name string
		tree fstest.MapFS
		want string
	}{
		{"no go.mod", fstest.MapFS{}, "not a module"},
		{"go.mod without a name", fstest.MapFS{"go.mod": raw("go 1.26\n")}, "names no module"},
		{"a file that is no Go", fstest.MapFS{"go.mod": raw("module m"), "a/a.go": raw("pakkage a")}, "a/a.go:1"},
	} {
		if _, err := Scan(tc.tree); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want it to say %q", tc.name, err, tc.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(rulesText)
	f.Add(testRules)
	f.Add("a < b; module x: a; a !< a; /* < NONE;")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := Parse(text)
		if err == nil {
			Check(&Tree{Module: "m", Packages: map[string][]Import{"a": {{"a/a.go", 1, "m/b"}}}}, r)
		}
	})
}

// Files that must appear whole are made by internal/durable alone, which honours the umask and
// syncs the folder.
func TestOneDurableWriter(t *testing.T) {
	seen := 0
	err := fs.WalkDir(os.DirFS("../.."), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "/testdata/") {
			return err
		}
		text, err := os.ReadFile("../../" + path)
		for _, call := range []string{"os.Rename(", "os.CreateTemp(", "unix.Rename"} {
			switch found := strings.Contains(string(text), call); {
			case found && strings.HasPrefix(path, "internal/durable/"):
				seen++
			case found:
				t.Errorf("%s calls %s…): use internal/durable", path, call)
			}
		}
		return err
	})
	if err != nil || seen == 0 {
		t.Errorf("%v; %d calls in internal/durable", err, seen)
	}
}
