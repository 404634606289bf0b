//go:build linux && (amd64 || arm64)

package emu

import (
	"fmt"
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/gpu/launch"
	"github.com/moeflux/moeflux-actor/gpu/msl"
	"github.com/moeflux/moeflux-actor/internal/durable"
)

// Backend builds kernels and runs them. Its methods may be called from many goroutines.
type Backend struct {
	builder builder
	order   Order
	workers uint32
	// The runtime's functions.
	launch, alloc, free uintptr
}

var _ launch.Backend = (*Backend)(nil)

// New returns a device that runs kernels on the processor.
func New(cfg Config) (gpu.Device, error) {
	b, err := Open(cfg)
	if err != nil {
		return nil, err
	}
	return launch.New(b)
}

// Open finds a compiler and builds the runtime. Without a compiler the error wraps ErrNoCompiler.
func Open(cfg Config) (*Backend, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	c, err := findCompiler(cfg.Compiler)
	if err != nil {
		return nil, err
	}
	if cfg.Cache != "" {
		if err := durable.MkdirAll(cfg.Cache, durable.Shared); err != nil {
			return nil, fmt.Errorf("emu: the cache of compiled kernels: %w", err)
		}
	}
	b := &Backend{builder: builder{c, cfg.Cache}, order: cfg.Order, workers: uint32(cfg.Threads)}
	if b.workers == 0 {
		b.workers = uint32(min(runtime.GOMAXPROCS(0), runtime.NumCPU(), maxThreads))
	}
	h, err := b.builder.open("the runtime", msl.EmulatorRuntime(), true)
	if err != nil {
		return nil, err
	}
	s, err := symbols(h, "msl_emu_launch", "msl_emu_alloc", "msl_emu_free")
	if err != nil {
		return nil, err
	}
	b.launch, b.alloc, b.free = s[0], s[1], s[2]
	return b, nil
}

// Name describes the device: "emulator (2 threads)".
func (b *Backend) Name() string {
	unit := "threads"
	if b.workers == 1 {
		unit = "thread"
	}
	return fmt.Sprintf("emulator (%d %s)", b.workers, unit)
}

// Close does nothing: libraries stay open until the process ends, because their threads wait in
// them.
func (b *Backend) Close() error { return nil }

// memory lies between pages that fault, unless it is wrapped.
type memory struct {
	b     *Backend
	bytes []byte
	own   bool
}

// NewMemory returns n zeroed bytes.
func (b *Backend) NewMemory(n int) (launch.Memory, error) {
	p, _, _ := purego.SyscallN(b.alloc, uintptr(n))
	if p == 0 {
		return nil, fmt.Errorf("emu: %d bytes of memory: %w", n, gpu.ErrOutOfMemory)
	}
	return &memory{b, unsafe.Slice((*byte)(pointer(p)), n), true}, nil
}

// Wrap lets kernels read host memory.
func (b *Backend) Wrap(mem []byte) (launch.Memory, error) { return &memory{b, mem, false}, nil }

func (m *memory) Bytes() []byte { return m.bytes }

func (m *memory) Address() uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(m.bytes)))) }

func (m *memory) Release() {
	if m.own {
		purego.SyscallN(m.b.free, uintptr(m.Address()), uintptr(len(m.bytes)))
	}
	m.bytes = nil
}

// pointer is the pointer at a C address.
func pointer(p uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }

// pipeline is a kernel's function and what the compiler says about its parameters.
type pipeline struct {
	kernel *msl.Kernel
	entry  uintptr
	memory uint32   // bytes of threadgroup variables
	sizes  []uint32 // of each argument: the bytes of constants, the alignment of memory
}

// maxMemory is how many bytes a threadgroup's variables may take on Metal.
const maxMemory = 32 << 10

// Compile builds one kernel.
func (b *Backend) Compile(k launch.Kernel, m *msl.Module) (launch.Pipeline, error) {
	kernel := m.Kernel(k.Name)
	if kernel == nil {
		return nil, fmt.Errorf("emu: no kernel %q", k.Name)
	}
	h, err := b.builder.open("kernel "+k.Name, m.Emit(msl.Emulator, k.Name, k.Defines), false)
	if err != nil {
		return nil, err
	}
	s, err := symbols(h, k.Name, k.Name+"__meta")
	if err != nil {
		return nil, err
	}
	meta := unsafe.Slice((*uint32)(pointer(s[1])), len(kernel.Args)+1)
	if meta[0] > maxMemory {
		return nil, fmt.Errorf("emu: kernel %s: %d bytes of threadgroup memory, Metal has %d", k.Name, meta[0], maxMemory)
	}
	return &pipeline{kernel, s[0], meta[0], meta[1:]}, nil
}
