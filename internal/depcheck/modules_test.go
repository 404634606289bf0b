package depcheck

import (
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

// The modules within this one require what it has come to need. Their tests run in .ci/run alone.
func TestModulesWithin(t *testing.T) {
	root := os.DirFS("../..")
	tree, err := Scan(root)
	if err != nil {
		t.Fatal(err)
	}
	found, err := CheckModules(root, tree)
	if err != nil {
		t.Fatal(err)
	}
	for _, what := range found {
		t.Error(what)
	}
	if all, err := fs.Glob(root, "internal/*/go.mod"); err != nil || len(all) == 0 {
		t.Errorf("%d modules within, %v: nothing was checked", len(all), err)
	}
}

func TestCheckModules(t *testing.T) {
	const (
		ours   = "module ex.org/mod\n\ngo 1.26.1\n\nrequire (\n\tm.org/lib v1.10.0\n\tm.org/lib/v2 v2.0.0\n\tn.org/deep v1.0.0 // indirect\n)\n"
		theirs = "module ex.org/mod/internal/within\n\ngo 1.26.1\n\nrequire ex.org/mod v0.0.0\n"
	)
	for _, tc := range []struct {
		name, mod string
		imports   *fstest.MapFile // of a test of the module within
		want      []string
	}{
		{"another module", "module x\n\ngo 1.20\n", src("m.org/lib"), nil},
		{"nothing of others", theirs, src("fmt", "./b"), nil},
		{"all that is needed", theirs + "require m.org/lib v1.10.0\n", src("./a"), nil},
		{"later than ours", theirs + "require m.org/lib v1.11.0\nrequire n.org/deep v1.0.1\n", src("./a"), nil},
		{"lacking, through a package", theirs, src("./a"), []string{"within/go.mod lacks m.org/lib: run (cd internal/within && go mod tidy)"}},
		{"lacking, through two", theirs, src("./c"), []string{"lacks m.org/lib:"}},
		{"lacking, through the root", theirs, src("ex.org/mod"), []string{"lacks m.org/lib/v2:"}},
		{"earlier than ours", theirs + "require m.org/lib v1.9.0\n", src("./a"), []string{"has m.org/lib v1.9.0, and this module v1.10.0"}},
		{"an indirect one earlier", theirs + "require n.org/deep v0.9.0\n", src("./b"), []string{"has n.org/deep v0.9.0"}},
		{"an earlier Go", strings.Replace(theirs, "1.26.1", "1.26.0", 1), src("./b"), []string{"is for go1.26.0, and this module for go1.26.1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fsys := fstest.MapFS{
				"go.mod": raw(ours), "root.go": raw("package mod\nimport _ \"m.org/lib/v2/sub\"\n"), "a/a.go": src("m.org/lib/sub"), "b/b.go": src("fmt"), "c/c.go": src("./a"),
				"internal/within/go.mod": raw(tc.mod), "internal/within/deep/x_test.go": tc.imports,
			}
			tree, err := Scan(fsys)
			if err != nil {
				t.Fatal(err)
			}
			got, err := CheckModules(fsys, tree)
			if err != nil || len(got) != len(tc.want) {
				t.Fatalf("got %q, %v, want %q", got, err, tc.want)
			}
			for i, want := range tc.want {
				if !strings.Contains(got[i], want) {
					t.Errorf("got %q, want %q", got[i], want)
				}
			}
		})
	}
}

func TestCheckModulesErrors(t *testing.T) {
	for _, tc := range []struct{ name, file, text, want string }{
		{"a go.mod that is none", "internal/within/go.mod", "modul x", "internal/within/go.mod:1"},
		{"a file that is no Go", "internal/within/a.go", "pakkage a", "internal/within/a.go:1"},
	} {
		fsys := fstest.MapFS{"go.mod": raw("module ex.org/mod\n"), "internal/within/go.mod": raw("module x\nrequire ex.org/mod v0.0.0\n")}
		fsys[tc.file] = raw(tc.text)
		if _, err := CheckModules(fsys, &Tree{Module: "ex.org/mod"}); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want it to say %q", tc.name, err, tc.want)
		}
	}
}
