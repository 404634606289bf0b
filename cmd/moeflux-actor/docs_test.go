package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/moeflux/moeflux-actor/internal/process"
)

// TestDocsCommandLines parses every command line of this program that the documentation shows.
func TestDocsCommandLines(t *testing.T) {
	n := 0
	for _, file := range docFiles(t) {
		for at, line := range codeLines(t, file) {
			for _, args := range programCalls(line) {
				n++
				if err := parses(args); err != nil {
					t.Errorf("%s:%d: %s: %v", file, at, line, err)
				}
			}
		}
	}
	if n < 30 {
		t.Errorf("found only %d command lines; the test looks for code blocks that call %s", n, process.Program)
	}
}

// TestDocsFlags looks up every flag that the documentation names in its text.
func TestDocsFlags(t *testing.T) {
	known := map[string]bool{
		"--help": true, "--version": true,
		"--defer-experts": true, // of ik_llama.cpp
		"--n-cpu-moe":     true, // of llama.cpp
	}
	for _, node := range newParser(t).Model.Leaves(false) {
		for _, group := range node.AllFlags(false) {
			for _, f := range group {
				known["--"+f.Name] = true
			}
		}
	}
	for _, file := range docFiles(t) {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for at, line := range strings.Split(string(raw), "\n") {
			for _, code := range regexp.MustCompile("`[^`]*`").FindAllString(line, -1) {
				for _, m := range regexp.MustCompile(`(?:^|[\s`+"`"+`(])(--[a-z][a-z0-9-]*)`).FindAllStringSubmatch(code, -1) {
					if !known[m[1]] {
						t.Errorf("%s:%d: no command has the flag %s", file, at+1, m[1])
					}
				}
			}
		}
	}
}

// docFiles returns README.md and the pages of docs/.
func docFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("no documentation found (error %v)", err)
	}
	return append(files, "../../README.md")
}

// codeLines returns the lines of a file's code blocks by line number, joined where they end with a
// backslash. Blocks of Go are left out.
func codeLines(t *testing.T, file string) map[int]string {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[int]string)
	fenced, inGo, joined, from := false, false, "", 0
	for i, line := range strings.Split(string(raw), "\n") {
		if strings.HasPrefix(line, "```") {
			fenced, inGo = !fenced, line == "```go"
			continue
		}
		if inGo || !fenced && !strings.HasPrefix(line, "    ") {
			continue
		}
		if joined == "" {
			from = i + 1
		}
		joined += strings.TrimSpace(line)
		if rest, more := strings.CutSuffix(joined, `\`); more {
			joined = rest
			continue
		}
		all[from], joined = joined, ""
	}
	return all
}

// programCalls returns the arguments of each call of the program in a shell command.
func programCalls(line string) (calls [][]string) {
	words, ok := shellWords(line)
	for ok && len(words) > 0 {
		end := slices.IndexFunc(words, func(w string) bool { return w == "|" || w == "&&" || w == ";" })
		if end < 0 {
			end = len(words)
		}
		command := words[:end]
		for i, w := range command {
			if filepath.Base(w) == process.Program && (i == 0 || command[0] == "sudo" || slices.Equal(command[:i], []string{"go", "run"})) {
				calls = append(calls, command[i+1:])
				break
			}
		}
		words = words[min(end+1, len(words)):]
	}
	return calls
}

// shellWords splits a shell command as far as documentation needs it: quotes, operators,
// redirections and comments. It reports whether the quotes match.
func shellWords(line string) (words []string, ok bool) {
	var word strings.Builder
	began := false
	end := func() {
		if began {
			words = append(words, word.String())
			word.Reset()
			began = false
		}
	}
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\'' || c == '"':
			n := strings.IndexByte(line[i+1:], c)
			if n < 0 {
				return nil, false
			}
			word.WriteString(line[i+1 : i+1+n])
			began = true
			i += n + 1
		case c == ' ' || c == '\t':
			end()
		case c == '#' && !began:
			return words, true
		case c == '|' || c == ';' || c == '&':
			end()
			if strings.HasPrefix(line[i:], "&&") {
				i++
				words = append(words, "&&")
			} else {
				words = append(words, string(c))
			}
		case (c == '<' || c == '>') && !began: // and the file's name
			rest := strings.TrimLeft(line[i+1:], "> ")
			name, _, _ := strings.Cut(rest, " ")
			i = len(line) - len(rest) + len(name) - 1
		default:
			word.WriteByte(c)
			began = true
		}
	}
	end()
	return words, true
}

// newParser returns a parser of the command line that prints nothing.
func newParser(t *testing.T) *kong.Kong {
	t.Helper()
	p, err := newCommandLine(new(commands), io.Discard, io.Discard, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// parses reports why the program would refuse arguments.
func parses(args []string) error {
	args, err := normalise(args)
	if err != nil {
		return err
	}
	if at := slices.Index(args, "--config"); at >= 0 && at+1 < len(args) { // the file need not be here
		args = slices.Delete(slices.Clone(args), at, at+2)
	}
	p, err := newCommandLine(commandLineOf(args[0]), io.Discard, io.Discard, func(int) {})
	if err != nil {
		return err
	}
	if slices.Contains(args, "--help") {
		_, err = kong.Trace(p, slices.DeleteFunc(args, func(a string) bool { return a == "--help" }))
		return err
	}
	_, err = p.Parse(args)
	return err
}

func TestShellWords(t *testing.T) {
	for _, c := range []struct {
		line string
		want []string
	}{
		{`./moeflux-actor run -p "package main" -n 3 # text`, []string{"run", "-p", "package main", "-n", "3"}},
		{`echo '{"text": "a b"}' | moeflux-actor tokenize --decode < in > out`, []string{"tokenize", "--decode"}},
		{`go run ./cmd/moeflux-actor version`, []string{"version"}},
		{`go build -o moeflux-actor ./cmd/moeflux-actor && bin/moeflux-actor version`, []string{"version"}},
	} {
		got := programCalls(c.line)
		if len(got) != 1 || !slices.Equal(got[0], c.want) {
			t.Errorf("%s: %q, want %q", c.line, got, c.want)
		}
	}
}

// TestDocsLinks follows every link of the documentation to a file, and to a heading in it.
func TestDocsLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#\s]*)(#[^)\s]*)?\)`)
	for _, file := range docFiles(t) {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(raw), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			target := file
			if m[1] != "" {
				target = filepath.Join(filepath.Dir(file), m[1])
			}
			text, err := os.ReadFile(target)
			if err != nil {
				t.Errorf("%s: a link to %s: %v", file, m[1], err)
			} else if m[2] != "" && !slices.Contains(anchors(string(text)), m[2][1:]) {
				t.Errorf("%s: %s has no heading %s", file, target, m[2])
			}
		}
	}
}

// anchors returns the names by which the headings of a Markdown file are linked.
func anchors(text string) (all []string) {
	for _, h := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		name := regexp.MustCompile(`[^\p{L}\p{N}_\- ]`).ReplaceAllString(strings.ToLower(h[1]), "")
		all = append(all, strings.ReplaceAll(name, " ", "-"))
	}
	return all
}
