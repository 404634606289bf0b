//go:build linux && (amd64 || arm64)

package cuda

import (
	"regexp"
	"slices"
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

// Every kernel of override/ begins with begin or begin_settled, before it reads any memory: it may
// run while those before it do. An EARLY one lets the next kernel start, and waits once its first
// codes are being loaded, or before it returns.
func TestOverridesWait(t *testing.T) {
	first := regexp.MustCompile(`^[^{]*\{\n(  __shared__ [^;\n]*;\n)?(  begin\(\);\n|` +
		`#if EARLY\n  launch_dependents\(\);\n#else\n` +
		`(  //[^\n]*\n|  const u32 group = blockIdx[^\n]*\n|  if [^\n]*prefetch[^\n]*\n)*` +
		`  begin(_settled)?\(\);\n#endif\n|` +
		`  launch_dependents\(\);\n)`)
	product, err := overrides.ReadFile("override/product.cu")
	if err != nil {
		t.Fatal(err)
	}
	waits := regexp.MustCompile(`load_codes\(codes\[m\]\[i\], tiles\[m\], i, i < left\);\n  \}\n#if EARLY\n  wait_prerequisites\(\);[^\n]*\n#endif\n`)
	if !waits.Match(product) {
		t.Error("product.cu: an early kernel does not wait right after it loads the first codes")
	}
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
			early := regexp.MustCompile(`#define EARLY (1|!STAGED|\(SETTLED && !STAGED\))\n`).Match(text)
			if m := first.FindString(kernel); m == "" || strings.Contains(m, "launch_dependents") != early || strings.Contains(kernel, "__restrict__") {
				t.Errorf("%s: a kernel does not wait before all else, or its pointers are restricted", f.Name())
			}
			returns := regexp.MustCompile(`\n[^\n]*\n[^\n]*\n *return;`).FindAllString(kernel, -1)
			waits := func(s string) bool { return strings.Contains(s, "wait_prerequisites();") }
			if slices.ContainsFunc(returns, func(s string) bool { return !waits(s) }) {
				t.Errorf("%s: a kernel returns before it has waited", f.Name())
			}
		}
	}
	if n != 4 {
		t.Errorf("%d kernels were looked at, want 4", n)
	}
}

// What the driver says of a GPU decides what its kernels are compiled for, and for how many
// processors work is cut. GPUs before sm_80 have no integer tensor cores of that kind and keep the
// portable kernels.
func TestGPUs(t *testing.T) {
	for _, g := range []struct {
		name              string
		major, minor, sms int32
		arch              string
		limbs             bool
	}{
		{"V100", 7, 0, 80, "sm_70", false},
		{"A100", 8, 0, 108, "sm_80", true},
		{"RTX 3090", 8, 6, 82, "sm_86", true},
		{"RTX 4090", 8, 9, 128, "sm_89", true},
		{"H200", 9, 0, 132, "sm_90", true},
		{"B200", 10, 0, 148, "sm_100", true},
		{"RTX 5090", 12, 0, 170, "sm_120", true},
	} {
		t.Run(g.name, func(t *testing.T) {
			f := newFake(t)
			f.major, f.minor, f.sms = g.major, g.minor, g.sms
			b, err := newBackend(Config{}, f.driver(), func(int) (*compiler, error) { return fakeCompiler(new(int)), nil })
			if err != nil {
				t.Fatal(err)
			}
			if b.arch != g.arch || b.Processors() != int(g.sms) || b.LimbProducts() != g.limbs {
				t.Errorf("%s with %d multiprocessors, products of limbs %v", b.arch, b.Processors(), b.LimbProducts())
			}
			if g.limbs {
				if _, err := b.CompileOwn(launch.Kernel{Name: "limbs_split"}); err != nil {
					t.Error(err)
				}
			}
			if err := b.Close(); err != nil {
				t.Error(err)
			}
			rounding, err := newBackend(Config{Rounded: true}, f.driver(), func(int) (*compiler, error) { return fakeCompiler(new(int)), nil })
			switch {
			case !g.limbs && (err == nil || !strings.Contains(err.Error(), "inputs of 8 bits need a GPU of sm_80")):
				t.Errorf("with inputs of 8 bits: %v", err)
			case g.limbs && err != nil:
				t.Error(err)
			case g.limbs:
				if !rounding.Rounds() || b.Rounds() || !strings.HasSuffix(rounding.Name(), ", int8)") {
					t.Errorf("%s rounds: %v, by default %v", rounding.Name(), rounding.Rounds(), b.Rounds())
				}
				if err := rounding.Close(); err != nil {
					t.Error(err)
				}
			}
			f.rest()
		})
	}
}

// A driver that says that a GPU has no multiprocessors is not believed.
func TestNoProcessors(t *testing.T) {
	f := newFake(t)
	f.sms = 0
	_, err := newBackend(Config{}, f.driver(), func(int) (*compiler, error) { return fakeCompiler(new(int)), nil })
	if err == nil || !strings.Contains(err.Error(), "0 multiprocessors") {
		t.Errorf("opening a GPU without multiprocessors: %v", err)
	}
}
