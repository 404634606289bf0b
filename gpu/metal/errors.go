package metal

import (
	"errors"
	"fmt"
)

// ErrUnsupported is wrapped by Open's error where there is no Metal: on another system, or in a
// program built without cgo.
var ErrUnsupported = errors.New("no Metal")

// ErrNoDevice is wrapped by Open's error on a Mac without a GPU that programs may use.
var ErrNoDevice = errors.New("no GPU")

// CompileError reports a kernel that Metal did not compile.
type CompileError struct {
	Kernel, Defines string
	Err             error // what Metal says
}

func (e *CompileError) Error() string {
	return fmt.Sprintf("metal: compiling kernel %s with %q: %v", e.Kernel, e.Defines, e.Err)
}

// Unwrap returns the cause.
func (e *CompileError) Unwrap() error { return e.Err }

// KernelError reports a kernel, or a launch of one, that this GPU cannot run.
type KernelError struct {
	Kernel, Defines string
	Why             string
}

func (e *KernelError) Error() string {
	return fmt.Sprintf("metal: kernel %s with %q: %s", e.Kernel, e.Defines, e.Why)
}

// CommandError reports a command buffer that failed. What its kernels wrote is undefined.
type CommandError struct {
	Doing string // which kernels ran in it, for people
	Code  int64  // of MTLCommandBufferError
	Text  string // what Metal says
}

func (e *CommandError) Error() string {
	name := commandErrors[e.Code]
	if name == "" {
		name = "unknown to this program"
	}
	return fmt.Sprintf("metal: %s: error %d, %s: %s", e.Doing, e.Code, name, e.Text)
}

// commandErrors are the names of MTLCommandBufferError.
var commandErrors = map[int64]string{
	0: "none", 1: "internal error", 2: "timeout", 3: "page fault", 4: "access revoked", 7: "not permitted", 8: "out of memory", 9: "invalid resource",
	10: "memoryless", 11: "device removed", 12: "stack overflow",
}
