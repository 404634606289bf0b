package depcheck

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Rules is a parsed rule text. Its statements end with a semicolon, # begins a comment, names of
// packages are relative to the module, and x/* means every declared package below x.
//
//	a, b < c, d < e;   c and d may import a and b and what those may import, and so on for e
//	a !< b;            b must not import a, whatever the arrows say
//	module m: a, b;    the packages of another module (longest prefix counts; C is cgo) may be imported by a and b
//	folders a, b;      the folders at the top of the module
//	nogo a;            no .go file lies in folder a itself
//
// Packages are declared by arrows; NONE < a declares a package that may import none of ours.
type Rules struct {
	may     map[string]set // package to those it may import: closed over arrows
	never   map[string]set // package to those it must not import
	modules map[string]set // module path to packages that may import it
	folders set
	nogo    set
}

type set map[string]bool

// Parse reads a rule text. The error joins all mistakes in it.
func Parse(text string) (*Rules, error) {
	p := &ruleParser{declared: set{}, arrows: map[string]set{}}
	r := &Rules{never: map[string]set{}, modules: map[string]set{}, folders: set{}, nogo: set{}}
	p.split(text)
	for _, s := range p.statements {
		p.declare(s)
	}
	for _, s := range p.statements {
		p.statement(r, s)
	}
	if c := cycle(p.arrows); c != nil {
		p.errorf("the arrows make a cycle: %s", strings.Join(c, " imports "))
	} else {
		r.may = closure(p.arrows)
	}
	for pkg := range p.declared {
		if r.may[pkg] == nil && r.may != nil {
			r.may[pkg] = set{}
		}
	}
	slices.SortFunc(p.errs, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return r, errors.Join(p.errs...)
}

// ruleParser is the state of one Parse.
type ruleParser struct {
	statements []string
	declared   set
	arrows     map[string]set // importer to imported
	errs       []error
}

func (p *ruleParser) errorf(format string, args ...any) {
	p.errs = append(p.errs, fmt.Errorf("depcheck: rules: "+format, args...))
}

// split cuts the text into statements, with single spaces between words.
func (p *ruleParser) split(text string) {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		b.WriteString(line + " ")
	}
	parts := strings.Split(b.String(), ";")
	for i, s := range parts {
		s = strings.Join(strings.Fields(s), " ")
		if i == len(parts)-1 && s != "" {
			p.errorf("%q does not end with a semicolon", s)
		} else if s != "" {
			p.statements = append(p.statements, s)
		}
	}
}

// declare records the packages that a statement of arrows names.
func (p *ruleParser) declare(s string) {
	if isKeyword(s) || strings.Contains(s, "!<") {
		return
	}
	for list := range strings.SplitSeq(s, "<") {
		for name := range strings.SplitSeq(list, ",") {
			if name = strings.TrimSpace(name); name != "" && name != "NONE" && !strings.HasSuffix(name, "/*") {
				p.declared[name] = true
			}
		}
	}
}

func isKeyword(s string) bool {
	word, _, _ := strings.Cut(s, " ")
	return word == "module" || word == "folders" || word == "nogo"
}

// statement enters one statement into the rules.
func (p *ruleParser) statement(r *Rules, s string) {
	word, rest, _ := strings.Cut(s, " ")
	switch {
	case word == "module":
		path, list, ok := strings.Cut(rest, ":")
		if !ok {
			p.errorf("%q: write \"module path: packages\"", s)
			return
		}
		addAll(r.modules, strings.TrimSpace(path), p.names(s, list))
	case word == "folders":
		p.folders(s, rest, r.folders)
	case word == "nogo":
		p.folders(s, rest, r.nogo)
	case strings.Contains(s, "!<"):
		imported, importers, _ := strings.Cut(s, "!<")
		to := p.names(s, imported)
		for _, from := range p.names(s, importers) {
			addAll(r.never, from, to)
		}
	default:
		lists := strings.Split(s, "<")
		if len(lists) < 2 {
			p.errorf("%q says nothing", s)
		}
		for i := 1; i < len(lists); i++ {
			to := p.names(s, lists[i-1])
			for _, from := range p.names(s, lists[i]) {
				addAll(p.arrows, from, to)
			}
		}
	}
}

func addAll(m map[string]set, key string, values []string) {
	if m[key] == nil {
		m[key] = set{}
	}
	for _, v := range values {
		m[key][v] = true
	}
}

// folders adds a list of folder names, which need not be packages.
func (p *ruleParser) folders(s, list string, to set) {
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name == "" || strings.ContainsAny(name, " /") {
			p.errorf("%q: %q is not a folder name", s, name)
		} else {
			to[name] = true
		}
	}
}

// names resolves a list of packages.
func (p *ruleParser) names(s, list string) []string {
	var out []string
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		below, glob := strings.CutSuffix(name, "/*")
		switch {
		case name == "NONE":
		case name == "" || strings.ContainsAny(name, " <!:*") && !glob:
			p.errorf("%q: %q is not a package name", s, name)
		case glob:
			n := len(out)
			for pkg := range p.declared {
				if strings.HasPrefix(pkg, below+"/") {
					out = append(out, pkg)
				}
			}
			if len(out) == n {
				p.errorf("%q: no package is declared below %s", s, below)
			}
		case !p.declared[name]:
			p.errorf("%q: package %s is not declared by an arrow", s, name)
		default:
			out = append(out, name)
		}
	}
	return out
}

// closure returns, for each key, everything that can be reached from it. There are no cycles.
func closure(edges map[string]set) map[string]set {
	all := map[string]set{}
	var visit func(from string) set
	visit = func(from string) set {
		if s := all[from]; s != nil {
			return s
		}
		s := set{}
		for to := range edges[from] {
			s[to] = true
			maps.Copy(s, visit(to))
		}
		all[from] = s
		return s
	}
	for from := range edges {
		visit(from)
	}
	return all
}

// cycle returns a path from a key back to itself, or nil. The same edges give the same path.
func cycle(edges map[string]set) []string {
	const walking, done = 1, 2
	state := map[string]int{}
	var path []string
	var visit func(at string) []string
	visit = func(at string) []string {
		switch state[at] {
		case done:
			return nil
		case walking:
			return append(slices.Clone(path[slices.Index(path, at):]), at)
		}
		state[at] = walking
		path = append(path, at)
		for _, to := range slices.Sorted(maps.Keys(edges[at])) {
			if c := visit(to); c != nil {
				return c
			}
		}
		path = path[:len(path)-1]
		state[at] = done
		return nil
	}
	for _, from := range slices.Sorted(maps.Keys(edges)) {
		if c := visit(from); c != nil {
			return c
		}
	}
	return nil
}
