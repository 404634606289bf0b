package depcheck

import (
	"errors"
	"fmt"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// Tree is the packages and folders of a module.
type Tree struct {
	Module string // the module's path
	// by path relative to the module; all with a .go file that is no test. That at the module's
	// root goes by its own name, Root.
	Packages map[string][]Import
	// at the top; hidden ones and those that .gitignore names are left out
	Folders []string
	Root    string // "" for none
}

// Import is one import in one file that is not a test.
type Import struct {
	File string // relative to the module
	Line int
	Path string
}

// Scan reads the tree of the module whose root is fsys.
func Scan(fsys fs.FS) (*Tree, error) {
	t := &Tree{Packages: map[string][]Import{}}
	mod, err := fs.ReadFile(fsys, "go.mod")
	if err != nil {
		return nil, fmt.Errorf("depcheck: this is not a module: %w", err)
	}
	for line := range strings.Lines(string(mod)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "module "); ok {
			t.Module = strings.Trim(name, `" `)
			break
		}
	}
	if t.Module == "" {
		return nil, fmt.Errorf("depcheck: go.mod names no module")
	}
	ignored, err := ignoredFolders(fsys)
	if err != nil {
		return nil, err
	}
	err = fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return t.enter(fsys, name, ignored)
		case strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go"):
			return t.file(fsys, name)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("depcheck: reading the module: %w", err)
	}
	return t, nil
}

// ignoredFolders returns the folders at the top that .gitignore names as "/name/".
func ignoredFolders(fsys fs.FS) (set, error) {
	text, err := fs.ReadFile(fsys, ".gitignore")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("depcheck: %w", err)
	}
	out := set{}
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutSuffix(strings.TrimSpace(line), "/"); ok && strings.HasPrefix(name, "/") {
			out[name[1:]] = true
		}
	}
	return out, nil
}

// enter reports whether to go into a folder.
func (t *Tree) enter(fsys fs.FS, name string, ignored set) error {
	if name == "." {
		return nil
	}
	base := path.Base(name)
	if base[0] == '.' || base[0] == '_' || base == "testdata" && name != base || ignored[name] {
		return fs.SkipDir
	}
	if name == base {
		t.Folders = append(t.Folders, name)
	}
	if _, err := fs.Stat(fsys, name+"/go.mod"); err == nil {
		return fs.SkipDir
	}
	return nil
}

// file adds the imports of one file to its package.
func (t *Tree) file(fsys fs.FS, name string) error {
	src, err := fs.ReadFile(fsys, name)
	if err != nil {
		return err
	}
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, src, parser.ImportsOnly|parser.ParseComments)
	if err != nil {
		return err
	}
	for _, group := range f.Comments {
		for _, c := range group.List {
			if c.Pos() > f.Package || !constraint.IsGoBuild(c.Text) {
				continue
			}
			if expr, err := constraint.Parse(c.Text); err == nil && expr.String() == "ignore" {
				return nil
			}
		}
	}
	pkg := path.Dir(name)
	if pkg == "." {
		pkg = f.Name.Name
		t.Root = pkg
	}
	imports := t.Packages[pkg]
	if imports == nil {
		imports = []Import{}
	}
	for _, spec := range f.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return fmt.Errorf("%s: %w", fset.Position(spec.Pos()), err)
		}
		imports = append(imports, Import{File: name, Line: fset.Position(spec.Pos()).Line, Path: p})
	}
	t.Packages[pkg] = imports
	return nil
}
