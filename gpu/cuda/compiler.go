//go:build linux && (amd64 || arm64)

package cuda

import (
	"bytes"
	"errors"
	"fmt"
	"unsafe"
)

// compiler holds the functions of NVRTC that are used. It needs no GPU. Tests replace them.
type compiler struct {
	path string // of the library

	version func(major, minor *int32) result
	create  func(program *uintptr, source, name []byte) result
	compile func(program uintptr, options []*byte) result
	logSize func(program uintptr, n *uint64) result
	log     func(program uintptr, b []byte) result
	size    func(program uintptr, n *uint64) result
	code    func(program uintptr, b []byte) result
	destroy func(program *uintptr) result
	text    func(r result) string

	handlers map[uintptr]bool // of signals, see keepSignalStacks
}

// CompileError reports a kernel that the compiler refused.
type CompileError struct {
	Kernel, Defines string
	Options         []string
	Log             string // the compiler's
	Err             error
}

func (e *CompileError) Error() string {
	return fmt.Sprintf("cuda: compiling kernel %s with %q and options %q: %v\n%s", e.Kernel, e.Defines, e.Options, e.Err, e.Log)
}

// Unwrap returns the cause.
func (e *CompileError) Unwrap() error { return e.Err }

// openCompiler opens NVRTC and finds its functions.
func openCompiler(cfg Config, driverMajor int) (*compiler, error) {
	s := compilerSearch(cfg, driverMajor)
	lib, err := s.open()
	if err != nil {
		return nil, err
	}
	preload(lib.path, "libnvrtc-builtins.so.*")
	c := &compiler{path: lib.path}
	sym := &symbols{lib: lib}
	c.bind(sym)
	return c, sym.err
}

func (c *compiler) bind(s *symbols) {
	version, create, compile, destroy := s.proc("nvrtcVersion"), s.proc("nvrtcCreateProgram"), s.proc("nvrtcCompileProgram"), s.proc("nvrtcDestroyProgram")
	logSize, log, size, code := s.proc("nvrtcGetProgramLogSize"), s.proc("nvrtcGetProgramLog"), s.proc("nvrtcGetCUBINSize"), s.proc("nvrtcGetCUBIN")
	text := s.proc("nvrtcGetErrorString")

	c.version = func(major, minor *int32) result {
		return version.call(uintptr(unsafe.Pointer(major)), uintptr(unsafe.Pointer(minor)))
	}
	c.create = func(program *uintptr, source, name []byte) result {
		return create.call(uintptr(unsafe.Pointer(program)), uintptr(unsafe.Pointer(&source[0])), uintptr(unsafe.Pointer(&name[0])), 0, 0, 0)
	}
	c.compile = func(program uintptr, options []*byte) result {
		return compile.call(program, uintptr(len(options)), uintptr(unsafe.Pointer(unsafe.SliceData(options))))
	}
	sizeOf := func(p proc) func(uintptr, *uint64) result {
		return func(program uintptr, n *uint64) result { return p.call(program, uintptr(unsafe.Pointer(n))) }
	}
	bytesOf := func(p proc) func(uintptr, []byte) result {
		return func(program uintptr, b []byte) result {
			return p.call(program, uintptr(unsafe.Pointer(unsafe.SliceData(b))))
		}
	}
	c.logSize, c.log, c.size, c.code = sizeOf(logSize), bytesOf(log), sizeOf(size), bytesOf(code)
	c.destroy = func(program *uintptr) result { return destroy.call(uintptr(unsafe.Pointer(program))) }
	c.text = func(r result) string {
		// The function returns a pointer; call would cut it to an int.
		return cString(text.pointer(uintptr(r)))
	}
}

// check returns nil for success, else the compiler's error.
func (c *compiler) check(r result, function string) error {
	if r == success {
		return nil
	}
	return &Error{Function: function, Code: int(r), Text: c.text(r)}
}

// versionText returns the compiler's version: "13.0".
func (c *compiler) versionText() (string, error) {
	var major, minor int32
	if err := c.check(c.version(&major, &minor), "nvrtcVersion"); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d.%d", major, minor), nil
}

// parallel reports whether several compiles run at once: from CUDA 12.3 on. Before it each waits
// for those that began earlier.
func (c *compiler) parallel() bool {
	var major, minor int32
	return c.version(&major, &minor) == success && (major > 12 || major == 12 && minor >= 3)
}

// options are those of every kernel. The source chooses fast functions one by one:
// --use_fast_math would also make the precise ones fast. Quotients are exact, because fast ones are
// 0 if the divisor is above 2^126. Products and sums are fused only where the source says fma: left
// to itself the compiler fuses in one specialisation of a kernel and not in another, and bits would
// depend on the rows that travel together.
func options(arch string) []string {
	return []string{"--gpu-architecture=" + arch, "--std=c++14", "--ftz=true", "--prec-div=true", "--prec-sqrt=false", "--fmad=false"}
}

// build compiles a source to machine code of an architecture: "sm_90". The error's log is the
// compiler's. It may be called from many goroutines: NVRTC keeps programs apart, and from CUDA 12.3
// on compiles several at once.
func (c *compiler) build(source string, opts []string) (image []byte, log string, err error) {
	var program uintptr
	if err := c.check(c.create(&program, zeroTerminated(source), zeroTerminated("kernels.cu")), "nvrtcCreateProgram"); err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, c.check(c.destroy(&program), "nvrtcDestroyProgram")) }()
	pointers := make([]*byte, len(opts))
	for i, o := range opts {
		pointers[i] = &zeroTerminated(o)[0]
	}
	failed := c.check(c.compile(program, pointers), "nvrtcCompileProgram")
	keepSignalStacks(c.handlers)
	text, err := c.read(program, c.logSize, c.log, "nvrtcGetProgramLog")
	log = string(bytes.TrimRight(text, "\x00\n"))
	if failed != nil || err != nil {
		return nil, log, errors.Join(failed, err)
	}
	image, err = c.read(program, c.size, c.code, "nvrtcGetCUBIN")
	return image, log, err
}

// read fetches what the compiler made: its size, then its bytes.
func (c *compiler) read(program uintptr, size func(uintptr, *uint64) result, get func(uintptr, []byte) result, function string) ([]byte, error) {
	var n uint64
	if err := c.check(size(program, &n), function+"Size"); err != nil || n == 0 {
		return nil, err
	}
	b := make([]byte, n)
	return b, c.check(get(program, b), function)
}

// zeroTerminated returns the bytes of a C string.
func zeroTerminated(s string) []byte { return append([]byte(s), 0) }
