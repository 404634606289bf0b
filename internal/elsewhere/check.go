package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"

	"github.com/moeflux/moeflux-actor/internal/darwincheck"
)

// config says what is checked.
type config struct {
	dir          string // inside the module
	goos, goarch string
	patterns     []string          // of packages, none for all
	overlay      map[string][]byte // texts in place of files
}

// result is what a check found.
type result struct {
	checked  int      // packages
	leftOut  []string // packages that need cgo, or depend on one that does
	findings []string
}

// needs are the parts of a package that analyzers ask for.
const needs = packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedDeps |
	packages.NeedTypes | packages.NeedTypesInfo | packages.NeedTypesSizes | packages.NeedSyntax | packages.NeedModule

// check loads the packages as on the other system, without cgo, and looks at them.
func check(c config) (*result, error) {
	root, err := filepath.Abs(c.dir)
	if err != nil {
		return nil, err
	}
	root += string(filepath.Separator)
	load := &packages.Config{
		Mode: needs, Dir: c.dir, Tests: true, Overlay: c.overlay,
		Env: append(os.Environ(), "GOOS="+c.goos, "GOARCH="+c.goarch, "CGO_ENABLED=0"),
		ParseFile: func(fset *token.FileSet, name string, text []byte) (*ast.File, error) {
			return parse(fset, root, name, text)
		},
	}
	if len(c.patterns) == 0 {
		c.patterns = []string{"./..."}
	}
	all, err := packages.Load(load, c.patterns...)
	if err != nil {
		return nil, err
	}
	r := &result{}
	var good []*packages.Package
	for _, p := range all {
		if strings.HasSuffix(p.ID, ".test") {
			continue // go test writes it
		}
		if needsCgo(p, map[*packages.Package]bool{}) {
			r.leftOut = append(r.leftOut, p.ID)
			continue
		}
		r.checked++
		if len(p.Errors) == 0 {
			good = append(good, p)
		}
		for _, e := range p.Errors {
			r.findings = append(r.findings, e.Error())
		}
	}
	if r.checked == 0 {
		return nil, errors.New("no package")
	}
	return r, r.analyze(good)
}

// parse parses a file. Functions of dependencies lose their bodies.
func parse(fset *token.FileSet, root, name string, text []byte) (*ast.File, error) {
	if strings.HasPrefix(name, root) {
		return parser.ParseFile(fset, name, text, parser.SkipObjectResolution|parser.ParseComments)
	}
	f, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
	if f == nil {
		return nil, err
	}
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok {
			fn.Body = nil
		}
	}
	return f, err
}

// needsCgo reports whether go list found no files of a package, or of one on which it depends.
func needsCgo(p *packages.Package, seen map[*packages.Package]bool) bool {
	if seen[p] {
		return false
	}
	seen[p] = true
	for _, e := range p.Errors {
		if strings.Contains(e.Msg, "build constraints exclude all Go files") {
			return true
		}
	}
	for _, in := range p.Imports {
		if needsCgo(in, seen) {
			return true
		}
	}
	return false
}

// analyze runs the analyzers on packages without errors of types.
func (r *result) analyze(good []*packages.Package) error {
	for _, p := range good {
		// the analyzers need no facts of others, nor the bodies that dependencies lost
		p.Imports, p.IllTyped = map[string]*packages.Package{}, false
	}
	graph, err := checker.Analyze(darwincheck.Vet(), good, nil)
	if err != nil {
		return err
	}
	for act := range graph.All() {
		if !act.IsRoot {
			continue
		}
		if act.Err != nil {
			return fmt.Errorf("%s: %w", act, act.Err)
		}
		for _, d := range act.Diagnostics {
			r.findings = append(r.findings, fmt.Sprintf("%s: %s", act.Package.Fset.Position(d.Pos), d.Message))
		}
	}
	// a package is there alone and with its tests
	slices.Sort(r.findings)
	r.findings = slices.Compact(r.findings)
	return nil
}
