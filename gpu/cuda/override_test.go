//go:build linux && (amd64 || arm64)

package cuda

import (
	"regexp"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu/launch"
)

// Every kernel of override/ is found, with what it includes and behind its #define lines.
func TestOverrideSource(t *testing.T) {
	for _, name := range []string{"limbs_split", "limbs_matmul", "limbs_swiglu", "limbs_experts"} {
		s, err := overrideSource(launch.Kernel{Name: name, Defines: "#define BITS 4\n"})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(s, "#define BITS 4\n") || strings.Contains(s, "#include") || strings.Count(s, "__global__") != 1 ||
			strings.Count(s, "typedef unsigned char u8;") != 1 || !strings.Contains(s, " "+name+"(") {
			t.Errorf("the source of %s is not whole:\n%s", name, s)
		}
	}
	if _, err := overrideSource(launch.Kernel{Name: "nothing"}); err == nil || !strings.Contains(err.Error(), "nothing") {
		t.Errorf("a kernel that is not there: %v", err)
	}
}

// Every kernel of override/ begins with begin, before it reads any memory: it may run while those
// before it do.
func TestOverridesWait(t *testing.T) {
	first := regexp.MustCompile(`^[^{]*\{\n(  __shared__ [^;\n]*;\n)?  begin\(\);\n`)
	files, err := overrides.ReadDir("override")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range files {
		text, err := overrides.ReadFile("override/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, kernel := range strings.Split(string(text), "__global__")[1:] {
			n++
			if !first.MatchString(kernel) || strings.Contains(kernel, "__restrict__") {
				t.Errorf("%s: a kernel does not wait before all else, or its pointers are restricted", f.Name())
			}
		}
	}
	if n != 4 {
		t.Errorf("%d kernels were looked at, want 4", n)
	}
}

// GPUs before sm_80 have no such tensor cores and keep the portable kernels.
func TestLimbProducts(t *testing.T) {
	for major, want := range map[int32]bool{7: false, 8: true, 9: true, 12: true} {
		f := newFake(t)
		f.major = major
		b, err := newBackend(Config{}, f.driver(), func(int) (*compiler, error) { return fakeCompiler(new(int)), nil })
		if err != nil {
			t.Fatal(err)
		}
		if got := b.LimbProducts(); got != want {
			t.Errorf("%s: products of limbs %v, want %v", b.arch, got, want)
		}
		if want {
			if _, err := b.CompileOwn(launch.Kernel{Name: "limbs_split"}); err != nil {
				t.Error(err)
			}
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
}
