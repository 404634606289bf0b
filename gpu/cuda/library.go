//go:build linux && (amd64 || arm64)

package cuda

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
)

// search says where a library is looked for.
type search struct {
	what     string
	variable string   // names the file in place of all else
	file     string   // what it names, or ""
	names    []string // for the dynamic linker, in order
	folders  []string // patterns, in order
	patterns []string // of files in these folders, in order
}

// library is an open library. It stays open, because what it started cannot be unloaded.
type library struct {
	handle uintptr
	path   string
}

// driverFolders are where drivers are installed without the dynamic linker's knowledge: containers,
// WSL, NixOS, and a toolkit's own copy.
var driverFolders = []string{
	"/usr/lib/*-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/nvidia/lib64", "/usr/lib/wsl/lib", "/run/opengl-driver/lib", "/usr/local/cuda*/compat",
}

// compilerFolders are where toolkits are installed, and Python packages that contain the compiler.
var compilerFolders = []string{
	"/usr/local/cuda/lib64", "/usr/local/cuda*/lib64", "/usr/local/cuda*/targets/*/lib", "/opt/cuda*/lib64", "/opt/cuda*/targets/*/lib",
	"/usr/lib/*-linux-gnu", "/usr/lib64", "/opt/nvidia/hpc_sdk/*/*/cuda/lib64",
	"/usr/local/lib/python3*/*-packages/nvidia/*/lib", "/usr/lib/python3*/*-packages/nvidia/*/lib",
	"/opt/*/lib/python3*/site-packages/nvidia/*/lib", "/opt/*/.venv/lib/python3*/site-packages/nvidia/*/lib", "/opt/*/*/lib/python3*/site-packages/nvidia/*/lib",
	"/opt/conda/lib", "/opt/conda/lib/python3*/site-packages/nvidia/*/lib",
}

func driverSearch(cfg Config) search {
	return search{
		what: "the NVIDIA driver's library", variable: DriverVariable, file: cfg.Driver,
		names: []string{"libcuda.so.1"}, folders: append(slices.Clone(cfg.Folders), driverFolders...), patterns: []string{"libcuda.so.1"},
	}
}

// compilerSearch looks for a compiler of the driver's generation or an earlier one: the driver does
// not load the code of a later one.
func compilerSearch(cfg Config, driverMajor int) search {
	s := search{
		what: fmt.Sprintf("CUDA's run-time compiler (NVRTC) for a driver of CUDA %d", driverMajor), variable: CompilerVariable, file: cfg.Compiler,
		folders: append(slices.Clone(cfg.Folders), compilerFolders...),
	}
	for v := driverMajor; v >= 11; v-- {
		name := fmt.Sprintf("libnvrtc.so.%d", v)
		if v == 11 {
			name = "libnvrtc.so.11.2" // all of 11.2 to 11.8
		}
		s.names, s.patterns = append(s.names, name), append(s.patterns, name)
	}
	return s
}

// open opens the first that loads. The error is a *LibraryError.
func (s *search) open() (library, error) {
	var tried []string
	try := func(path string) (library, bool) {
		h, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
		if err != nil {
			tried = append(tried, withPath(path, err))
			return library{}, false
		}
		return library{h, path}, true
	}
	if s.file != "" {
		if l, ok := try(s.file); ok {
			return l, nil
		}
		return library{}, &LibraryError{What: s.what, Variable: s.variable, Tried: tried}
	}
	for _, name := range s.names {
		if l, ok := try(name); ok {
			return l, nil
		}
	}
	var empty []string
	for _, pattern := range s.patterns {
		for _, folder := range s.folders {
			found, err := filepath.Glob(filepath.Join(folder, pattern))
			if err != nil || len(found) == 0 {
				if !slices.Contains(empty, folder) {
					empty = append(empty, folder)
				}
				continue
			}
			slices.SortFunc(found, laterFirst)
			for _, path := range found {
				if l, ok := try(path); ok {
					return l, nil
				}
			}
		}
	}
	if len(empty) > 0 {
		tried = append(tried, fmt.Sprintf("%s in %s", strings.Join(s.patterns, ", "), strings.Join(empty, ", ")))
	}
	return library{}, &LibraryError{What: s.what, Variable: s.variable, Tried: tried}
}

// preload opens libraries beside a file, which the file's library later opens by name. If the
// dynamic linker does not look into that folder, it finds them already open. If one cannot be
// opened, the library reports it missing.
func preload(file, pattern string) {
	if !filepath.IsAbs(file) {
		return
	}
	beside, err := filepath.Glob(filepath.Join(filepath.Dir(file), pattern))
	if err != nil {
		return
	}
	for _, path := range beside {
		purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	}
}

// withPath adds the file's name to an error of the dynamic linker, which usually has it already.
func withPath(path string, err error) string {
	if strings.HasPrefix(err.Error(), path) {
		return err.Error()
	}
	return path + ": " + err.Error()
}

// laterFirst orders paths by the numbers in them, the greatest first: cuda-13.0 before cuda-12.8,
// python3.12 before python3.9.
func laterFirst(a, b string) int {
	for a != "" && b != "" {
		x, restA := head(a)
		y, restB := head(b)
		if x != y {
			n, errA := strconv.Atoi(x)
			m, errB := strconv.Atoi(y)
			if errA == nil && errB == nil {
				return m - n
			}
			return strings.Compare(y, x)
		}
		a, b = restA, restB
	}
	return len(b) - len(a)
}

// head splits the run of digits, or of other characters, off a string's beginning.
func head(s string) (first, rest string) {
	digit := func(c byte) bool { return '0' <= c && c <= '9' }
	n := 1
	for n < len(s) && digit(s[n]) == digit(s[0]) {
		n++
	}
	return s[:n], s[n:]
}

// symbols looks up functions; the first that is missing is the error.
type symbols struct {
	lib  library
	err  error
	args *sync.Pool // of *callArgs, for quick procs
}

// callArgs holds the arguments of one call.
type callArgs [11]uintptr

// proc is the address of a C function.
type proc uintptr

// pointer calls a C function that returns a pointer to static memory of its library.
func (p proc) pointer(args ...uintptr) *byte {
	r, _, _ := purego.SyscallN(uintptr(p), args...)
	return *(**byte)(unsafe.Pointer(&r)) // vet knows no other way to take an address of C's
}

func (s *symbols) proc(name string) proc {
	p, err := purego.Dlsym(s.lib.handle, name)
	if err != nil && s.err == nil {
		s.err = fmt.Errorf("cuda: %s has no function %s; install a newer version: %w", s.lib.path, name, err)
	}
	return proc(p)
}

// optional is proc for a function that older versions lack; it returns 0 then.
func (s *symbols) optional(name string) proc {
	p, err := purego.Dlsym(s.lib.handle, name)
	if err != nil {
		return 0
	}
	return proc(p)
}

// call calls a C function that returns an int. It allocates the list of its arguments.
//
//go:uintptrescapes
func (p proc) call(args ...uintptr) result {
	r, _, _ := purego.SyscallN(uintptr(p), args...)
	return result(int32(r))
}

// quickProc is the address of a C function that is called often: a call allocates nothing.
type quickProc struct {
	proc proc
	args *sync.Pool
}

func (s *symbols) quick(name string) quickProc {
	if s.args == nil {
		s.args = &sync.Pool{New: func() any { return new(callArgs) }}
	}
	return quickProc{s.proc(name), s.args}
}

// call calls a function of at most four arguments; a function of fewer ignores the rest.
//
//go:uintptrescapes
func (p quickProc) call(a, b, c, d uintptr) result {
	args := p.args.Get().(*callArgs)
	args[0], args[1], args[2], args[3] = a, b, c, d
	r, _, _ := purego.SyscallN(uintptr(p.proc), args[:4]...)
	p.args.Put(args)
	return result(int32(r))
}

// launch calls cuLaunchKernel.
//
//go:uintptrescapes
func (p quickProc) launch(f functionHandle, groups [3]int, threads int, s streamHandle, params uintptr) result {
	args := p.args.Get().(*callArgs)
	*args = callArgs{uintptr(f), uintptr(groups[0]), uintptr(groups[1]), uintptr(groups[2]), uintptr(threads), 1, 1, 0, uintptr(s), params, 0}
	r, _, _ := purego.SyscallN(uintptr(p.proc), args[:]...)
	p.args.Put(args)
	return result(int32(r))
}
