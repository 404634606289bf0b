package launch

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu/msl"
)

// declaration is a piece of a shader's text at file scope.
type declaration struct {
	name   string
	words  []string // of the piece, and of the conditions under which it stands
	option bool     // a #define under an #ifndef: a default of what the table may say
}

var (
	words    = regexp.MustCompile(`[A-Za-z_]\w*`)
	declares = regexp.MustCompile(`^\s*(?:struct|enum)\s+(\w+)|^[^;(={\[]*?(\w+)\s*[(\[={;]`)
	macro    = regexp.MustCompile(`^#\s*define\s+(\w+)(.*)`)
	ended    = regexp.MustCompile(`^\s*(?:struct|constant)\b`) // by a semicolon
	comments = regexp.MustCompile(`//[^\n]*|\\\n|\[\[.*?\]\]`)
)

// declarations cuts a shader's text, in which #line says where it is from.
func declarations(text string) (all []declaration) {
	var conditions [][]string // the words of each #if that is open, and of its #elif
	under := func() (all []string) { return slices.Concat(conditions...) }
	var ifndefs []bool
	var piece []byte
	depth := 0
	for line := range strings.SplitAfterSeq(comments.ReplaceAllString(text, " "), "\n") {
		if s := strings.TrimSpace(line); strings.HasPrefix(s, "#") && depth == 0 && len(bytes.TrimSpace(piece)) == 0 {
			found := words.FindAllString(s, -1)
			switch kind := found[0]; {
			case strings.HasPrefix(kind, "if"):
				conditions, ifndefs = append(conditions, found[1:]), append(ifndefs, kind == "ifndef")
			case strings.HasPrefix(kind, "el"):
				last := len(conditions) - 1
				conditions[last] = append(conditions[last], found[1:]...)
			case kind == "endif":
				conditions, ifndefs = conditions[:len(conditions)-1], ifndefs[:len(ifndefs)-1]
			case kind == "define":
				m := macro.FindStringSubmatch(s)
				all = append(all, declaration{m[1], append(words.FindAllString(m[2], -1), under()...), slices.Contains(ifndefs, true)})
			}
			continue
		}
		for _, c := range []byte(line) {
			piece = append(piece, c)
			switch c {
			case '(', '[', '{':
				depth++
			case ')', ']', '}':
				depth--
			}
			if depth > 0 || c != ';' && (c != '}' || ended.Match(piece)) {
				continue
			}
			if m := declares.FindSubmatch(piece); m != nil {
				all = append(all, declaration{string(m[1]) + string(m[2]), append(words.FindAllString(string(piece), -1), under()...), false})
			}
			piece = piece[:0]
		}
	}
	return all
}

// options are the macros that what a kernel computes depends on, and that the text leaves open.
func options(all []declaration, kernel string) map[string]bool {
	open, reached := map[string]bool{}, map[string]bool{}
	for next := []string{kernel}; len(next) > 0; {
		name := next[0]
		next = next[1:]
		if reached[name] {
			continue
		}
		reached[name] = true
		fixed := false
		for _, d := range all {
			if d.name == name {
				next = append(next, d.words...)
				fixed = fixed || !d.option
			}
		}
		if !fixed && strings.ToUpper(name) == name && len(name) > 1 {
			open[name] = true
		}
	}
	return open
}

// byDefault are options that kernels leave at what their text says, or at nothing.
var byDefault = map[string][]string{
	"embed":        {"WIDE"}, // reads elements one by one
	"head_vectors": {"TEAM"}, // a vector is one simdgroup's
	"route":        {"GROUPED"},
	"route_jobs":   {"JOBS"},
}

// TestDefines wants each kernel's row of the table to have what the kernel depends on: an option
// that is missing there would have its default, or count as 0, whatever an encoder means.
func TestDefines(t *testing.T) {
	modules, err := Modules()
	if err != nil {
		t.Fatal(err)
	}
	var coding []string // what defineCoding stands for
	for _, c := range allCodings() {
		for _, m := range regexp.MustCompile(`#define (\w+)`).FindAllStringSubmatch(define(defineCoding, c), -1) {
			coding = append(coding, m[1])
		}
	}
	for name, m := range modules {
		row, left := kernelDefines[name], byDefault[name]
		open := options(declarations(m.Emit(msl.Metal, name, "")), name)
		for o := range open {
			if slices.Contains(coding, o) {
				o = defineCoding
			}
			if !slices.Contains(row, o) && !slices.Contains(left, o) {
				t.Errorf("%s depends on %s, which its row %v has not", name, o, row)
			}
		}
		for _, o := range left {
			if !open[o] || slices.Contains(row, o) {
				t.Errorf("%s need not be named among what %s leaves at its default", o, name)
			}
		}
	}
}
