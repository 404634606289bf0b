package darwincheck

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// listed is what go list says about a package.
type listed struct {
	ImportPath, Dir, Name      string
	DepOnly                    bool
	GoFiles, CgoFiles, Imports []string
	ImportMap                  map[string]string
	Module                     *struct{ GoVersion string }
	Error                      *struct{ Err string }
}

// ofInterest reports whether a package is checked. Of the packages that go list makes up for tests
// only those of external tests are; it takes the suffix off their import paths.
func (p *listed) ofInterest() bool {
	path, made, _ := strings.Cut(p.ImportPath, " [")
	if made != "" && strings.HasSuffix(path, "_test") {
		p.ImportPath, p.ImportMap = path, nil
		return true
	}
	return made == "" && !strings.HasSuffix(path, ".test")
}

// list returns the packages that the patterns name, the packages of their external tests, and all
// their dependencies, each package after its dependencies.
func (c *Config) list(patterns []string) ([]*listed, error) {
	args := append([]string{"list", "-e", "-deps", "-test", "-json=ImportPath,Dir,Name,DepOnly,GoFiles,CgoFiles,Imports,ImportMap,Module,Error", "--"}, patterns...)
	out, err := c.goTool([]string{"GOOS=darwin", "GOARCH=" + c.arch()}, args...)
	if err != nil {
		return nil, err
	}
	var all []*listed
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		p := new(listed)
		switch err := dec.Decode(p); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("darwincheck: reading the output of go list: %w", err)
		case p.ImportPath != "unsafe" && p.ofInterest():
			all = append(all, p)
		}
	}
}

// goTool runs the go command with env added to the environment and returns what it writes.
func (c *Config) goTool(env []string, args ...string) ([]byte, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir = c.Dir
	cmd.Env = append(append(os.Environ(), "CGO_ENABLED=1", "GOFLAGS=-mod=readonly"), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("darwincheck: go %s: %w: %s", args[0], err, bytes.TrimSpace(stderr.Bytes()))
	}
	return out, nil
}

// translate runs cgo on a package's files that import "C" and returns the files in dir that take
// their place.
func (r *run) translate(p *listed, dir string) ([]string, error) {
	var sources []string
	for _, name := range p.CgoFiles {
		text, err := r.read(filepath.Join(p.Dir, name))
		if err != nil {
			return nil, err
		}
		source := filepath.Join(dir, name)
		if err := os.WriteFile(source, text, 0o600); err != nil {
			return nil, fmt.Errorf("darwincheck: %w", err)
		}
		sources = append(sources, source)
	}
	// With -trimpath errors name the files of the package.
	args := append([]string{"tool", "cgo", "-objdir", dir, "-importpath", p.ImportPath, "-trimpath", dir + "=>" + p.Dir, "--", "-I" + p.Dir}, sources...)
	// For the machine's own system: for another one cgo asks for a compiler called clang and passes
	// it options that only Apple's has. C's types are the same on both.
	host := []string{"GOOS=" + runtime.GOOS, "GOARCH=" + runtime.GOARCH}
	if r.c.CC != "" {
		host = append(host, "CC="+r.c.CC)
	}
	if _, err := r.c.goTool(host, args...); err != nil {
		return nil, err
	}
	files := []string{filepath.Join(dir, "_cgo_gotypes.go")}
	for _, name := range p.CgoFiles {
		files = append(files, filepath.Join(dir, strings.TrimSuffix(name, ".go")+".cgo1.go"))
	}
	return files, nil
}

// read returns a file's text.
func (r *run) read(file string) ([]byte, error) {
	if text, ok := r.overlay[file]; ok {
		return text, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("darwincheck: %w", err)
	}
	return text, nil
}
