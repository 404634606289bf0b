// Package wrapcheck finds comments and prose that are wider than the project's 100 columns. It
// measures comments that have their lines to themselves in Go files, and the paragraphs and lists
// of Markdown files. Generated files, directives, tables, code blocks, and lines that cannot be
// broken are left alone.
package wrapcheck

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strings"
	"unicode/utf8"
)

// Columns is the widest that a line may be.
const Columns = 100

// tab is how many columns a tab counts for.
const tab = 4

// Check returns a line for each that is too wide in the files with this extension, ".go" or ".md".
func Check(root fs.FS, extension string) ([]string, error) {
	var all []string
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "shared"):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != extension:
			return nil
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		var lines []int
		if extension == ".go" {
			if lines, err = goLines(name, string(text)); err != nil {
				return err
			}
		} else {
			lines = markdownLines(string(text))
		}
		for _, n := range lines {
			all = append(all, fmt.Sprintf("%s:%d: wider than %d columns", name, n, Columns))
		}
		return nil
	})
	return all, err
}

// goLines returns the numbers of the lines of a Go file that hold a comment alone and are too wide.
func goLines(name, text string) ([]int, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	if ast.IsGenerated(f) {
		return nil, nil
	}
	lines := strings.Split(text, "\n")
	var wide []int
	for _, group := range f.Comments {
		for _, c := range group.List {
			first := fset.Position(c.Pos()).Line
			if strings.HasPrefix(c.Text, "//go:") || !strings.HasPrefix(strings.TrimSpace(lines[first-1]), c.Text[:2]) {
				continue
			}
			for n := first; n <= fset.Position(c.End()).Line; n++ {
				text := strings.TrimPrefix(strings.TrimSpace(lines[n-1]), "//")
				if !strings.HasPrefix(text, "\t") && tooWide(text, lines[n-1]) { // a tab begins code
					wide = append(wide, n)
				}
			}
		}
	}
	return wide, nil
}

// markdownLines returns the numbers of the lines of prose that are too wide.
func markdownLines(text string) []int {
	var wide []int
	fence := ""
	for i, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case fence != "":
			if strings.HasPrefix(trimmed, fence) {
				fence = ""
			}
		case strings.HasPrefix(trimmed, "```"), strings.HasPrefix(trimmed, "~~~"):
			fence = trimmed[:3]
		case strings.HasPrefix(trimmed, "|"), strings.HasPrefix(line, "    "), strings.HasPrefix(line, "\t"): // a table, code
		case strings.HasPrefix(trimmed, "[") && strings.Contains(trimmed, "]: "): // where a link leads
		case tooWide(trimmed, line):
			wide = append(wide, i+1)
		}
	}
	return wide
}

// tooWide reports whether a line is too wide and could be broken: its text has more than one word.
func tooWide(text, line string) bool {
	width := utf8.RuneCountInString(line) + (tab-1)*strings.Count(line, "\t")
	return width > Columns && len(strings.Fields(text)) > 1
}
