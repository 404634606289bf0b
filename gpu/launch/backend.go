package launch

import (
	"strings"

	"github.com/moeflux/moeflux-actor/gpu/msl"
)

// Kernel names an entry point of package shaders, or of a back end's own, and specialises it. It is
// comparable: equal kernels are one pipeline.
type Kernel struct {
	Name string
	// Defines are lines "#define NAME value\n", the same on all back ends, put before the source.
	Defines string
}

// Memory is a piece of a back end's memory.
type Memory interface {
	// Bytes returns the memory if the host can address it, else nil.
	Bytes() []byte
	// Address is where kernels find it: tables of pointers that a Device uploads hold it, plus an
	// offset. A kernel may reach any memory that is not released that way.
	Address() uint64
	// Release gives it back; of wrapped memory only the wrapping. It is called once, when no
	// submitted work uses it.
	Release()
}

// Arg is one argument of a Launch: memory from Offset (bytes) on, or, without Memory, constants by
// value.
type Arg struct {
	Memory Memory
	Offset int
	// Bytes mirror the parameter's type. The stream does not keep them after Launch returns.
	Bytes []byte
}

// Launch is one run of a kernel over Groups threadgroups (x, y, z; y and z at most 65535) of
// Threads threads, a multiple of 32 up to 1024. Args are in the order of the kernel's parameters,
// which is that of their indices: Args[i] is [[buffer(i)]].
type Launch struct {
	Kernel  Kernel
	Groups  [3]int
	Threads int
	Args    []Arg
}

// Pipeline is what a Backend compiled of a Kernel. Close of the Backend gives back what it holds.
type Pipeline any

// Backend is a device that runs kernels. Its methods may be called from many goroutines.
type Backend interface {
	// Name describes the device for people.
	Name() string
	// NewMemory returns n > 0 zeroed bytes, aligned to at least 64. Where the device has no room
	// the error wraps gpu.ErrOutOfMemory and says how much was asked and how much there is.
	NewMemory(n int) (Memory, error)
	// Wrap makes host memory visible to kernels, see gpu.Device. mem begins at a multiple of 4 and
	// is not empty.
	Wrap(mem []byte) (Memory, error)
	// Compile makes a pipeline of k, which m holds: m.Emit(target, k.Name, k.Defines) is its
	// source. It may take seconds; a Device compiles a kernel once.
	Compile(k Kernel, m *msl.Module) (Pipeline, error)
	// NewStream returns a stream. Work in different streams has no order.
	NewStream() (Stream, error)
	// Close gives everything back. Streams are closed and memory is released before.
	Close() error
}

// Asynchronous is a Backend whose streams record work in microseconds and never call done
// before Commit has returned. Commands are encoded in Submit then, which saves waking another
// goroutine twice a layer; a kernel that is new is compiled there, too.
type Asynchronous interface {
	Backend
	// Asynchronous marks the type; it does nothing.
	Asynchronous()
}

// Stream runs launches and copies in the order of the calls; each sees what the earlier ones wrote.
// All methods are called from one goroutine at a time, which unless the back end is Asynchronous is
// the one that made the stream. It is not locked to its thread, because a locked goroutine takes
// ten times as long to wake: a back end that needs a thread's context makes it current in each
// call. They may return before the work is done. After an error of a method the stream is given no
// more work of the same Submit, but Commit is called, and then work of other Submits follows.
type Stream interface {
	// Launch runs a kernel; p was compiled of l.Kernel. l and its Args are the caller's again when
	// it returns.
	Launch(p Pipeline, l *Launch) error
	// CopyIn copies src to dst. src is left alone until done of the next Commit is called.
	CopyIn(dst Memory, offset int, src []byte) error
	// CopyOut copies from src to dst, which is written when done of the next Commit is called.
	CopyOut(dst []byte, src Memory, offset int) error
	// Fill sets n bytes to zero.
	Fill(dst Memory, offset, n int) error
	// Commit ends the work of one Submit. done is called once, when all work since the Commit
	// before is complete, in the order of the Commits: with how long the device worked on it, in
	// nanoseconds, and nil or what failed. It may be called before Commit returns, or later from a
	// goroutine of the back end. It does not block.
	Commit(done func(ns int64, err error))
	// Close waits for the work and for the calls of done, and ends the stream.
	Close() error
}

// Waiter is a Stream that calls done late if the call before took long.
type Waiter interface {
	Stream
	// Waited reports, while done is called, whether the device was still at work when the stream
	// began to wait for it.
	Waited() bool
}

// Marker is a Stream that can tell the time amid the work of a Submit, see gpu.Mark.
type Marker interface {
	Stream
	// Mark has the stream write to ns, before done of the next Commit is called, how long the
	// device had worked when all work since the Commit before was done, in nanoseconds on the clock
	// of done, and at least 1.
	Mark(ns *int64) error
}

// Doing says what the work of a Commit did that launched kernels of these names, each given once:
// for the error of one that failed.
func Doing(kernels []string) string {
	switch len(kernels) {
	case 0:
		return "copies"
	case 1:
		return "kernel " + kernels[0]
	}
	return "one of the kernels " + strings.Join(kernels, ", ")
}
