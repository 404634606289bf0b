package msl

import (
	"embed"
	"fmt"
	"regexp"
	"strings"
)

//go:embed prelude
var preludes embed.FS

// Target is a language in which Emit writes a module.
type Target int

// The targets.
const (
	Metal    Target = iota // the source itself, includes resolved
	CUDA                   // for NVRTC or nvcc
	Emulator               // C++14 for g++ or clang, for package gpu/emu
	Lint                   // C++14 for clang -fsyntax-only, with Metal's address spaces
)

// prelude returns a target's declarations of Metal's library.
func prelude(name string) string {
	b, err := preludes.ReadFile("prelude/" + name)
	if err != nil {
		panic(err) // embedded
	}
	s := fmt.Sprintf("#line 1 %q\n%s\n", name, b)
	if name == "vec.h" {
		return s
	}
	return strings.Replace(s, "#include \"vec.h\"", prelude("vec.h"), 1)
}

// EmulatorRuntime is the C++ source of what emulated kernels call: fibers, barriers, memory. It
// becomes a library of its own.
func EmulatorRuntime() string { return prelude("runtime.cpp") }

// LintFlags are the options with which clang++ checks what Emit writes for Lint.
func LintFlags() []string {
	return []string{"-std=c++14", "-fsyntax-only", "-x", "c++", "-Wno-unknown-attributes", "-Wno-c++17-extensions", "-flax-vector-conversions=none"}
}

// cpp reports whether t has no address spaces of its own.
func (t Target) cpp() bool { return t == CUDA || t == Emulator }

func (t Target) prelude() string {
	switch t {
	case CUDA:
		return prelude("cuda.h")
	case Emulator:
		return inOrder + prelude("emulator.h")
	case Lint:
		return inOrder + prelude("lint.h")
	}
	return "#include <metal_stdlib>\nusing namespace metal;\n" + inOrder
}

// inOrder defines the statements as nothing, for targets whose launches start one after the other.
const inOrder = "#define " + launchDependents + "\n#define " + waitPrerequisites + "\n#define PREFETCH(at) (void)(at)\n"

// Emit writes the module for a target with one of its kernels; "" means all. defines are lines
// "#define NAME value\n" that go before it.
func (m *Module) Emit(t Target, kernel, defines string) string {
	var b strings.Builder
	b.WriteString(t.prelude())
	b.WriteString(defines)
	if t.cpp() { // inside the prelude's namespace, so that float4 is its own and not CUDA's
		b.WriteString("namespace metal {\n")
	}
	for _, it := range m.items {
		switch {
		case it.kernel == nil:
			emitText(&b, t, it)
		case kernel == "" || it.kernel.Name == kernel:
			it.kernel.emit(&b, t)
		}
	}
	if t.cpp() {
		b.WriteString("\n}  // namespace metal\n")
	}
	return b.String()
}

// emitText writes what is not a kernel: helpers, structs, tables, directives.
func emitText(b *strings.Builder, t Target, it item) {
	fmt.Fprintf(b, "\n#line %d %q\n", it.toks[0].line, it.file)
	for i, x := range it.toks {
		switch {
		case x.text == "inline" && t.cpp():
			x.text = "MSL_FN"
		case x.text == "static" && t.cpp() && textAt(it.toks, next(it.toks, i)) == "inline":
			x.text = ""
		}
		b.WriteString(plain(x, t))
	}
}

var spaces = regexp.MustCompile(`\b(device|constant|threadgroup|thread)\b`)

// plain returns a token's text, without address spaces where the target has none. They cannot be
// macros: CUDA's own headers spell __device__ as __attribute__((device)).
func plain(x tok, t Target) string {
	switch {
	case x.text == table && t.cpp():
		return "MSL_CONSTANT"
	case x.text == table:
		return "constant"
	case t.cpp() && x.text == "constant":
		return "const"
	case t.cpp() && (x.kind == word || x.kind == directive):
		return spaces.ReplaceAllString(x.text, "")
	}
	return x.text
}
