package cuda

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
)

// Environment variables that name a library's file in place of all places where it is looked for.
const (
	DriverVariable   = "MOEFLUX_CUDA_DRIVER"
	CompilerVariable = "MOEFLUX_CUDA_NVRTC"
)

// Config says which GPU is opened and what it uses. The zero value is ready for use.
type Config struct {
	// Ordinal is which of the GPUs that the driver shows, from 0.
	Ordinal int
	// CacheDir is where compiled kernels are kept from run to run. "" keeps none: each run compiles
	// anew, which takes some seconds.
	CacheDir string
	// Driver and Compiler are files in place of those that are looked for; "" looks.
	Driver, Compiler string
	// Folders are looked through before the usual ones.
	Folders []string
	// Logger hears of what does no harm, such as a cache that cannot be written. nil: nobody does.
	Logger *slog.Logger
}

// LibraryError reports a library that was found nowhere.
type LibraryError struct {
	What     string   // which it is, for people
	Variable string   // that may name it
	Tried    []string // each place and what was wrong there
}

func (e *LibraryError) Error() string {
	return fmt.Sprintf("cuda: %s was not found; tried %s; set %s to its file if it lies elsewhere", e.What, strings.Join(e.Tried, "; "), e.Variable)
}

// Absent reports whether err, of Open, says that there is no GPU, rather than one that cannot be
// used: no driver, a driver that shows none, or a system that CUDA does not serve.
func Absent(err error) bool {
	if e, ok := errors.AsType[*LibraryError](err); ok {
		return e.Variable == DriverVariable
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code == codeNoDevice
	}
	return errors.Is(err, ErrUnsupported)
}

// codeNoDevice is what the driver says where there is no GPU.
const codeNoDevice = 100

// ErrUnsupported is wrapped by Open's error on a system that CUDA does not serve.
var ErrUnsupported = errors.New("CUDA needs linux/amd64 or linux/arm64")

// Error is a function of the driver, or of the compiler, that failed.
type Error struct {
	Function string // "cuMemAlloc_v2"
	Code     int    // CUresult or nvrtcResult
	// what the library says of it: "CUDA_ERROR_ILLEGAL_ADDRESS, an illegal memory access was
	// encountered"
	Text  string
	Doing string // for what it was called; "" if the function says it all
}

func (e *Error) Error() string {
	doing := ""
	if e.Doing != "" {
		doing = e.Doing + ": "
	}
	return fmt.Sprintf("cuda: %s%s: error %d, %s", doing, e.Function, e.Code, e.Text)
}
