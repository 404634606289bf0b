package host

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"unsafe"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/internal/topology"
)

// Activations is how the inputs of matrix products are held.
type Activations uint8

// The kinds of activations.
const (
	F32  Activations = iota // float32, exact
	Int8                    // rounded to 8 bits where gpu.MatMul and gpu.Attention allow it, and in gpu.Experts
)

func (a Activations) String() string {
	switch a {
	case F32:
		return gpu.ActivationsF32
	case Int8:
		return gpu.ActivationsInt8
	}
	return fmt.Sprintf("activations(%d)", uint8(a))
}

// maxThreads bounds Config.Threads: a larger number is a mistake.
const maxThreads = 1024

// Config says how a Device computes. The zero value is ready for use.
type Config struct {
	// Threads is how many goroutines compute at once, including the one that runs the operations. 0
	// means all cores that this process may use by GOMAXPROCS, its affinity mask and its
	// container's quota, and follows them when they change. Fewer leave cores to other programs. Of
	// more, only GOMAXPROCS compute at once.
	Threads int
	// Activations is how the inputs of products with affine matrices are held. F32 is exact; Int8
	// is several times faster where many rows travel together. It rounds each input by up to 1/254
	// of the largest in its quantisation group.
	Activations Activations
	// Pin binds each thread to a processor of its own, for a process that has the machine to
	// itself: cores first, and as many threads to each memory node. All open devices must agree on
	// it. Only Linux binds threads.
	Pin bool
	// Variant names the inner loops, one of Variants; "" means the best. Variants add in different
	// orders and so differ in the last bits.
	Variant string
}

// Validate reports every field that New refuses.
func (c Config) Validate() error {
	var errs []error
	if c.Threads < 0 || c.Threads > maxThreads {
		errs = append(errs, fmt.Errorf("host: %d threads: Config.Threads must be from 0 (all cores) to %d", c.Threads, maxThreads))
	}
	if c.Activations > Int8 {
		errs = append(errs, fmt.Errorf("host: %v: Config.Activations must be %v or %v", c.Activations, F32, Int8))
	}
	if variant(c.Variant) == nil {
		errs = append(errs, fmt.Errorf("host: variant %q: this program has %s on this processor",
			c.Variant, strings.Join(Variants(), ", ")))
	}
	return errors.Join(errs...)
}

// Device computes on the processor. Its methods may be called from many goroutines. All queues of
// all devices share the process's worker threads, one operation at a time.
type Device struct {
	fixed   int  // Config.Threads
	rounds  bool // inputs of products are rounded to 8 bits
	kernels *kernels
	pool    *pool
	nodes   []int // of memory, over which large buffers are spread; nil for one

	mu      sync.Mutex
	closed  bool
	queues  int                  // open
	runs    int                  // under way
	buffers int                  // not released, wrapped ones not counted
	wrapped map[*buffer]struct{} // not released
	slab    *slab
	idle    []*executor
}

var _ gpu.Device = (*Device)(nil)

// New returns a device and starts worker threads, as far as other devices have not. The last
// device's Close ends them.
func New(cfg Config) (*Device, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	d := &Device{fixed: cfg.Threads, rounds: cfg.Activations == Int8, kernels: variant(cfg.Variant)}
	machine, err := topology.Here()
	if nodes := machine.Nodes(); len(nodes) > 1 {
		d.nodes = nodes
	}
	switch {
	case !cfg.Pin:
		machine = nil // its nodes are only good to know
	case err != nil:
		return nil, fmt.Errorf("host: Config.Pin: %w", err)
	case len(machine) == 0:
		return nil, errors.New("host: Config.Pin: this system does not bind threads to processors")
	}
	if d.pool, err = process.join(d.Threads()-1, machine); err != nil {
		return nil, err
	}
	return d, nil
}

// Name says what the device is: "host (2 threads, avx2)", "host (1 thread, avx512, int8)".
func (d *Device) Name() string {
	threads, unit := d.Threads(), "threads"
	if threads == 1 {
		unit = "thread"
	}
	held := ""
	if d.rounds {
		held = ", " + Int8.String()
	}
	return fmt.Sprintf("host (%d %s, %s%s)", threads, unit, d.kernels.name, held)
}

// Threads returns how many goroutines compute at once now. The runtime sets GOMAXPROCS from the
// affinity mask and the container's quota, and looks at them about once a second. If it was set by
// hand it may exceed the number of cores.
func (d *Device) Threads() int {
	if d.fixed > 0 {
		return d.fixed
	}
	return min(runtime.GOMAXPROCS(0), runtime.NumCPU(), maxThreads)
}

// Kernels names the variant that computes: "portable", "avx2", "avx512" and so on.
func (d *Device) Kernels() string { return d.kernels.name }

// Activations names what Config.Activations says.
func (d *Device) Activations() string {
	if d.rounds {
		return Int8.String()
	}
	return F32.String()
}

// NewBuffer returns n zeroed bytes outside the Go heap, aligned to 64 bytes. Large buffers begin at
// a page.
func (d *Device) NewBuffer(n int) (gpu.Buffer, error) {
	if n <= 0 {
		return nil, fmt.Errorf("host: a buffer of %d bytes: it must have at least 1", n)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, gpu.ErrClosed
	}
	b, err := d.allocate(n)
	if err != nil {
		return nil, err
	}
	d.buffers++
	return b, nil
}

// Wrap makes mem visible to the device without a copy. mem begins at a multiple of 4.
func (d *Device) Wrap(mem []byte) (gpu.Buffer, error) {
	if len(mem) == 0 {
		return nil, errors.New("host: wrapping no bytes")
	}
	if at := uintptr(unsafe.Pointer(unsafe.SliceData(mem))); at%4 != 0 {
		return nil, fmt.Errorf("host: wrapping memory at %#x: it must begin at a multiple of 4", at)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, gpu.ErrClosed
	}
	b := &buffer{mem: mem, d: d, wrapped: true}
	if d.wrapped == nil {
		d.wrapped = map[*buffer]struct{}{}
	}
	d.wrapped[b] = struct{}{}
	return b, nil
}

// Run checks c and runs it in the caller's goroutine and the worker threads. It is for tests and
// the simulator; an engine uses a queue.
func (d *Device) Run(c *gpu.Commands) error {
	if err := c.Check(); err != nil {
		return err
	}
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return gpu.ErrClosed
	}
	c.Accept()
	d.runs++
	x := d.executorLocked()
	d.mu.Unlock()

	err := x.run(c)

	d.mu.Lock()
	defer d.mu.Unlock()
	d.runs--
	d.idle = append(d.idle, x)
	return err
}

func (d *Device) executorLocked() *executor {
	if n := len(d.idle); n > 0 {
		x := d.idle[n-1]
		d.idle = d.idle[:n-1]
		return x
	}
	return &executor{d: d, kernels: d.kernels, vectors: vectorsOf(d.kernels.name), rounds: d.rounds, pool: d.pool}
}

// Close ends the worker threads, if no other device is open, and releases the memory. It fails, and
// the device stays open, while queues are open, buffers are not released or a Run is under way.
// Closing twice is a no-op.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	if d.queues > 0 || d.buffers > 0 || d.runs > 0 {
		return fmt.Errorf("host: closing with %d open queues, %d buffers not released and %d runs under way",
			d.queues, d.buffers, d.runs)
	}
	d.closed = true
	d.idle = nil
	process.leave()
	return d.dropSlab()
}
