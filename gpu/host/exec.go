package host

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/internal/mapfault"
)

// KernelError reports an operation that panicked: a bug, or wrapped memory that went away under it,
// such as the end of a mapped file. What the operation and those after it in the same Commands
// would have written is undefined.
type KernelError struct {
	Op    string
	Index int // in its Commands
	Value any // what it panicked with; a *mapfault.Fault if wrapped memory went away
	Stack []byte
}

func (e *KernelError) Error() string {
	if f, ok := e.Value.(*mapfault.Fault); ok {
		return fmt.Sprintf("host: operation %d, %s: %v", e.Index, e.Op, f)
	}
	return fmt.Sprintf("host: operation %d, %s, panicked: %v\n%s", e.Index, e.Op, e.Value, e.Stack)
}

// Unwrap returns what the operation panicked with, if that is an error.
func (e *KernelError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// inline reports whether one of several threads does work of ns estimated nanoseconds by itself.
// What the others would take from it must be worth handing it over: that costs two to three
// microseconds and more with more threads, while they are awake as within a token. With two threads
// others' work on their processors costs more, since whoever is held up has half of the job.
func inline(threads, ns int) bool {
	if threads == 1 {
		return true
	}
	const heldUp, start, each = 10_000, 2_000, 100
	return ns-ns/threads < max(heldUp/(threads-1), start+each*threads)
}

// executor runs operations one after the other. It keeps the memory and the tasks they need, so
// that nothing is allocated in the steady state.
type executor struct {
	d        *Device
	kernels  *kernels
	vectors  *vectors
	pool     *pool
	threads  int     // of the device, when the present run began
	scratch  scratch // of the calling goroutine
	pause    *pause  // nil: it never pauses
	paused   bool    // somebody else's work runs in this goroutine
	rounds   bool    // inputs of products are rounded to 8 bits
	inputs   rounded // of X
	hiddens  rounded // of what an expert's Down multiplies
	pairs    []int32 // of all experts of an operation, expert after expert
	counts   []int32 // pairs of each expert
	uses     []expertUse
	partial  []float32 // of attention's spans
	follows  follows   // of products of few rows of X
	upcoming []stretch // what threads read in the job after this one; nil: what follows says
	downs    []stretch // of experts
	at       int       // the current operation
	clock    clock     // of the Submit under way

	tasks
}

// run runs the operations of c, which have been checked, in order. It stops at the first that
// panics.
func (x *executor) run(c *gpu.Commands) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		if x.paused { // it is no operation of c that panicked
			panic(r)
		}
		e := &KernelError{Op: c.Ops()[x.at].Name(), Index: x.at, Value: r}
		if p, ok := r.(*chunkPanic); ok {
			e.Value, e.Stack = p.value, p.stack
		} else {
			e.Stack = debug.Stack()
		}
		if f := mapfault.Of(e.Value); f != nil && x.d.isWrapped(f.Addr) {
			e.Value = f
		}
		err = e
	}()
	x.follow()
	x.at = 0
	for ops := c.Ops(); x.at < len(ops); {
		next := ops[x.at:]
		if c.Plain {
			next = next[:1]
		}
		x.at += x.do(next)
		x.yield()
	}
	return nil
}

// follow takes the number of threads that the device has now. Results do not depend on it.
func (x *executor) follow() {
	if n := x.d.Threads(); n != x.threads {
		_ = x.pool.grow(n - 1) // a thread without a place is still a thread
		x.threads = n
	}
}

// yield pauses if that is wanted.
func (x *executor) yield() {
	if x.pause != nil && x.pause.wanted.Load() {
		x.paused = true
		x.pause.do()
		x.paused = false
	}
}

// inline is inline for as many threads as have processors. Others only take turns with them.
func (x *executor) inline(ns int) bool { return inline(min(x.threads, runtime.NumCPU()), ns) }

// do runs the first of ops and those after it that share its job, and returns how many.
func (x *executor) do(ops []gpu.Op) int { return runs[ops[0].Kind()](x, ops) }

// parallel runs all chunks of t, which take about ns nanoseconds together. It uses the pool if that
// pays, and pauses between chunks if they take long.
func (x *executor) parallel(t task, chunks, ns int) {
	if chunks == 1 || x.inline(ns) {
		for i := range chunks {
			t.do(&x.scratch, i)
		}
		return
	}
	x.scratch.upcoming = x.upcoming
	if x.upcoming == nil {
		x.scratch.upcoming = x.follows.next()
	}
	if x.pause == nil || ns < pauseNS {
		x.pool.runSoon(&x.scratch, t, chunks, x.threads, ns)
		return
	}
	for done := x.pool.run(&x.scratch, t, chunks, x.threads, x.pause); !done; done = x.pool.resume(&x.scratch, t, x.pause) {
		x.yield()
	}
}

// pauseNS is the work, in estimated nanoseconds, from which an operation pauses for urgent work.
const pauseNS = 500_000

// spread is how many chunks a task should have: several for each thread, so that a thread that
// other work slows down takes fewer.
func (x *executor) spread() int { return 4 * x.threads }

// chunkNS is about the most that a chunk should take, in estimated nanoseconds: urgent work waits
// for the end of a chunk.
const chunkNS = 500_000

// pieces returns how many chunks work of some nanoseconds should have, at least least.
func pieces(ns, least int) int { return max(least, ns/chunkNS) }

// width returns how many of n items a chunk takes, a multiple of unit, so that the task spreads.
func (x *executor) width(n, unit int) int {
	w := chunks(n, x.spread())
	return (w + unit - 1) / unit * unit
}

// chunks returns how many chunks of width w cover n items.
func chunks(n, w int) int { return (n + w - 1) / w }

// bytesAt returns n bytes at v.
func bytesAt(v gpu.View, n int) []byte {
	mem := v.Buf.Bytes()
	if mem == nil {
		panic("a buffer that is not in host memory")
	}
	return mem[v.Offset : v.Offset+n : v.Offset+n]
}

// floatsAt returns n float32 at v.
func floatsAt(v gpu.View, n int) []float32 { return gpu.Floats(bytesAt(v, 4*n), n) }

// or returns n, or zero if n is 0.
func or(n, zero int) int {
	if n == 0 {
		return zero
	}
	return n
}
