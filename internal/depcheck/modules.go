package depcheck

import (
	"fmt"
	"go/parser"
	"go/token"
	"go/version"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// CheckModules returns a sorted line for each module within this one that go vet would refuse to
// load, since it does not require what this module has come to need: one that go mod tidy mends.
// Only modules that require this one count.
func CheckModules(fsys fs.FS, t *Tree) ([]string, error) {
	ours, err := readMod(fsys, "go.mod")
	if err != nil {
		return nil, err
	}
	within, err := fs.Glob(fsys, "*/*/go.mod")
	if err != nil {
		return nil, err
	}
	var found []string
	for _, file := range within {
		theirs, err := readMod(fsys, file)
		if err != nil {
			return nil, err
		}
		if theirs.requires[t.Module] == "" {
			continue
		}
		imports, err := foreign(fsys, t, path.Dir(file))
		if err != nil {
			return nil, err
		}
		for _, what := range theirs.lacks(ours, imports) {
			found = append(found, fmt.Sprintf("%s %s: run (cd %s && go mod tidy)", file, what, path.Dir(file)))
		}
	}
	slices.Sort(found)
	return found, nil
}

// mod is what a go.mod says.
type mod struct {
	goVersion string
	requires  map[string]string // versions by module
}

func readMod(fsys fs.FS, name string) (*mod, error) {
	text, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, fmt.Errorf("depcheck: %w", err)
	}
	f, err := modfile.Parse(name, text, nil)
	if err != nil {
		return nil, fmt.Errorf("depcheck: %w", err)
	}
	m := &mod{requires: map[string]string{}}
	if f.Go != nil {
		m.goVersion = "go" + f.Go.Version
	}
	for _, r := range f.Require {
		m.requires[r.Mod.Path] = r.Mod.Version
	}
	return m, nil
}

// lacks says what a module that depends on ours, and reaches these packages of others, lacks of
// what ours requires.
func (m *mod) lacks(ours *mod, imports set) (what []string) {
	if version.Compare(m.goVersion, ours.goVersion) < 0 {
		what = append(what, fmt.Sprintf("is for %s, and this module for %s", m.goVersion, ours.goVersion))
	}
	reached := set{}
	for p := range imports {
		if module := ours.provider(p); module != "" && m.requires[module] == "" {
			reached[module] = true
		}
	}
	for module := range reached {
		what = append(what, "lacks "+module)
	}
	for module, v := range ours.requires {
		if has := m.requires[module]; has != "" && semver.Compare(has, v) < 0 {
			what = append(what, fmt.Sprintf("has %s %s, and this module %s", module, has, v))
		}
	}
	return what
}

// provider returns the module with the longest name that a package's path begins with, or "".
func (m *mod) provider(pkg string) (module string) {
	for name := range m.requires {
		if len(name) > len(module) && strings.HasPrefix(pkg+"/", name+"/") {
			module = name
		}
	}
	return module
}

// foreign returns the packages of other modules that the module in dir imports through packages of
// ours, whatever the system.
func foreign(fsys fs.FS, t *Tree, dir string) (set, error) {
	todo, err := folderImports(fsys, dir)
	if err != nil {
		return nil, err
	}
	out, seen := set{}, set{}
	for len(todo) > 0 {
		p := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[p] {
			continue
		}
		seen[p] = true
		rest, isOurs := strings.CutPrefix(p+"/", t.Module+"/")
		if !isOurs {
			out[p] = true
			continue
		}
		if rest = strings.TrimSuffix(rest, "/"); rest == "" {
			rest = t.Root
		}
		for _, imp := range t.Packages[rest] {
			todo = append(todo, imp.Path)
		}
	}
	return out, nil
}

// folderImports returns what the .go files of a folder and of those below import, tests included.
func folderImports(fsys fs.FS, dir string) ([]string, error) {
	all := set{}
	err := fs.WalkDir(fsys, dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") {
			return err
		}
		src, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, src, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range f.Imports {
			p, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			all[p] = true
		}
		return nil
	})
	return slices.Collect(maps.Keys(all)), err
}
