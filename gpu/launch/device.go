package launch

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/gpu/msl"
	"github.com/moeflux/moeflux-actor/shaders"
)

// Device computes with a Backend. Its methods may be called from many goroutines.
type Device struct {
	b       Backend
	own     LimbBackend            // b, if it has products of its own
	modules map[string]*msl.Module // by kernel
	nothing Memory                 // bound where an operation leaves an operand out
	limits  limits
	ahead   *ahead

	mu      sync.Mutex
	closed  bool
	queues  int // open
	buffers int // not released, wrapped ones left out

	compiling sync.Mutex
	pipelines map[Kernel]Pipeline
}

var _ gpu.Device = (*Device)(nil)

// New returns a device that computes with b. The device closes b when it is closed, and New closes
// it on failure.
func New(b Backend) (*Device, error) {
	modules, err := Modules()
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	nothing, err := b.NewMemory(64)
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	d := &Device{b: b, modules: modules, nothing: nothing, limits: limitsFor(b), ahead: newAhead(b), pipelines: map[Kernel]Pipeline{}}
	if own, ok := b.(LimbBackend); ok && own.LimbProducts() {
		d.own = own
	}
	return d, nil
}

// Modules returns the files of package shaders by the names of their kernels. They are read once
// and serve all devices: nobody changes them.
func Modules() (map[string]*msl.Module, error) { return modules() }

var modules = sync.OnceValues(readModules)

func readModules() (map[string]*msl.Module, error) {
	files, err := shaders.Files()
	if err != nil {
		return nil, err
	}
	all := map[string]*msl.Module{}
	for _, f := range files {
		m, err := msl.Parse(f, shaders.Read)
		if err != nil {
			return nil, err
		}
		for _, k := range m.Kernels {
			if all[k.Name] != nil {
				return nil, fmt.Errorf("launch: %s: another file has a kernel %s", f, k.Name)
			}
			all[k.Name] = m
		}
	}
	return all, nil
}

// Name is the back end's.
func (d *Device) Name() string { return d.b.Name() }

// Activations is "int8" if inputs of products are rounded to 8 bits, see LimbBackend, else "f32".
func (d *Device) Activations() string {
	if d.own != nil && d.own.Rounds() {
		return gpu.ActivationsInt8
	}
	return gpu.ActivationsF32
}

// buffer is a back end's memory.
type buffer struct {
	d       *Device
	memory  Memory       // nil when released
	n       atomic.Int64 // bytes; 0 when released. Checks ask for it thousands of times a step
	wrapped bool
}

// NewBuffer returns n zeroed bytes.
func (d *Device) NewBuffer(n int) (gpu.Buffer, error) {
	return d.Adopt(n, func() (Memory, error) { return d.b.NewMemory(n) })
}

// Adopt returns a buffer of the n > 0 bytes that newMemory makes and that then belong to the
// buffer. It is for back ends with several kinds of memory.
func (d *Device) Adopt(n int, newMemory func() (Memory, error)) (gpu.Buffer, error) {
	if n <= 0 {
		return nil, fmt.Errorf("launch: a buffer of %d bytes; it needs at least 1", n)
	}
	if err := d.count(&d.buffers); err != nil {
		return nil, err
	}
	m, err := newMemory()
	if err != nil {
		d.uncount(&d.buffers)
		return nil, err
	}
	return bufferOf(d, m, n, false), nil
}

// Wrap makes mem visible to the device, see gpu.Device. mem begins at a multiple of 4.
func (d *Device) Wrap(mem []byte) (gpu.Buffer, error) {
	if len(mem) == 0 {
		return nil, errors.New("launch: wrapping no bytes")
	}
	if at := uintptr(unsafe.Pointer(unsafe.SliceData(mem))); at%4 != 0 {
		return nil, fmt.Errorf("launch: wrapping memory at %#x, which is not a multiple of 4", at)
	}
	d.mu.Lock()
	closed := d.closed
	d.mu.Unlock()
	if closed {
		return nil, gpu.ErrClosed
	}
	m, err := d.b.Wrap(mem)
	if err != nil {
		return nil, err
	}
	return bufferOf(d, m, len(mem), true), nil
}

func bufferOf(d *Device, m Memory, n int, wrapped bool) *buffer {
	b := &buffer{d: d, memory: m, wrapped: wrapped}
	b.n.Store(int64(n))
	return b
}

// count adds one to a number of open things.
func (d *Device) count(n *int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return gpu.ErrClosed
	}
	*n++
	return nil
}

func (d *Device) uncount(n *int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	*n--
}

func (b *buffer) Len() int { return int(b.n.Load()) }

func (b *buffer) Bytes() []byte {
	b.d.mu.Lock()
	defer b.d.mu.Unlock()
	if b.memory == nil {
		return nil
	}
	return b.memory.Bytes()
}

func (b *buffer) Release() {
	b.d.mu.Lock()
	m := b.memory
	b.memory = nil
	b.n.Store(0)
	if m != nil && !b.wrapped {
		b.d.buffers--
	}
	b.d.mu.Unlock()
	if m != nil {
		m.Release()
	}
}

// pipeline returns the pipeline of k, and compiles it the first time.
func (d *Device) pipeline(k Kernel) (Pipeline, error) {
	d.compiling.Lock()
	defer d.compiling.Unlock()
	if p := d.pipelines[k]; p != nil {
		return p, nil
	}
	d.ahead.take(k)
	p, err := d.compile(k)
	if err != nil {
		return nil, err
	}
	d.ahead.took(k)
	d.pipelines[k] = p
	return p, nil
}

func (d *Device) compile(k Kernel) (Pipeline, error) {
	if d.own != nil && limbKernels[k.Name] != nil {
		return d.own.CompileOwn(k)
	}
	m := d.modules[k.Name]
	if m == nil {
		return nil, fmt.Errorf("launch: there is no kernel %q", k.Name)
	}
	return d.b.Compile(k, m)
}

// Close releases everything. While queues are open or buffers are not released it returns an error
// and the device stays open. Closing twice is a no-op.
func (d *Device) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	if d.queues > 0 || d.buffers > 0 {
		defer d.mu.Unlock()
		return fmt.Errorf("launch: closing %s with %d open queues and %d buffers not released", d.b.Name(), d.queues, d.buffers)
	}
	d.closed = true
	d.mu.Unlock()
	d.ahead.close()
	d.nothing.Release()
	return d.b.Close()
}
