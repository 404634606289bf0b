package launch

import (
	"fmt"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/moeflux/moeflux-actor/gpu"
)

// OpError reports an operation that could not be encoded or launched. It and those after it in its
// Commands did not run. Of operations that are one launch it is the first.
type OpError struct {
	Op    string
	Index int // in its Commands
	Err   error
}

func (e *OpError) Error() string {
	return fmt.Sprintf("launch: operation %d, %s: %v", e.Index, e.Op, e.Err)
}

// Unwrap returns the cause.
func (e *OpError) Unwrap() error { return e.Err }

// encoder turns the operations of one Submit into steps and gives them to a stream. It keeps the
// memory of both, so that in the steady state nothing is allocated.
//
// Operations put small tables (rows, page tables, experts) into one piece of memory that is
// uploaded before the first step. What they need between two launches lies in scratch memory, which
// the operations share: they run one after the other.
type encoder struct {
	d      *Device
	stream Stream

	steps     []step
	args      []argument
	constants []byte
	tables    []byte // grows; the ticket's while a Submit is encoded
	at        int    // operation under way
	ops       []gpu.Op
	plain     bool // each operation is launched alone

	tableMemory   region
	scratch       region
	jobMemory     region // of the experts of the operation under way
	pages         pageSets
	kernels       map[variant]*known
	pipelines     map[Kernel]Pipeline
	bound         []Arg
	launch        Launch
	lists         lists
	scratchWanted int
	made          limbsMade
	jobsWanted    int
	routed        routed
	failed        atomic.Bool // a Submit of this encoder, since the last run
}

// region is memory of the encoder's own that grows. Smaller ones from before are kept: work in
// flight may use them.
type region struct {
	memory Memory
	size   int
	old    []Memory
}

// reserve makes the region at least n bytes.
func (r *region) reserve(b Backend, n int) error {
	if n <= r.size {
		return nil
	}
	size := max(n, 2*r.size, 1<<16)
	m, err := b.NewMemory(size)
	if err != nil {
		return err
	}
	if r.memory != nil {
		r.old = append(r.old, r.memory)
	}
	r.memory, r.size = m, size
	return nil
}

func (r *region) release() {
	for _, m := range r.old {
		m.Release()
	}
	if r.memory != nil {
		r.memory.Release()
	}
	*r = region{}
}

// release gives back what the encoder holds. The stream is closed.
func (x *encoder) release() {
	x.tableMemory.release()
	x.scratch.release()
	x.jobMemory.release()
	x.pages.release()
}

// source tells where an argument comes from.
type source uint8

const (
	fromView source = iota
	fromConstants
	fromTables
	fromScratch
	fromJobs
	fromPages
)

// argument is an Arg before the places of tables and scratch memory are known.
type argument struct {
	source    source
	memory    Memory
	offset, n int // bytes; of constants in encoder.constants; of pages the set's index
}

// step is a launch or something else that the stream does.
type step struct {
	op    gpu.Op
	index int // of op
	// other does what is no launch; nil for a launch. What follows is a launch's.
	other             func(x *encoder, s *step) error
	kernel            Kernel
	groups            [3]int
	threads           int
	firstArg, lastArg int
	tables            [2]int // what of them a Tabulate writes
}

// run encodes t's commands and runs them on the stream.
func (x *encoder) run(t *submitted) error {
	x.steps, x.args, x.constants, x.tables = x.steps[:0], x.args[:0], x.constants[:0], t.tables[:0]
	x.scratchWanted, x.jobsWanted, x.routed, x.made = 0, 0, routed{}, limbsMade{}
	x.pages.clock++
	if x.failed.Swap(false) {
		x.pages.forget()
	}
	ops := t.commands.Ops()
	x.ops, x.plain = ops, t.commands.Plain
	defer func() { x.ops = nil }()
	for x.at = 0; x.at < len(ops); {
		n, err := x.encode(ops[x.at:])
		if err != nil {
			return &OpError{ops[x.at].Name(), x.at, err}
		}
		x.at += n
	}
	t.tables = x.tables
	if err := x.tableMemory.reserve(x.d.b, len(x.tables)); err != nil {
		return err
	}
	if err := x.scratch.reserve(x.d.b, x.scratchWanted); err != nil {
		return fmt.Errorf("launch: %d bytes that operations need between launches: %w", x.scratchWanted, err)
	}
	if err := x.jobMemory.reserve(x.d.b, x.jobsWanted); err != nil {
		return fmt.Errorf("launch: %d bytes for lists of experts: %w", x.jobsWanted, err)
	}
	if len(x.tables) > 0 {
		if err := x.stream.CopyIn(x.tableMemory.memory, 0, x.tables); err != nil {
			return err
		}
	}
	if err := x.writePages(t); err != nil {
		return err
	}
	for i := range x.steps {
		s := &x.steps[i]
		if err := x.do(s); err != nil {
			return &OpError{s.op.Name(), s.index, err}
		}
	}
	clear(x.steps) // they point into the commands
	clear(x.args)
	clear(x.bound)
	return nil
}

// do gives one step to the stream.
func (x *encoder) do(s *step) error {
	if s.other != nil {
		return s.other(x, s)
	}
	p, err := x.pipeline(s.kernel)
	if err != nil {
		return err
	}
	x.bound = x.bound[:0]
	for _, a := range x.args[s.firstArg:s.lastArg] {
		switch a.source {
		case fromView:
			x.bound = append(x.bound, Arg{Memory: a.memory, Offset: a.offset})
		case fromConstants:
			x.bound = append(x.bound, Arg{Bytes: x.constants[a.offset : a.offset+a.n]})
		case fromTables:
			x.bound = append(x.bound, Arg{Memory: x.tableMemory.memory, Offset: a.offset})
		case fromScratch:
			x.bound = append(x.bound, Arg{Memory: x.scratch.memory, Offset: a.offset})
		case fromPages:
			x.bound = append(x.bound, Arg{Memory: x.pages.sets[a.offset].memory.memory})
		case fromJobs:
			x.bound = append(x.bound, Arg{Memory: x.jobMemory.memory, Offset: a.offset})
		}
	}
	x.launch = Launch{Kernel: s.kernel, Groups: s.groups, Threads: s.threads, Args: x.bound}
	return x.stream.Launch(p, &x.launch)
}

func (x *encoder) pipeline(k Kernel) (Pipeline, error) {
	if p := x.pipelines[k]; p != nil {
		return p, nil
	}
	p, err := x.d.pipeline(k)
	if err != nil {
		return nil, err
	}
	if x.pipelines == nil {
		x.pipelines = map[Kernel]Pipeline{}
	}
	x.pipelines[k] = p
	return p, nil
}

// memoryOf returns the memory of a view on a buffer of this package.
func memoryOf(v gpu.View) Memory { return v.Buf.(*buffer).memory }

// address is where kernels find a view, for tables of pointers.
func address(v gpu.View) uint64 { return memoryOf(v).Address() + uint64(v.Offset) }

// begin starts a launch of a kernel for an operation. Its arguments follow in the order of the
// kernel's parameters, and then end.
func (x *encoder) begin(op gpu.Op, name string, defines ...int) {
	x.beginKernel(op, x.kernel(name, defines...).Kernel)
}

// beginKernel is begin with a kernel that was chosen.
func (x *encoder) beginKernel(op gpu.Op, k Kernel) {
	x.steps = append(x.steps, step{op: op, index: x.at, kernel: k, firstArg: len(x.args)})
}

// end says over how many threadgroups of how many threads the launch goes.
func (x *encoder) end(threads int, groups ...int) {
	s := &x.steps[len(x.steps)-1]
	s.lastArg, s.threads, s.groups = len(x.args), threads, [3]int{1, 1, 1}
	copy(s.groups[:], groups)
}

// views binds views; the zero View is memory that the kernel does not look at.
func (x *encoder) views(all ...gpu.View) {
	for _, v := range all {
		m := x.d.nothing
		if !v.IsZero() {
			m = memoryOf(v)
		}
		x.args = append(x.args, argument{source: fromView, memory: m, offset: v.Offset})
	}
}

// place is a view or, from byte offset at on, scratch memory.
type place struct {
	view gpu.View
	at   int
}

// floats is the place that begins n float32 further on.
func (p place) floats(n int) place {
	if p.view.IsZero() {
		return place{at: p.at + 4*n}
	}
	return place{view: p.view.Floats(n)}
}

// aligned16 reports whether vectors can be loaded there.
func (p place) aligned16() bool { return aligned(16, p.view) && p.at%16 == 0 }

// places binds places.
func (x *encoder) places(all ...place) {
	for _, p := range all {
		if p.view.IsZero() {
			x.args = append(x.args, argument{source: fromScratch, offset: p.at})
		} else {
			x.views(p.view)
		}
	}
}

// matrix binds a matrix's codes or elements, scales and biases.
func (x *encoder) matrix(m *gpu.Matrix) { x.views(m.Weight, m.Scales, m.Biases) }

// reserve takes floats float32 of scratch memory from byte *at on, where the last piece ended, and
// moves *at past it.
func (x *encoder) reserve(at *int, floats int) place {
	p := place{at: *at}
	*at = (*at + 4*floats + 255) &^ 255
	x.scratchWanted = max(x.scratchWanted, *at)
	return p
}

// tableAt binds the tables from offset on.
func (x *encoder) tableAt(offset int) {
	x.args = append(x.args, argument{source: fromTables, offset: offset})
}

// constants binds v's bytes. Its type mirrors the parameter's, whose name it has (addParams for the
// shader's AddParams): TestParameters compares the two.
func constants[T any](x *encoder, v T) {
	n := int(unsafe.Sizeof(v))
	x.args = append(x.args, argument{source: fromConstants, offset: len(x.constants), n: n})
	x.constants = append(x.constants, unsafe.Slice((*byte)(unsafe.Pointer(&v)), n)...)
}

// more appends v's bytes to the constants that were bound last.
func more[T any](x *encoder, v T) {
	n := int(unsafe.Sizeof(v))
	x.args[len(x.args)-1].n += n
	x.constants = append(x.constants, unsafe.Slice((*byte)(unsafe.Pointer(&v)), n)...)
}

// bytesOf returns the memory of items, which has at least one, as bytes.
func bytesOf[T any](items []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(items))), len(items)*int(unsafe.Sizeof(items[0])))
}

// leastTable is the room in bytes that a table takes, a power of two.
const leastTable = 64

// table puts items into the tables, aligned to leastTable, and returns where they begin. It takes a
// power of two: lists grow, and what follows them stays where it is, so that launches of one token
// are those of the next.
func table[T any](x *encoder, items []T) int {
	at, room := len(x.tables), leastTable
	if len(items) > 0 {
		x.tables = append(x.tables, bytesOf(items)...)
	}
	for at+room < len(x.tables) {
		room *= 2
	}
	n := at + room - len(x.tables)
	x.tables = slices.Grow(x.tables, n)[:at+room]
	clear(x.tables[at+room-n:])
	return at
}
