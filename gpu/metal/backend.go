//go:build darwin || linux

package metal

import (
	"fmt"
	"sync"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/gpu/launch"
	"github.com/moeflux/moeflux-actor/gpu/msl"
)

// simdWidth is the lanes of a simdgroup that the kernels are written for.
const simdWidth = 32

// preamble goes before every source. Kernels write fma where they fuse. A compiler that contracts
// on its own does so in one specialisation of a kernel and not in another, and then the bits of a
// row depend on how many rows travel together. Compile options turn fast mathematics off, but not
// this.
const preamble = "#pragma METAL fp contract(off)\n"

// backend is one GPU.
type backend struct {
	sys   system
	facts facts
	own   *transfers
	spare launch.Blocks[*memory] // that copies pass through

	mu        sync.Mutex
	closed    bool
	memory    int // pieces not released
	streams   int // open
	pipelines []object
}

var _ launch.Asynchronous = (*backend)(nil)

// Asynchronous lets Submit encode: a launch is a line in a table, and a Commit one call of C.
func (b *backend) Asynchronous() {}

// pipeline is a kernel that is compiled.
type pipeline struct {
	kernel launch.Kernel
	compiled
	args int
}

// newDevice returns a device that computes with a GPU. It closes the GPU when it is closed, or if
// it fails.
func newDevice(sys system) (*Device, error) {
	b, err := newBackend(sys)
	if err != nil {
		return nil, err
	}
	d, err := launch.New(b)
	if err != nil {
		return nil, err
	}
	return &Device{d, int64(b.facts.workingSet)}, nil
}

// newBackend takes over a GPU, which it closes, even if it fails.
func newBackend(sys system) (*backend, error) {
	b := &backend{sys: sys, facts: sys.facts()}
	if err := b.check(); err != nil {
		sys.close()
		return nil, err
	}
	var err error
	if b.own, err = newTransfers(b); err != nil {
		sys.close()
		return nil, err
	}
	b.spare.New = func(n int) (*memory, []byte, error) {
		m, err := b.newMemory(n)
		if err != nil {
			return nil, nil, err
		}
		return m, m.host, nil
	}
	b.spare.Free = func(x launch.Block[*memory]) { x.Memory.Release() }
	return b, nil
}

// check reports what is too old about the GPU or the system.
func (b *backend) check() error {
	switch {
	case b.facts.residencySets == 0:
		return fmt.Errorf("metal: %s: this system has no residency sets (MTLResidencySet); macOS 15 or later is needed", b.sys.name())
	case b.facts.metal3 == 0:
		return fmt.Errorf("metal: %s is not of the family Metal 3, whose kernels follow addresses in memory; Apple silicon is needed (M1 or later)", b.sys.name())
	}
	return nil
}

// Name says what it is: "metal (Apple M3 Max)".
func (b *backend) Name() string { return fmt.Sprintf("metal (%s)", b.sys.name()) }

// Compile makes a pipeline of a kernel and checks that the GPU is what the kernel was written for.
func (b *backend) Compile(k launch.Kernel, m *msl.Module) (launch.Pipeline, error) {
	return b.compile(k, m)
}

func (b *backend) compile(k launch.Kernel, m *msl.Module) (*pipeline, error) {
	kernel := m.Kernel(k.Name)
	if kernel == nil {
		return nil, fmt.Errorf("metal: there is no kernel %q", k.Name)
	}
	c, err := b.sys.compile(preamble+m.Emit(msl.Metal, k.Name, k.Defines), k.Name)
	if err != nil {
		return nil, &CompileError{k.Name, k.Defines, err}
	}
	p := &pipeline{k, c, len(kernel.Args)}
	why := ""
	switch {
	case c.width != simdWidth:
		why = fmt.Sprintf("this GPU's simdgroups have %d threads (threadExecutionWidth), the kernels are written for %d", c.width, simdWidth)
	case c.maxThreads < kernel.MaxThreads:
		why = fmt.Sprintf("this GPU runs it with at most %d threads in a threadgroup (maxTotalThreadsPerThreadgroup), but it needs %d", c.maxThreads, kernel.MaxThreads)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case why != "":
		b.sys.release(c.pipeline)
		return nil, &KernelError{k.Name, k.Defines, why}
	case b.closed:
		b.sys.release(c.pipeline)
		return nil, gpu.ErrClosed
	}
	b.pipelines = append(b.pipelines, c.pipeline)
	return p, nil
}

// Close releases everything. While streams are open or memory is not released it returns an error
// and the device stays open.
func (b *backend) Close() error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return nil
	}
	if b.streams > 0 {
		defer b.mu.Unlock()
		return fmt.Errorf("metal: closing with %d open streams", b.streams)
	}
	b.mu.Unlock()
	b.spare.Drain()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.memory > 0 {
		return fmt.Errorf("metal: closing with %d pieces of memory not released", b.memory)
	}
	b.closed = true
	for _, p := range b.pipelines {
		b.sys.release(p)
	}
	b.sys.close()
	return nil
}
