//go:build darwin || linux

package metal

import "unsafe"

// object is one of Metal's, by its address, retained. It is the system's memory, not Go's.
type object = unsafe.Pointer

// launchEntry, argEntry, target, result and facts mirror metal_launch, metal_arg, metal_target,
// metal_result and metal_facts of encode.h, which say what their fields are.
type launchEntry struct {
	pipeline     uintptr
	groups       [3]uint32
	threads      uint32
	first, count uint32
}

type argEntry struct {
	buffer         uintptr
	offset, length uint64
}

type target struct {
	queue, fence uintptr
	wait, told   int32
}

type result struct {
	failed, code int64
	seconds      float64
	text         [512]byte
}

type facts struct {
	metal3, residencySets int64
	maxBuffer, workingSet uint64
}

// compiled is a pipeline with what Metal says of it.
type compiled struct {
	pipeline   object
	width      int // of a simdgroup
	maxThreads int // of a threadgroup
}

// table is the launches of a command buffer.
type table struct {
	launches  []launchEntry
	args      []argEntry
	constants []byte
}

// system is Metal on one GPU. Its methods may be called from many goroutines.
type system interface {
	name() string
	facts() facts
	pageSize() int
	// compile makes a pipeline of a kernel of a source. The error is what Metal says.
	compile(source, kernel string) (compiled, error)
	// wrap makes a buffer of the n bytes at at, whole pages, without a copy, and has it resident
	// from then on. It returns where kernels find it; a nil object if Metal gives none.
	wrap(at uintptr, n int) (buffer object, address uint64)
	// unwrap undoes wrap; the pages can be given back afterwards.
	unwrap(buffer object)
	// newQueue makes a command queue, whose command buffers have what is wrapped resident, and a
	// fence.
	newQueue() (queue, fence object, err error)
	// submit is metal_submit; nil if Metal gives no command buffer.
	submit(to *target, t *table, ticket uint64) (commandBuffer object)
	// finish is metal_finish.
	finish(commandBuffer object, r *result)
	// release gives a pipeline, queue or fence back.
	release(object)
	// close gives the device back.
	close()
}
