package cuda

import (
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
	// CacheDir is where compiled kernels are kept from run to run. "" keeps none: each run compiles anew, which takes some seconds.
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
