package cuda

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
)

// Environment variables that name a library's file. They replace the search for it.
const (
	DriverVariable   = "MOEFLUX_CUDA_DRIVER"
	CompilerVariable = "MOEFLUX_CUDA_NVRTC"
)

// Config says which GPU is opened and what it uses. The zero value is ready for use.
type Config struct {
	// Ordinal selects one of the GPUs that the driver shows, counted from 0.
	Ordinal int
	// CacheDir is where compiled kernels are kept between runs. "" keeps none: each run compiles
	// them again, which takes some seconds.
	CacheDir string
	// Ahead is how many kernels are compiled at once in the background, before they are needed.
	// While a product's best kernel is compiled, one that serves as well computes it, more slowly
	// and in the same bits. 0 compiles each kernel when it is needed, and the work waits for it.
	Ahead int
	// Rounded has inputs of products with affine matrices rounded to 8 bits, see gpu.MatMul: those
	// of experts, and of matrices where a product is not exact. It needs a GPU of sm_80 or later.
	Rounded bool
	// Driver and Compiler name the libraries' files; "" searches for them.
	Driver, Compiler string
	// Folders are searched before the usual ones.
	Folders []string
	// Logger gets warnings that do no harm, such as a cache that cannot be written. nil discards
	// them.
	Logger *slog.Logger
}

// LibraryError reports a library that was not found.
type LibraryError struct {
	What     string   // the library, for people
	Variable string   // the environment variable that may name it
	Tried    []string // each place and what was wrong there
}

func (e *LibraryError) Error() string {
	return fmt.Sprintf("cuda: %s was not found; tried %s; if it is somewhere else, set %s to its path", e.What, strings.Join(e.Tried, "; "), e.Variable)
}

// Absent reports whether err, of Open, says that there is no GPU, rather than one that cannot be
// used: no driver, a driver that shows none, or a system that CUDA does not support.
func Absent(err error) bool {
	if e, ok := errors.AsType[*LibraryError](err); ok {
		return e.Variable == DriverVariable
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code == codeNoDevice
	}
	return errors.Is(err, ErrUnsupported)
}

// codeNoDevice is the driver's error where there is no GPU.
const codeNoDevice = 100

// ErrUnsupported is wrapped by Open's error on a system that CUDA does not support.
var ErrUnsupported = errors.New("CUDA needs linux/amd64 or linux/arm64")

// Error reports a function of the driver, or of the compiler, that failed.
type Error struct {
	Function string // "cuMemAlloc_v2"
	Code     int    // CUresult or nvrtcResult
	// the library's text: "CUDA_ERROR_ILLEGAL_ADDRESS, an illegal memory access was
	// encountered"
	Text  string
	Doing string // what it was called for; "" if the function's name says it
}

func (e *Error) Error() string {
	doing := ""
	if e.Doing != "" {
		doing = e.Doing + ": "
	}
	return fmt.Sprintf("cuda: %s%s: error %d, %s", doing, e.Function, e.Code, e.Text)
}
