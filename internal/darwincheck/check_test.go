package darwincheck

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/testenv"
)

// file is where faults are planted: the only file of the project that no compiler sees on Linux.
const file = "gpu/metal/system_darwin.go"

// load returns a checker of gpu/metal.
func load(compiler string) (*Checker, error) {
	loaded.Do(func() { loaded.k, loaded.err = Load(Config{Dir: root, Analyzers: Vet(), CC: compiler}, "./gpu/metal") })
	return loaded.k, loaded.err
}

var loaded struct {
	sync.Once
	k   *Checker
	err error
}

// root is the module's folder.
const root = "../.."

// check checks gpu/metal with one piece of that file replaced.
func check(t *testing.T, from, to string) *Result {
	t.Helper()
	k, err := load(testenv.CCompiler(t))
	if err != nil {
		t.Fatal(err)
	}
	var overlay map[string][]byte
	if from != "" {
		path, err := filepath.Abs(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(text, []byte(from)) {
			t.Fatalf("%s has no %q", file, from)
		}
		overlay = map[string][]byte{path: bytes.Replace(text, []byte(from), []byte(to), 1)}
	}
	r, err := k.Check(overlay)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The project's code for macOS has the right types, and calls nothing that panics.
func TestMetal(t *testing.T) {
	r := check(t, "", "")
	for _, e := range r.Errors {
		t.Error(e)
	}
	for _, e := range r.Findings {
		t.Error(e)
	}
	if r.Dependencies != 0 {
		t.Errorf("%d errors in third-party packages: nothing else here can be relied on", r.Dependencies)
	}
}

// The tests that only a Mac runs are checked with the package.
func TestMetalTests(t *testing.T) {
	k, err := load(testenv.CCompiler(t))
	if err != nil {
		t.Fatal(err)
	}
	path, err := filepath.Abs(filepath.Join(root, "gpu/metal/conformance_darwin_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := k.Check(map[string][]byte{path: bytes.Replace(text, []byte("gputest.RunAligned("), []byte("gputest.RunNowhere("), 1)})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Errors) != 1 || !strings.Contains(r.Errors[0].Error(), "RunNowhere") {
		t.Errorf("a call in the tests of a function that does not exist: %v", r.Errors)
	}
}

// darwinkit's methods that panic are found: in Metal's bindings there are 181.
func TestPanicking(t *testing.T) {
	n := 0
	for _, m := range check(t, "", "").Panicking {
		if strings.Contains(m, "/macos/metal.") {
			n++
		}
	}
	if n != 181 {
		t.Errorf("%d methods of darwinkit's Metal bindings panic, v0.5.0 has 181", n)
	}
}

// Whatever is wrong in the file is found.
func TestPlanted(t *testing.T) {
	for _, tc := range []struct{ name, from, to, want string }{
		{"method", "s.device.NewFence()", "s.device.NewFenc()", "NewFenc undefined"},
		{"argument's type", "options.SetLanguageVersion(languageVersion)", `options.SetLanguageVersion("3.0")`, `cannot use "3.0"`},
		{"number of arguments", "s.device.NewCommandQueue()", "s.device.NewCommandQueue(1)", "too many arguments"},
		{"another object", "p.ThreadExecutionWidth()", "library.ThreadExecutionWidth()", "ThreadExecutionWidth undefined"},
		{"result's type", "int(p.ThreadExecutionWidth())", "p.ThreadExecutionWidth()", "cannot use p.ThreadExecutionWidth()"},
		{"variable without use", "var failed foundation.Error", "var failed, more foundation.Error", "declared and not used: more"},
		{"interface not met", "func (s *gpuSystem) pageSize() int", "func (s *gpuSystem) pageSize() uint", "wrong type for method pageSize"},
		{"vet", "s.what.residencySets != 0", "s.what.residencySets != 0 && s.what.residencySets != 0", "redundant and"},
		{"method that panics", "p := objc.Call[metal.ComputePipelineStateObject](s.device, objc.Sel(newPipelineMessage), function, unsafe.Pointer(&failed))",
			"p := s.device.NewComputePipelineStateWithFunctionError(function, unsafe.Pointer(&failed))", "panics at run time"},
		{"C's function", "C.metal_release(o)", "C.metal_releas(o)", "metal_releas"},
		{"C's argument", "C.metal_release(o)", "C.metal_release(1)", "cannot use"},
		{"number of C's arguments", "C.metal_release(o)", "C.metal_release(o, o)", "too many arguments"},
		{"C's struct", "C.metal_facts{}", "C.metal_arg{}", "cannot use"},
		{"package", `"github.com/progrium/darwinkit/objc"`, `"github.com/progrium/darwinkit/objcc"`, "objcc"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := check(t, tc.from, tc.to)
			all := append([]string{}, r.Findings...)
			for _, e := range r.Errors {
				all = append(all, e.Error())
			}
			if !strings.Contains(strings.Join(all, "\n"), tc.want) {
				t.Errorf("want %q, got %q", tc.want, all)
			}
		})
	}
}
