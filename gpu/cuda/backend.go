//go:build linux && (amd64 || arm64)

package cuda

import (
	"bytes"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/gpu/launch"
	"github.com/moeflux/moeflux-actor/gpu/msl"
)

// backend is one GPU: its primary context and what was made in it.
type backend struct {
	d     *driver
	c     *compiler
	cache cache
	log   *slog.Logger

	device     int32
	name       string // "NVIDIA H200"
	arch       string // "sm_90"
	capability int    // 90
	processors int    // multiprocessors
	most       int    // kernels that are compiled ahead at once
	rounds     bool   // see Config.Rounded
	version    string // the compiler's
	context    contextHandle
	setup      streamHandle     // clears new memory
	handlers   map[uintptr]bool // of signals, see keepSignalStacks

	broken atomic.Pointer[spoiled]
	pinned launch.Blocks[struct{}]

	mu        sync.Mutex // guards the rest, and the use of setup
	closed    bool
	memory    int       // pieces not released
	own       []*memory // of them, pinned host memory
	streams   int       // open
	pipelines []*pipeline
	peers     map[int32]bool    // GPUs, by their number with the driver: whether copies reach them
	images    map[string][]byte // by key: compiled ahead and not loaded, where no folder has them
}

var (
	_ launch.Asynchronous = (*backend)(nil)
	_ launch.Preparer     = (*backend)(nil)
	_ launch.Sized        = (*backend)(nil)
)

// Asynchronous lets Submit encode: a launch is kept back, or recorded by the driver.
func (b *backend) Asynchronous() {}

// Processors is how many multiprocessors the GPU has.
func (b *backend) Processors() int { return b.processors }

// pipeline is a kernel that is loaded.
type pipeline struct {
	kernel   string
	module   moduleHandle
	function functionHandle
}

// spoiled is why a context can no longer be used.
type spoiled struct{ err error }

// newBackend opens a GPU of a driver. log may be nil.
func newBackend(cfg Config, d *driver, openCompiler func(driverMajor int) (*compiler, error)) (b *backend, err error) {
	b = &backend{d: d, cache: cache{cfg.CacheDir}, log: cfg.Logger, most: cfg.Ahead, rounds: cfg.Rounded, images: map[string][]byte{}}
	b.pinned.New, b.pinned.Free = b.newBlock, b.freeBlock
	if b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	defer keepSignalStacks(nil)
	b.handlers = signalHandlers() // before any library works
	major, err := b.find(cfg.Ordinal)
	if err != nil {
		return nil, err
	}
	if b.rounds && !b.LimbProducts() {
		return nil, fmt.Errorf("cuda: %s (%s) multiplies by float32 alone; inputs of 8 bits need a GPU of sm_80 or later", b.name, b.arch)
	}
	if b.c, err = openCompiler(major); err != nil {
		return nil, err
	}
	b.c.handlers = b.handlers
	if b.version, err = b.c.versionText(); err != nil {
		return nil, err
	}
	if !b.c.parallel() {
		b.most = min(b.most, 1) // a step waits for one at most
	}
	if err := d.check(d.retain(&b.context, b.device), "cuDevicePrimaryCtxRetain", "opening "+b.name); err != nil {
		return nil, err
	}
	unbind, err := b.bind()
	if err == nil {
		defer unbind()
		err = d.check(d.streamCreate(&b.setup, streamNonBlocking), "cuStreamCreate", "")
	}
	if err != nil {
		d.release(b.device)
		return nil, err
	}
	return b, nil
}

// find initialises the driver and finds a GPU. It returns the major version of CUDA that the driver
// serves.
func (b *backend) find(ordinal int) (driverMajor int, err error) {
	d := b.d
	if err := d.check(d.init(), "cuInit", "starting the driver of "+d.lib.path); err != nil {
		return 0, err
	}
	var version, n, major, minor, processors int32
	if err := d.check(d.version(&version), "cuDriverGetVersion", ""); err != nil {
		return 0, err
	}
	if err := d.check(d.deviceCount(&n), "cuDeviceGetCount", ""); err != nil {
		return 0, err
	}
	if ordinal < 0 || ordinal >= int(n) {
		return 0, fmt.Errorf("cuda: there is no GPU %d: the driver shows %d, counted from 0", ordinal, n)
	}
	if err := d.check(d.deviceGet(&b.device, ordinal), "cuDeviceGet", ""); err != nil {
		return 0, err
	}
	name := make([]byte, 256)
	if err := d.check(d.deviceName(name, b.device), "cuDeviceGetName", ""); err != nil {
		return 0, err
	}
	b.name, _, _ = strings.Cut(string(name), "\x00")
	for _, a := range []struct {
		value     *int32
		attribute int
	}{{&major, attributeMajor}, {&minor, attributeMinor}, {&processors, attributeProcessors}} {
		if err := d.check(d.attribute(a.value, a.attribute, b.device), "cuDeviceGetAttribute", b.name); err != nil {
			return 0, err
		}
	}
	if processors < 1 {
		return 0, fmt.Errorf("cuda: the driver says that %s has %d multiprocessors", b.name, processors)
	}
	b.arch, b.capability, b.processors = fmt.Sprintf("sm_%d%d", major, minor), int(10*major+minor), int(processors)
	return int(version / 1000), nil
}

// Name says what it is: "cuda (NVIDIA H200, sm_90, NVRTC 13.0)", or with inputs of 8 bits
// "cuda (NVIDIA H200, sm_90, NVRTC 13.0, int8)".
func (b *backend) Name() string {
	if b.rounds {
		return fmt.Sprintf("cuda (%s, %s, NVRTC %s, %s)", b.name, b.arch, b.version, gpu.ActivationsInt8)
	}
	return fmt.Sprintf("cuda (%s, %s, NVRTC %s)", b.name, b.arch, b.version)
}

// bind makes the context current on the caller's thread and keeps the goroutine on it until unbind
// is called.
func (b *backend) bind() (unbind func(), err error) {
	runtime.LockOSThread()
	if r := b.d.setCurrent(b.context); r != success {
		runtime.UnlockOSThread()
		return nil, b.check(r, "cuCtxSetCurrent", b.name)
	}
	return runtime.UnlockOSThread, nil
}

// enter is bind for what makes something new: it also locks the backend, which must not be closed.
// What enter did is undone by leave.
func (b *backend) enter() (leave func(), err error) {
	unbind, err := b.bind()
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	leave = func() {
		b.mu.Unlock()
		unbind()
	}
	if b.closed {
		leave()
		return nil, gpu.ErrClosed
	}
	return leave, nil
}

// check returns nil for success, else an *Error, or the reason why the context is spoiled if that
// is known: then this call is not to blame.
func (b *backend) check(r result, function, doing string) error {
	if r == success {
		return nil
	}
	if err := b.cause(); err != nil {
		return err
	}
	return b.d.check(r, function, doing)
}

// blame is check for a caller that knows what the device was doing: if r spoils the context, this
// becomes the cause of all later errors.
func (b *backend) blame(r result, function, doing string) error {
	if r.spoils() {
		b.broken.CompareAndSwap(nil, &spoiled{b.d.check(r, function, doing)})
	}
	return b.check(r, function, doing)
}

// cause returns why the context is spoiled, or nil.
func (b *backend) cause() error {
	s := b.broken.Load()
	if s == nil {
		return nil
	}
	return fmt.Errorf("cuda: %s has failed and takes no more work: %w", b.name, s.err)
}

// Compile compiles a kernel, or finds it in the cache, and loads it.
func (b *backend) Compile(k launch.Kernel, m *msl.Module) (launch.Pipeline, error) {
	return b.load(k, m.Emit(msl.CUDA, k.Name, k.Defines))
}

// load makes a pipeline of a source.
func (b *backend) load(k launch.Kernel, source string) (launch.Pipeline, error) {
	image, _, err := b.image(k, source)
	if err != nil {
		return nil, err
	}
	unbind, err := b.bind()
	if err != nil {
		return nil, err
	}
	defer unbind()
	defer keepSignalStacks(b.handlers)
	p := &pipeline{kernel: k.Name}
	if err := b.check(b.d.moduleLoad(&p.module, image), "cuModuleLoadData", "kernel "+k.Name); err != nil {
		return nil, err
	}
	if err := b.check(b.d.function(&p.function, p.module, k.Name), "cuModuleGetFunction", "kernel "+k.Name); err != nil {
		b.d.moduleUnload(p.module)
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		b.d.moduleUnload(p.module)
		return nil, gpu.ErrClosed
	}
	b.pipelines = append(b.pipelines, p)
	return p, nil
}

// image returns the machine code of a source, and whether the next one who asks finds it in the
// folder.
func (b *backend) image(k launch.Kernel, source string) (image []byte, stored bool, err error) {
	opts := options(b.arch)
	name := key(b.version, source, opts)
	if image, stored := b.kept(name); image != nil {
		return image, stored, nil
	}
	image, log, err := b.c.build(source, opts)
	if err != nil {
		return nil, false, &CompileError{Kernel: k.Name, Defines: k.Defines, Options: opts, Log: log, Err: err}
	}
	if len(bytes.TrimSpace([]byte(log))) > 0 {
		b.log.Debug("cuda: the compiler's remarks", "kernel", k.Name, "log", log)
	}
	if err := b.cache.store(name, image); err != nil {
		b.log.Warn("compiled kernels are not kept for the next run", "why", err)
		return image, false, nil
	}
	return image, b.cache.dir != "", nil
}

// kept returns machine code that was compiled before, in another run or ahead, or nil, and whether
// the folder has it.
func (b *backend) kept(key string) (image []byte, stored bool) {
	b.mu.Lock()
	image = b.images[key]
	delete(b.images, key)
	b.mu.Unlock()
	if image != nil {
		return image, false
	}
	image = b.cache.load(key)
	return image, image != nil
}

// Close releases everything. While streams are open or memory is not released it returns an error
// and the device stays open.
func (b *backend) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil
	}
	if b.streams > 0 || b.memory > 0 {
		return fmt.Errorf("cuda: closing with %d open streams and %d pieces of memory not released", b.streams, b.memory)
	}
	b.closed = true
	unbind, err := b.bind()
	if err == nil {
		defer unbind()
		b.pinned.Drain()
		for _, p := range b.pipelines {
			b.d.moduleUnload(p.module)
		}
		b.d.streamDestroy(b.setup)
		b.d.setCurrent(0)
	}
	// a spoiled context cannot be taken apart, and releasing it releases everything
	if b.cause() != nil {
		err = nil
	}
	if r := b.d.release(b.device); err == nil && b.cause() == nil {
		err = b.d.check(r, "cuDevicePrimaryCtxRelease_v2", b.name)
	}
	return err
}
