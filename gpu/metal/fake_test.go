//go:build linux && (amd64 || arm64)

package metal

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/ebitengine/purego"
	"go.uber.org/goleak"

	"github.com/moeflux/moeflux-actor/gpu/emu"
	"github.com/moeflux/moeflux-actor/gpu/launch"
	"github.com/moeflux/moeflux-actor/gpu/msl"
	"github.com/moeflux/moeflux-actor/internal/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What fake_refuse takes.
const (
	noCommandBuffers = 1 << iota
	noBuffers
	noDefaultDevice
	noDevice
)

// library is encode.c with the Objective-C runtime of testdata/fake.c.
type library struct {
	device, describe, wrap, submit, finish, release                 uintptr
	object, number, live, refuse, take, dispatches, trace, complete uintptr
}

// built is that library, built once.
var built struct {
	sync.Once
	l   *library
	err error
}

// openLibrary returns the library, which takes a C compiler to build.
func openLibrary(t testing.TB) *library {
	t.Helper()
	compiler := testenv.CCompiler(t)
	built.Do(func() { built.l, built.err = buildLibrary(compiler) })
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.l
}

func buildLibrary(compiler string) (*library, error) {
	dir, err := os.MkdirTemp("", "moeflux-metal-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) // a library that is open stays open
	file := filepath.Join(dir, "metal.so")
	cmd := exec.Command(compiler, "-Wall", "-Wextra", "-Werror", "-O1", "-g", "-shared", "-fPIC", "-pthread", "-Itestdata/include", "-I.", "-o", file, "testdata/fake.c", "encode.c")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", compiler, err, out)
	}
	h, err := purego.Dlopen(file, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, err
	}
	var errs []error
	find := func(name string) uintptr {
		p, err := purego.Dlsym(h, name)
		errs = append(errs, err)
		return p
	}
	l := &library{
		device: find("metal_device"), describe: find("metal_describe"), wrap: find("metal_wrap"), submit: find("metal_submit"), finish: find("metal_finish"),
		release: find("metal_release"), object: find("fake_object"), number: find("fake_number"), live: find("fake_live"), refuse: find("fake_refuse"),
		take: find("fake_take"), dispatches: find("fake_dispatches"), trace: find("fake_trace"), complete: find("fake_complete"),
	}
	return l, errors.Join(errs...)
}

// call calls a function of the library.
//
//go:uintptrescapes
func call(f uintptr, args ...uintptr) object {
	r, _, _ := purego.SyscallN(f, args...)
	return *(*object)(unsafe.Pointer(&r))
}

func number(o object) int { return int(uintptr(o)) }

// cString is the address of s with a 0 behind it.
func cString(s string) uintptr {
	return uintptr(unsafe.Pointer(unsafe.SliceData(append([]byte(s), 0))))
}

func goString(p object) string {
	if p == nil {
		return ""
	}
	n := 0
	for *(*byte)(unsafe.Add(p, n)) != 0 {
		n++
	}
	return string(unsafe.Slice((*byte)(p), n))
}

// fakeArg and fakeDispatch mirror fake_arg and fake_dispatch.
type fakeArg struct {
	buffer object
	offset uint64
	bytes  object
	length uint64
}

type fakeDispatch struct {
	pipeline object
	groups   [3]uint64
	threads  uint64
	barrier  uint64
	args     [31]fakeArg
}

// fakeSystem is a system of the library whose launches the emulator runs: command buffers in the
// order of their commits, from a goroutine of its own.
type fakeSystem struct {
	t      testing.TB
	l      *library
	device object
	begun  int // objects there are beside those of this system
	what   facts
	page   int
	width  int // of simdgroups
	most   int // threads of a threadgroup

	emu    *emu.Backend
	stream launch.Stream
	poke   chan struct{}
	ended  chan struct{}
	delay  time.Duration // before a command buffer runs

	mu        sync.Mutex
	next      *next // of the kernel that is being compiled
	pipelines map[object]fakePipeline
	buffers   map[object]launch.Memory
	sources   []string
	traces    []string
	fail      *CommandError // of the command buffers from now on
	refuses   error         // what compile says
}

type next struct {
	k launch.Kernel
	m *msl.Module
}

type fakePipeline struct {
	k    launch.Kernel
	p    launch.Pipeline
	args int
}

// newFake makes a system; with emulate its kernels run, else command buffers end without having
// done anything.
func newFake(t testing.TB, emulate bool) *fakeSystem {
	t.Helper()
	l := openLibrary(t)
	s := &fakeSystem{t: t, l: l, page: os.Getpagesize(), width: 32, most: 1024, poke: make(chan struct{}, 1), ended: make(chan struct{}),
		pipelines: map[object]fakePipeline{}, buffers: map[object]launch.Memory{}}
	s.begun = number(call(l.live))
	if s.device = call(l.device); s.device == nil {
		t.Fatal("no device")
	}
	call(l.describe, uintptr(s.device), uintptr(unsafe.Pointer(&s.what)))
	if emulate {
		cache := ""
		if dir, err := os.UserCacheDir(); err == nil {
			cache = filepath.Join(dir, "moeflux-actor", "emulator")
		}
		var err error
		if s.emu, err = emu.Open(emu.Config{Order: emu.Shuffled, Cache: cache}); errors.Is(err, emu.ErrNoCompiler) {
			testenv.Missing(t, err.Error(), testenv.CXXCompilers...)
		} else if err != nil {
			t.Fatal(err)
		}
		if s.stream, err = s.emu.NewStream(); err != nil {
			t.Fatal(err)
		}
	}
	go s.serve()
	return s
}

func (s *fakeSystem) name() string  { return "Fake M1" }
func (s *fakeSystem) facts() facts  { return s.what }
func (s *fakeSystem) pageSize() int { return s.page }

// compile remembers the source, and builds the kernel for the emulator: that which was announced,
// or that of the source itself.
func (s *fakeSystem) compile(source, kernel string) (compiled, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuses != nil {
		return compiled{}, s.refuses
	}
	s.sources = append(s.sources, source)
	n := s.next
	if n != nil && n.k.Name == kernel {
		s.next = nil
	} else {
		m, err := msl.Parse("source", func(string) (string, error) { return strings.TrimPrefix(source, preamble), nil })
		if err != nil {
			return compiled{}, err
		}
		n = &next{launch.Kernel{Name: kernel}, m}
	}
	f := fakePipeline{k: n.k, args: len(n.m.Kernel(kernel).Args)}
	if s.emu != nil {
		var err error
		if f.p, err = s.emu.Compile(n.k, n.m); err != nil {
			return compiled{}, err
		}
	}
	p := s.newObject("MTLComputePipelineState")
	s.pipelines[p] = f
	return compiled{p, s.width, s.most}, nil
}

func (s *fakeSystem) newObject(class string) object { return call(s.l.object, cString(class)) }

func (s *fakeSystem) wrap(at uintptr, n int) (buffer object, address uint64) {
	buffer = call(s.l.wrap, uintptr(s.device), at, uintptr(n), 256, uintptr(unsafe.Pointer(&address)))
	if buffer != nil && s.emu != nil {
		m, err := s.emu.Wrap(unsafe.Slice(*(**byte)(unsafe.Pointer(&at)), n))
		if err != nil {
			s.t.Error(err)
		}
		s.mu.Lock()
		s.buffers[buffer] = m
		s.mu.Unlock()
	}
	return buffer, address
}

func (s *fakeSystem) unwrap(buffer object) {
	s.mu.Lock()
	delete(s.buffers, buffer)
	s.mu.Unlock()
	s.release(buffer)
}

func (s *fakeSystem) newQueue() (queue, fence object, err error) {
	return s.newObject("MTLCommandQueue"), s.newObject("MTLFence"), nil
}

func (s *fakeSystem) submit(to *target, t *table, ticket uint64) object {
	cb := call(s.l.submit, uintptr(unsafe.Pointer(to)), uintptr(unsafe.Pointer(unsafe.SliceData(t.launches))), uintptr(len(t.launches)),
		uintptr(unsafe.Pointer(unsafe.SliceData(t.args))), uintptr(unsafe.Pointer(unsafe.SliceData(t.constants))), uintptr(ticket))
	runtime.KeepAlive(t)
	select {
	case s.poke <- struct{}{}:
	default:
	}
	return cb
}

func (s *fakeSystem) finish(cb object, r *result) {
	call(s.l.finish, uintptr(cb), uintptr(unsafe.Pointer(r)))
}

func (s *fakeSystem) release(o object) { call(s.l.release, uintptr(o)) }

// close gives the device back; then nothing may be left of what was made.
func (s *fakeSystem) close() {
	close(s.poke)
	<-s.ended
	s.release(s.device)
	if s.stream != nil {
		if err := s.stream.Close(); err != nil {
			s.t.Error(err)
		}
	}
	if n := number(call(s.l.live)) - s.begun; n != 0 {
		s.t.Errorf("%d of Metal's objects are left", n)
	}
	if len(s.buffers) != 0 {
		s.t.Errorf("%d buffers are left", len(s.buffers))
	}
}

// serve runs what is committed.
func (s *fakeSystem) serve() {
	defer close(s.ended)
	for range s.poke {
		for {
			cb := call(s.l.take)
			if cb == nil {
				break
			}
			time.Sleep(s.delay)
			s.run(cb)
		}
	}
}

// run runs a command buffer and completes it.
func (s *fakeSystem) run(cb object) {
	s.mu.Lock()
	failed := s.fail
	s.traces = append(s.traces, goString(call(s.l.trace, uintptr(cb))))
	s.mu.Unlock()
	var ns int64 = 1000
	if failed == nil && s.emu != nil {
		if err := s.emulate(cb); err != nil {
			failed = &CommandError{Code: 3, Text: err.Error()}
		}
		s.stream.Commit(func(took int64, err error) { ns = took })
	}
	if failed == nil {
		failed = &CommandError{}
	}
	call(s.l.complete, uintptr(cb), uintptr(failed.Code), cString(failed.Text), uintptr(ns))
}

// emulate runs a command buffer's launches.
func (s *fakeSystem) emulate(cb object) error {
	var n, waits, updates uint64
	first := call(s.l.dispatches, uintptr(cb), uintptr(unsafe.Pointer(&n)), uintptr(unsafe.Pointer(&waits)), uintptr(unsafe.Pointer(&updates)))
	if waits > 1 || updates != 1 {
		return fmt.Errorf("the fence is waited for %d times and updated %d times", waits, updates)
	}
	for i, d := range unsafe.Slice((*fakeDispatch)(first), n) {
		if (d.barrier != 0) != (i > 0) {
			return fmt.Errorf("launch %d: barrier before it: %v", i, d.barrier != 0)
		}
		s.mu.Lock()
		p := s.pipelines[d.pipeline]
		l := launch.Launch{Kernel: p.k, Groups: [3]int{int(d.groups[0]), int(d.groups[1]), int(d.groups[2])}, Threads: int(d.threads)}
		for j := range p.args {
			a := &d.args[j]
			if a.buffer == nil {
				l.Args = append(l.Args, launch.Arg{Bytes: unsafe.Slice((*byte)(a.bytes), a.length)})
			} else if m := s.buffers[a.buffer]; m != nil {
				l.Args = append(l.Args, launch.Arg{Memory: m, Offset: int(a.offset)})
			}
		}
		s.mu.Unlock()
		if err := s.stream.Launch(p.p, &l); err != nil {
			return fmt.Errorf("launch %d: %w", i, err)
		}
	}
	return nil
}

// announcing is a back end that tells the fake which kernel comes, so that it need not be read
// again from its source.
type announcing struct {
	*backend
	s  *fakeSystem
	mu sync.Mutex
}

func (a *announcing) Compile(k launch.Kernel, m *msl.Module) (launch.Pipeline, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.s.mu.Lock()
	a.s.next = &next{k, m}
	a.s.mu.Unlock()
	return a.backend.Compile(k, m)
}

// openDevice returns a device on s, which is closed when the test ends.
func openDevice(t testing.TB, s *fakeSystem) *launch.Device {
	t.Helper()
	b, err := newBackend(s)
	if err != nil {
		t.Fatal(err)
	}
	d, err := launch.New(&announcing{backend: b, s: s})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}
