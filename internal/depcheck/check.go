package depcheck

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Check returns a sorted line for each import or folder that breaks the rules. Packages that the
// rules declare need not exist.
func Check(t *Tree, r *Rules) []string {
	c := &checker{tree: t, rules: r, imports: map[string]set{}}
	for _, name := range t.Folders {
		if !r.folders[name] {
			c.addf("%s/: a folder at the top that the rules do not have: %s", name, list(r.folders))
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(t.Packages)) {
		if r.nogo[pkg] {
			c.addf("%s/: a .go file lies in it: use a package below", pkg)
			continue
		}
		if r.may[pkg] == nil {
			c.addf("%s: the package is in no rule; argue for it in docs/architecture.md, then add it to rules.txt", pkg)
			continue
		}
		for _, imp := range t.Packages[pkg] {
			c.check(pkg, imp)
		}
	}
	if way := cycle(c.imports); way != nil {
		c.addf("an import cycle: %s", strings.Join(way, " imports "))
	}
	slices.Sort(c.found)
	return c.found
}

type checker struct {
	tree    *Tree
	rules   *Rules
	imports map[string]set // of our packages
	found   []string
}

func (c *checker) addf(format string, args ...any) {
	c.found = append(c.found, fmt.Sprintf(format, args...))
}

// check checks one import.
func (c *checker) check(pkg string, imp Import) {
	at := fmt.Sprintf("%s:%d: %s imports %s", imp.File, imp.Line, pkg, imp.Path)
	if to, ours := strings.CutPrefix(imp.Path+"/", c.tree.Module+"/"); ours {
		if to = strings.TrimSuffix(to, "/"); to == "" {
			to = c.tree.Root
		}
		addAll(c.imports, pkg, []string{to})
		switch {
		case c.rules.never[pkg][to]:
			c.addf("%s, which it must never", at)
		case !c.rules.may[pkg][to]:
			c.addf("%s, which no arrow allows; it may import %s", at, list(c.rules.may[pkg]))
		}
		return
	}
	first, _, _ := strings.Cut(imp.Path, "/")
	if !strings.Contains(first, ".") && imp.Path != "C" {
		return // the standard library
	}
	module := ""
	for m := range c.rules.modules {
		if strings.HasPrefix(imp.Path+"/", m+"/") && len(m) > len(module) {
			module = m
		}
	}
	switch {
	case module == "":
		c.addf("%s, which is of a module that no rule names", at)
	case !c.rules.modules[module][pkg]:
		c.addf("%s, but only these may import %s: %s", at, module, list(c.rules.modules[module]))
	}
}

func list(s set) string {
	if len(s) == 0 {
		return "none"
	}
	return strings.Join(slices.Sorted(maps.Keys(s)), ", ")
}
