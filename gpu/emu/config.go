package emu

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"golang.org/x/sys/cpu"
)

// Order is the order in which the threads of a threadgroup run between two barriers.
type Order uint32

// The orders. Up and Down run one simdgroup as far as it can go, and then the next. Shuffled lets
// each thread in turn run to its next simd function or barrier, in random order. Any other value is
// a shuffle with a different seed.
const (
	Up Order = iota
	Down
	Shuffled
)

// maxThreads bounds Config.Threads: more is a mistake, not a machine.
const maxThreads = 1024

// Config says how kernels are built and run. The zero value is ready for use.
type Config struct {
	// Compiler is the C++ compiler's path or name. "" means the first of g++, clang++ and c++ that
	// PATH has.
	Compiler string
	// Order is the order of the threads of a threadgroup.
	Order Order
	// Threads is how many threadgroups run at once. 0 means one for each core this process may use.
	Threads int
	// Cache is a directory that keeps compiled kernels by the hash of source, compiler and options.
	// It is created if it is missing. "" compiles every kernel anew.
	Cache string
}

// Validate reports the fields that Open refuses.
func (c Config) Validate() error {
	if c.Threads < 0 || c.Threads > maxThreads {
		return fmt.Errorf("emu: Config.Threads is %d, outside 0 (all cores) to %d", c.Threads, maxThreads)
	}
	return nil
}

// compilers are looked for in this order.
var compilers = []string{"g++", "clang++", "c++"}

// ErrNoCompiler is wrapped by Open's error when there is no C++ compiler.
var ErrNoCompiler = errors.New("no C++ compiler")

// compiler builds shared libraries.
type compiler struct {
	path, version string
	flags         []string
}

func findCompiler(name string) (*compiler, error) {
	names := compilers
	if name != "" {
		names = []string{name}
	}
	var errs []error
	for _, n := range names {
		path, err := exec.LookPath(n)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		version, err := exec.Command(path, "--version").Output()
		if err != nil {
			errs = append(errs, fmt.Errorf("%s --version: %w", path, err))
			continue
		}
		return &compiler{path, string(version), compilerFlags()}, nil
	}
	return nil, fmt.Errorf("emu: %w to build kernels with (Debian, Ubuntu: apt-get install g++): %w", ErrNoCompiler, errors.Join(errs...))
}

// compilerFlags are the flags of every build. Products and sums are fused only where kernels say
// fma. Fibers jump between stacks, which a fortified longjmp refuses. clang warns of loops that it
// does not unroll (pass-failed), which matters on a GPU alone.
func compilerFlags() []string {
	flags := []string{"-std=c++14", "-O1", "-shared", "-fPIC", "-pthread", "-U_FORTIFY_SOURCE", "-ffp-contract=off", "-fno-math-errno",
		"-Wall", "-Werror", "-Wno-unknown-pragmas", "-Wno-pass-failed",
		"-Wno-unused-function", "-Wno-unused-variable", "-Wno-unused-but-set-variable"}
	if runtime.GOARCH == "amd64" && cpu.X86.HasFMA && cpu.X86.HasAVX2 {
		flags = append(flags, "-mavx2", "-mfma", "-mf16c")
	}
	return flags
}

// build compiles the source file to a shared library.
func (c *compiler) build(source, library string) error {
	args := append(append([]string{}, c.flags...), "-o", library, source)
	cmd := exec.Command(c.path, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("emu: %s: %w\n%s", c.path, err, firstLines(string(out), 20))
	}
	return nil
}

func firstLines(s string, n int) string {
	lines := strings.SplitN(s, "\n", n+1)
	return strings.Join(lines[:min(n, len(lines))], "\n")
}
