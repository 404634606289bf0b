package moeflux

import (
	"bytes"
	"encoding/json"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// program is a complete program that the documentation shows.
type program struct {
	file   string
	source []byte
}

// programs returns the complete programs of a page.
func programs(t *testing.T, file string) (all []program) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?s)```go\n(.*?)```").FindAllSubmatch(raw, -1) {
		if bytes.HasPrefix(m[1], []byte("package main\n")) {
			all = append(all, program{file, m[1]})
		}
	}
	return all
}

// The first Go that README.md shows is a whole program of at most 20 lines.
func TestTwentyLines(t *testing.T) {
	raw, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(raw), "```go\n")
	first := programs(t, "README.md")
	if len(first) == 0 || !strings.HasPrefix(code, string(first[0].source)) {
		t.Fatal("the first Go in README.md is no complete program")
	}
	if n := bytes.Count(first[0].source, []byte("\n")); n > 20 {
		t.Errorf("it has %d lines, want at most 20", n)
	}
	for _, p := range append(first, programs(t, "docs/embed.md")...) {
		if formatted, err := format.Source(p.source); err != nil || !bytes.Equal(formatted, p.source) {
			t.Errorf("%s: gofmt would change this (%v):\n%s", p.file, err, p.source)
		}
	}
}

// TestOutside takes what the documentation shows to another module, which has this one by a replace
// directive, and wants everything to be found from there: by the programs of README.md and
// docs/embed.md, and by the examples of this package, which its own tests run. The programs are
// then built as if they lay in this module, which has been built already, and run. It needs Go and
// the modules that this module needs, and no network.
func TestOutside(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the programs of the documentation")
	}
	dir := t.TempDir()
	here := otherModule(t, dir)
	model, err := DemoDir(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	all := append(programs(t, "README.md"), programs(t, "docs/embed.md")...)
	overlays, bin := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "bin")
	build := []string{"go", "build", "-ldflags=-s -w", "-overlay=" + overlays, "-o", bin + "/"}
	overlay := make(map[string]string)
	for i, p := range all {
		file := filepath.Join(dir, name(i), "main.go")
		write(t, file, p.source)
		overlay[filepath.Join(here, "documented", name(i), "main.go")] = file
		build = append(build, "./documented/"+name(i))
	}
	places, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		t.Fatal(err)
	}
	write(t, overlays, places)
	examples, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "examples", "example_test.go"), examples)
	run := func(dir string, command ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOPROXY=off", "GOWORK=off")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%q: %v\n%s", command, err, out)
		}
		return string(out)
	}
	found := run(dir, "go", "list", "-mod=mod", "-deps", "-test", "./...")
	const other, ours = "example.com/another/", "github.com/moeflux/moeflux-actor/"
	for _, want := range []string{other + name(0), other + "examples", ours + "actors"} {
		if !strings.Contains(found, want+"\n") {
			t.Errorf("the other module lacks %s: %s", want, found)
		}
	}
	run(here, build...)
	// What the output of each must contain. They get the demo model and a prompt, which they may
	// ignore. The first two sample, and one text in 70 of the first is blank: hence five tries.
	wants := []string{"", " tokens)\n", "return nil, err\n", "4 positions loaded\n"}
	if len(all) != len(wants) {
		t.Fatalf("the documentation has %d complete programs, want %d", len(all), len(wants))
	}
	for i, p := range all {
		var out string
		for try := 0; try < 5 && strings.TrimSpace(out) == ""; try++ {
			out = run(dir, filepath.Join(bin, name(i)), model, "if err != nil {\n")
		}
		if strings.TrimSpace(out) == "" || !strings.Contains(out, wants[i]) {
			t.Errorf("a program of %s prints %q, want %q", p.file, out, wants[i])
		}
	}
}

func name(i int) string { return "program" + string(rune('a'+i)) }

// otherModule writes the go.mod and go.sum of a module that needs this one, and returns where this
// one is.
func otherModule(t *testing.T, dir string) (here string) {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	const path = "github.com/moeflux/moeflux-actor"
	_, needs, ok := strings.Cut(string(mod), "module "+path+"\n")
	if !ok {
		t.Fatalf("go.mod does not begin as expected: %s", mod)
	}
	write(t, filepath.Join(dir, "go.mod"), []byte("module example.com/another\n"+needs+"\nrequire "+path+" v0.0.0\n\nreplace "+path+" => "+here+"\n"))
	sum, err := os.ReadFile("go.sum")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "go.sum"), sum)
	return here
}

func write(t *testing.T, file string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
}
