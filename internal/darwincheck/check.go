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
	// Dir is the folder where go list runs, inside the module.
	Dir string
	// GOARCH is the processor, "" means arm64.
	GOARCH string
	// CC is the machine's C compiler, "" means the one that go env CC names.
	CC string
	// Analyzers run on the packages that were asked for.
	Analyzers []*analysis.Analyzer
}

// Result is what a Check found.
type Result struct {
	// Errors are type errors in the packages that were asked for. The compiler would refuse them.
	Errors []error
	// Findings are what analyzers and the rule about darwinkit report.
	Findings []string
	// Panicking are the methods of darwinkit that panic, named as by types.Func.FullName, in
	// packages on which those asked for depend.
	Panicking []string
	// Dependencies is the number of type errors in third-party packages. If it is not 0, nothing
	// else here can be relied on.
	Dependencies int
	// Packages is how many packages were checked.
	Packages int
}

// darwinkit is the module with the generated bindings.
const darwinkit = "github.com/progrium/darwinkit"

func (c *Config) arch() string {
	if c.GOARCH == "" {
		return "arm64"
	}
	return c.GOARCH
}

// Checker holds the types on which packages depend, and checks the packages any number of times.
type Checker struct {
	c        Config
	roots    []*listed
	fset     *token.FileSet
	sizes    types.Sizes
	done     map[string]*types.Package
	panics   map[*types.Func]bool
	depends  int // type errors
	packages int
}

// Load lists the packages that the patterns name, and type-checks their dependencies.
func Load(c Config, patterns ...string) (*Checker, error) {
	all, err := c.list(patterns)
	if err != nil {
		return nil, err
	}
	k := &Checker{c: c, fset: token.NewFileSet(), sizes: types.SizesFor("gc", c.arch()), done: map[string]*types.Package{"unsafe": types.Unsafe},
		panics: map[*types.Func]bool{}}
	for _, p := range all {
		if p.DepOnly {
			k.dependency(p)
		} else {
			k.roots = append(k.roots, p)
		}
	}
	if len(k.roots) == 0 {
		return nil, fmt.Errorf("darwincheck: no package matches %v", patterns)
	}
	return k, nil
}

// run is one Check.
type run struct {
	*Checker
	overlay map[string][]byte
	temp    string
	typed   []*packages.Package
	result  Result
}

// Check checks the packages. overlay maps absolute file names to texts that replace the files. The
// error says what kept it from checking; what it finds is in the Result.
func (k *Checker) Check(overlay map[string][]byte) (*Result, error) {
	temp, err := os.MkdirTemp("", "darwincheck-")
	if err != nil {
		return nil, fmt.Errorf("darwincheck: %w", err)
	}
	defer os.RemoveAll(temp)
	r := &run{Checker: k, overlay: overlay, temp: temp, result: Result{Dependencies: k.depends, Packages: k.packages}}
	for i, p := range k.roots {
		if err := r.root(p, i); err != nil {
			return nil, err
		}
	}
	for f := range r.panics {
		r.result.Panicking = append(r.result.Panicking, f.FullName())
	}
	return &r.result, r.analyze()
}

// dependency checks the declarations of a package that was not asked for, and in darwinkit also the
// function bodies, to find those that panic.
func (k *Checker) dependency(p *listed) {
	var files []*ast.File
	for _, name := range append(append([]string{}, p.GoFiles...), p.CgoFiles...) {
		f, err := parser.ParseFile(k.fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			k.depends++
		}
		if f != nil {
			files = append(files, f)
		}
	}
	generated := strings.HasPrefix(p.ImportPath, darwinkit+"/macos/")
	info := &types.Info{Instances: map[*ast.Ident]types.Instance{}, Defs: map[*ast.Ident]types.Object{}}
	conf := k.config(p, func(error) { k.depends++ })
	conf.FakeImportC, conf.IgnoreFuncBodies = true, !generated
	// conf.Error is told what is wrong
	k.done[p.ImportPath], _ = conf.Check(p.ImportPath, k.fset, files, info)
	k.packages++
	if generated {
		findPanics(files, info, k.panics)
	}
}

// root checks a package that was asked for.
func (r *run) root(p *listed, number int) error {
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
		translated, err := r.translate(p, dir)
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
		text, err := r.read(path)
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
		r.typed = append(r.typed, &packages.Package{ID: p.ImportPath, Name: p.Name, PkgPath: p.ImportPath, Fset: r.fset, Syntax: files, Types: t,
			// the analyzers need no facts of others
			TypesInfo: info, TypesSizes: r.sizes, Imports: map[string]*packages.Package{}})
	}
	return nil
}

// importer finds packages that have been checked.
type importer func(path string) (*types.Package, error)

// Import implements types.Importer.
func (f importer) Import(path string) (*types.Package, error) { return f(path) }

// config says how to check a package's types; fail is called for each error.
func (k *Checker) config(p *listed, fail func(error)) *types.Config {
	conf := &types.Config{Sizes: k.sizes, Error: fail, Importer: importer(func(path string) (*types.Package, error) {
		if m, ok := p.ImportMap[path]; ok {
			path = m
		}
		if t := k.done[path]; t != nil {
			return t, nil
		}
		return nil, fmt.Errorf("no package %q", path)
	})}
	if p.Module != nil && p.Module.GoVersion != "" {
		conf.GoVersion = "go" + p.Module.GoVersion
	}
	return conf
}

// findPanics collects the functions that call objc.WrapAsProtocol for a type that is not an
// interface.
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
	if len(r.c.Analyzers) == 0 || len(r.typed) == 0 {
		return nil
	}
	graph, err := checker.Analyze(r.c.Analyzers, r.typed, nil)
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
