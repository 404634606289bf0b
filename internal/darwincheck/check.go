package darwincheck

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"
)

// Config says what is checked.
type Config struct {
	// Dir is where go list runs: a folder of the module.
	Dir string
	// GOARCH is the processor, "" means arm64.
	GOARCH string
	// Overlay has texts to check in place of files, by absolute name.
	Overlay map[string][]byte
	// Analyzers run on the packages that were asked for.
	Analyzers []*analysis.Analyzer
}

// Result is what was found.
type Result struct {
	// Errors are type errors in the packages that were asked for: the compiler would refuse them.
	Errors []error
	// Findings are what analyzers and the rule about darwinkit report.
	Findings []string
	// Panicking are the methods of darwinkit that panic, as types.Func.FullName has them, in packages that those asked for need.
	Panicking []string
	// Dependencies is how many type errors packages of others have; with any, nothing said here can be relied on.
	Dependencies int
	// Packages were checked, in all; Roots of them were asked for.
	Packages, Roots int
}

// darwinkit is where generated bindings lie.
const darwinkit = "github.com/progrium/darwinkit"

func (c *Config) arch() string {
	if c.GOARCH == "" {
		return "arm64"
	}
	return c.GOARCH
}

// run is one Check.
type run struct {
	c      *Config
	fset   *token.FileSet
	sizes  types.Sizes
	temp   string
	done   map[string]*types.Package
	panics map[*types.Func]bool
	roots  []*packages.Package
	result Result
}

// Check checks the packages that the patterns name, and what they need as far as types go. The error is about what keeps it from checking; what it finds is in
// the Result.
func Check(c Config, patterns ...string) (*Result, error) {
	all, err := c.list(patterns)
	if err != nil {
		return nil, err
	}
	temp, err := os.MkdirTemp("", "darwincheck-")
	if err != nil {
		return nil, fmt.Errorf("darwincheck: %w", err)
	}
	defer os.RemoveAll(temp)
	r := &run{c: &c, fset: token.NewFileSet(), sizes: types.SizesFor("gc", c.arch()), temp: temp,
		done: map[string]*types.Package{"unsafe": types.Unsafe}, panics: map[*types.Func]bool{}}
	for i, p := range all {
		if p.DepOnly {
			r.dependency(p)
		} else if err := r.root(p, i); err != nil {
			return nil, err
		}
	}
	if r.result.Roots == 0 {
		return nil, fmt.Errorf("darwincheck: no package matches %v", patterns)
	}
	for f := range r.panics {
		r.result.Panicking = append(r.result.Panicking, f.FullName())
	}
	return &r.result, r.analyze()
}

// dependency checks what a package that was not asked for declares; of darwinkit also the bodies, for what panics.
func (r *run) dependency(p *listed) {
	var files []*ast.File
	for _, name := range append(append([]string{}, p.GoFiles...), p.CgoFiles...) {
		f, err := parser.ParseFile(r.fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			r.result.Dependencies++
		}
		if f != nil {
			files = append(files, f)
		}
	}
	generated := strings.HasPrefix(p.ImportPath, darwinkit+"/macos/")
	info := &types.Info{Instances: map[*ast.Ident]types.Instance{}, Defs: map[*ast.Ident]types.Object{}}
	conf := r.config(p, func(error) { r.result.Dependencies++ })
	conf.FakeImportC, conf.IgnoreFuncBodies = true, !generated
	r.done[p.ImportPath], _ = conf.Check(p.ImportPath, r.fset, files, info) // Error hears of what is wrong
	r.result.Packages++
	if generated {
		findPanics(files, info, r.panics)
	}
}

// root checks a package that was asked for.
func (r *run) root(p *listed, number int) error {
	r.result.Roots++
	if p.Error != nil {
		r.result.Errors = append(r.result.Errors, errors.New(p.Error.Err))
	}
	var paths []string
	for _, name := range p.GoFiles {
		paths = append(paths, filepath.Join(p.Dir, name))
	}
	if len(p.CgoFiles) > 0 {
		dir := filepath.Join(r.temp, fmt.Sprint(number))
		if err := os.Mkdir(dir, 0o700); err != nil {
			return fmt.Errorf("darwincheck: %w", err)
		}
		translated, err := r.c.translate(p, dir)
		if err != nil { // C's names, or the syntax
			r.result.Errors = append(r.result.Errors, err)
			return nil
		}
		paths = append(paths, translated...)
	}
	var files []*ast.File
	before := len(r.result.Errors)
	fail := func(err error) { r.result.Errors = append(r.result.Errors, err) }
	for _, path := range paths {
		text, err := r.c.read(path)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(r.fset, path, text, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			fail(err)
		}
		if f != nil {
			files = append(files, f)
		}
	}
	info := &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
		Implicits: map[ast.Node]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{},
		Scopes: map[ast.Node]*types.Scope{}, Instances: map[*ast.Ident]types.Instance{}, FileVersions: map[*ast.File]string{},
	}
	conf := r.config(p, fail)
	t, _ := conf.Check(p.ImportPath, r.fset, files, info)
	r.done[p.ImportPath] = t
	r.result.Packages++
	for id, object := range info.Uses {
		if f, ok := object.(*types.Func); ok && r.panics[f] {
			r.result.Findings = append(r.result.Findings, fmt.Sprintf("%s: %s panics at run time: it passes a struct to objc.WrapAsProtocol; send the message by objc.Call",
				r.fset.Position(id.Pos()), f.FullName()))
		}
	}
	if len(r.result.Errors) == before {
		r.roots = append(r.roots, &packages.Package{ID: p.ImportPath, Name: p.Name, PkgPath: p.ImportPath, Fset: r.fset, Syntax: files, Types: t,
			TypesInfo: info, TypesSizes: r.sizes, Imports: map[string]*packages.Package{}}) // the analyzers need no facts of others
	}
	return nil
}

// importer finds packages that were checked before.
type importer func(path string) (*types.Package, error)

// Import is types.Importer's.
func (f importer) Import(path string) (*types.Package, error) { return f(path) }

// config returns how a package's types are checked; fail hears of each error.
func (r *run) config(p *listed, fail func(error)) *types.Config {
	conf := &types.Config{Sizes: r.sizes, Error: fail, Importer: importer(func(path string) (*types.Package, error) {
		if m, ok := p.ImportMap[path]; ok {
			path = m
		}
		if t := r.done[path]; t != nil {
			return t, nil
		}
		return nil, fmt.Errorf("no package %q", path)
	})}
	if p.Module != nil && p.Module.GoVersion != "" {
		conf.GoVersion = "go" + p.Module.GoVersion
	}
	return conf
}

// findPanics collects the functions that call objc.WrapAsProtocol for a type that is no interface.
func findPanics(files []*ast.File, info *types.Info, out map[*types.Func]bool) {
	for _, f := range files {
		for _, d := range f.Decls {
			declared, ok := d.(*ast.FuncDecl)
			if !ok || declared.Body == nil {
				continue
			}
			ast.Inspect(declared.Body, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok && id.Name == "WrapAsProtocol" {
					if in, ok := info.Instances[id]; ok && !types.IsInterface(in.TypeArgs.At(0)) {
						if fn, ok := info.Defs[declared.Name].(*types.Func); ok {
							out[fn] = true
						}
					}
				}
				return true
			})
		}
	}
}

// analyze runs the analyzers on the packages without type errors.
func (r *run) analyze() error {
	if len(r.c.Analyzers) == 0 || len(r.roots) == 0 {
		return nil
	}
	graph, err := checker.Analyze(r.c.Analyzers, r.roots, nil)
	if err != nil {
		return fmt.Errorf("darwincheck: %w", err)
	}
	for act := range graph.All() {
		if !act.IsRoot {
			continue
		}
		if act.Err != nil {
			r.result.Findings = append(r.result.Findings, fmt.Sprintf("%s: %v", act.Analyzer.Name, act.Err))
		}
		for _, d := range act.Diagnostics {
			at := r.fset.Position(d.Pos)
			if filepath.Base(at.Filename) != "_cgo_gotypes.go" { // cgo's own
				r.result.Findings = append(r.result.Findings, fmt.Sprintf("%s: %s (%s)", at, d.Message, act.Analyzer.Name))
			}
		}
	}
	return nil
}
