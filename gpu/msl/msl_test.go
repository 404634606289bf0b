package msl

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/testenv"
)

func parseText(src string) (*Module, error) {
	return Parse("t.metal", func(string) (string, error) { return src, nil })
}

const good = `#include <metal_stdlib>
using namespace metal;
inline float twice(device const float* p, uint i) { return p[i] * 2.0f; }
kernel void k(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], constant uint& n [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  if (i < n) y[i] = twice(x, i);
}
`

// TestSubset breaks each rule once and expects a report with its line.
func TestSubset(t *testing.T) {
	if _, err := parseText(good); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ old, new, want string }{
		"not inline":          {"inline float", "float", "t.metal:3: helper function twice must be inline"},
		"no address space":    {"twice(device const float*", "twice(const float*", "t.metal:3: parameter p points to no address space"},
		"no index":            {"device float* y [[buffer(1)]]", "device float* y", "t.metal:4: parameter without"},
		"index twice":         {"buffer(1)", "buffer(0)", "parameter y: [[buffer(0)]] in place 1"},
		"index left out":      {"buffer(2)", "buffer(3)", "parameter n: [[buffer(3)]] in place 2"},
		"double":              {"2.0f", "float(double(2))", "t.metal:3: double"},
		"bfloat":              {"2.0f", "float(bfloat(2))", "store bf16 as ushort"},
		"standard library":    {"if (i < n)", "std::swap(i, i); if (i < n)", "t.metal:5: std"},
		"size_t":              {"if (i < n)", "size_t j = i; if (j < n)", "use uint or ulong"},
		"ballot":              {"if (i < n)", "simd_ballot(true); if (i < n)", "simd_ballot"},
		"swizzle":             {"if (i < n)", "float4 v; v.xy = v.zw; if (i < n)", ".xy: no swizzles"},
		"packed":              {"if (i < n)", "packed_float3 v; if (i < n)", "packed_float3"},
		"lambda":              {"if (i < n)", "auto f = [](uint j) { return j; }; if (i < n)", "a lambda"},
		"mixed positions":     {"uint i [[thread_position_in_grid]]", "uint i [[thread_position_in_grid]], uint2 g [[threadgroup_position_in_grid]]", "positions are all"},
		"position twice":      {"uint i [[thread_position_in_grid]]", "uint i [[thread_position_in_grid]], uint g [[thread_position_in_grid]]", "stands twice"},
		"index type":          {"uint i [[thread_position_in_grid]]", "int i [[thread_index_in_threadgroup]]", "an index is uint or ushort"},
		"early return":        {"if (i < n)", "if (i >= n) return; threadgroup_barrier(mem_flags::mem_threadgroup);", "t.metal:5: kernel k: a return before"},
		"two variables":       {"if (i < n)", "threadgroup float a[2], b[2]; if (i < n)", "one variable"},
		"initialiser":         {"if (i < n)", "threadgroup float a = 1.0f; if (i < n)", "no initialiser"},
		"helper's memory":     {"{ return p[i]", "{ threadgroup float s[4 * 2]; return p[i]", "a threadgroup variable in a helper"},
		"device reference":    {"constant uint& n", "device uint& n", "parameter n: want"},
		"threadgroup pointer": {"device float* y [[buffer(1)]]", "threadgroup float* y [[threadgroup(0)]]", "parameter without a [[buffer(n)]]"},
		"function constant":   {"kernel", "constant uint f [[function_constant(0)]];\nkernel", "function constants"},
		"template kernel":     {"kernel void", "template<class T> [[host_name(\"k\")]] kernel void", "host_name"},
		"other header":        {"metal_stdlib", "metal_math", "include <metal_math>"},
		"threads":             {"kernel void", "[[max_total_threads_per_threadgroup(48)]]\nkernel void", "a multiple of 32"},
		"not void":            {"kernel void", "kernel int", "kernel void name"},
		"two kernels":         {"inline", "kernel void k() {}\ninline", "a second kernel k"},
		"open brace":          {"twice(x, i);\n}", "twice(x, i);\n", "inside brackets"},
		"waits alone":         {"if (i < n)", "WAIT_PREREQUISITES if (i < n)", "use LAUNCH_DEPENDENTS and WAIT_PREREQUISITES once each"},
		"waits twice":         {"if (i < n)", "LAUNCH_DEPENDENTS LAUNCH_DEPENDENTS WAIT_PREREQUISITES WAIT_PREREQUISITES if (i < n)", "once each, or neither"},
		"closing brace":       {"inline", "}\ninline", "closes nothing"},
	} {
		src := strings.Replace(good, c.old, c.new, 1)
		_, err := parseText(src)
		var subset *SubsetError
		if !errors.As(err, &subset) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}
}

func TestParseReads(t *testing.T) {
	files := map[string]string{
		"a.metal": "#include \"b.metal\"\n#include \"b.metal\"\n" + good,
		"b.metal": "inline float one() { return 1.0f; }\n",
	}
	read := func(name string) (string, error) {
		if s, ok := files[name]; ok {
			return s, nil
		}
		return "", fmt.Errorf("no %s", name)
	}
	m, err := Parse("a.metal", read)
	if err != nil {
		t.Fatal(err)
	}
	if s := m.Emit(Metal, "", ""); strings.Count(s, "float one()") != 1 {
		t.Errorf("a file that is included twice stands there %d times", strings.Count(s, "float one()"))
	}
	if _, err := Parse("c.metal", read); err == nil || !strings.Contains(err.Error(), "c.metal") {
		t.Errorf("a file that is not there: %v", err)
	}
	k := m.Kernel("k")
	if k == nil || m.Kernel("none") != nil {
		t.Fatal("kernels are not found by name")
	}
	want := []Arg{{Buffer, "float", "x", true}, {Buffer, "float", "y", false}, {Bytes, "uint", "n", true}}
	if fmt.Sprint(k.Args) != fmt.Sprint(want) {
		t.Errorf("arguments %v, want %v", k.Args, want)
	}
}

// TestEmit checks what becomes of each construct.
func TestEmit(t *testing.T) {
	m, err := parseText(`#include <metal_stdlib>
using namespace metal;
constant float TABLE[2] = {1.0f, 2.0f};
struct Params { uint n; };
static inline float first(threadgroup const float* p) { return p[0]; }
[[max_total_threads_per_threadgroup(64)]]
kernel void k(device const float* x [[buffer(0)]], constant Params& p [[buffer(1)]], device float* y [[buffer(2)]],
              uint2 g [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float s[2 * N]
      [32];
  s[0][lane] = TABLE[0];
  y[0] = first(s[0]);
}
kernel void other(device float* y [[buffer(0)]]) { LAUNCH_DEPENDENTS PREFETCH(y); WAIT_PREREQUISITES y[0] = 1.0f; }
`)
	if err != nil {
		t.Fatal(err)
	}
	for target, want := range map[Target][]string{
		Metal: {"#define N 4\n", "constant float TABLE", "[[max_total_threads_per_threadgroup(64)]]", "threadgroup float s[2 * N] [32]",
			"constant Params& p [[buffer(1)]]"},
		CUDA: {"#define N 4\n", "MSL_CONSTANT float TABLE", "extern \"C\" __global__ void __launch_bounds__(64) k(const float* MSL_RESTRICT x, const Params p, float* y) {\n  MSL_BEGIN\n",
			"__shared__ float s[2 * N] [32]", "const uint2 g = uint2(blockIdx.x, blockIdx.y)", "MSL_FN float first( const float* p)"},
		Emulator: {"#define N 4\n", "struct k__tg { alignas(16) float s[2 * N] [32]; }", "float (&s)[2 * N] [32] = msl_tg->s",
			"k__meta[] = {sizeof(k__tg), alignof(float), sizeof(Params), alignof(float)}", "#line 8"},
		Lint: {"#define N 4\n", "static threadgroup float s", "constant Params& p"},
	} {
		got := m.Emit(target, "k", "#define N 4\n")
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("target %d: no %q in\n%s", target, w, got[strings.Index(got, "#define N"):])
			}
		}
		if strings.Contains(got, "void other") {
			t.Errorf("target %d has the other kernel, too", target)
		}
	}
	if !strings.Contains(m.Emit(CUDA, "", ""), "void other") {
		t.Error("without a name not all kernels are written")
	}
	// a kernel with the two statements
	for target, want := range map[Target]string{CUDA: "#define WAIT_PREREQUISITES asm volatile", Metal: "#define WAIT_PREREQUISITES\n", Emulator: "#define WAIT_PREREQUISITES\n"} {
		got := m.Emit(target, "other", "")
		if _, body, _ := strings.Cut(got, "void other"); !strings.Contains(got, want) || strings.Contains(body, "MSL_BEGIN") || !strings.Contains(body, "LAUNCH_DEPENDENTS PREFETCH(y); WAIT_PREREQUISITES y[0]") {
			t.Errorf("target %d: no %q, or another body in\n%s", target, want, body)
		}
	}
}

// lintText returns what clang says about a source.
func lintText(t *testing.T, compiler, src string) string {
	t.Helper()
	m, err := parseText(src)
	if err != nil {
		t.Fatal(err)
	}
	f := filepath.Join(t.TempDir(), "t.cpp")
	if err := os.WriteFile(f, []byte(m.Emit(Lint, "", "")), 0o644); err != nil {
		t.Fatal(err)
	}
	out, _ := exec.Command(compiler, append(LintFlags(), f)...).CombinedOutput()
	return string(out)
}

// TestAddressSpaces asks clang to find pointers of another address space, and what Metal does not
// have.
func TestAddressSpaces(t *testing.T) {
	compiler := testenv.Clang(t)
	if out := lintText(t, compiler, good); strings.Contains(out, "error") {
		t.Fatal(out)
	}
	for name, c := range map[string]struct{ old, new string }{
		"threadgroup for device":                {"if (i < n)", "threadgroup float s[32]; if (i < n) y[0] = twice(s, 0); else"},
		"thread for device":                     {"if (i < n)", "float s[32]; if (i < n) y[0] = twice(s, 0); else"},
		"write to constant":                     {"if (i < n)", "n = 3; if (i < n)"},
		"function not in Metal":                 {"p[i] * 2.0f", "log1p(p[i])"},
		"float4 from a device pointer to uint4": {"if (i < n)", "device const uint4* q = (device const uint4*)x; float4 f = q[0]; if (i < n)"},
	} {
		if out := lintText(t, compiler, strings.Replace(good, c.old, c.new, 1)); !strings.Contains(out, "error") {
			t.Errorf("%s: clang found nothing", name)
		}
	}
}

// Any text gives a module or an error, never a panic.
func FuzzParse(f *testing.F) {
	f.Add(good)
	f.Add("kernel void k(")
	f.Add("[[")
	f.Add("#if\nkernel void k")
	f.Add("kernel void k() { threadgroup float a[2 *")
	f.Add("constant float T[2] = {1, 2}; struct S { device float* p; };")
	f.Fuzz(func(t *testing.T, src string) {
		m, err := Parse("f.metal", func(name string) (string, error) {
			if name != "f.metal" {
				return "", errors.New("no such file")
			}
			return src, nil
		})
		if err != nil {
			return
		}
		for _, target := range []Target{Metal, CUDA, Emulator, Lint} {
			m.Emit(target, "", "")
		}
	})
}
