//go:build linux && (amd64 || arm64)

package cuda

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"go.uber.org/goleak"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/gpu/launch"
	"github.com/moeflux/moeflux-actor/gpu/msl"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeCompiler makes a source its own image, and refuses one that holds the word "wrong".
func fakeCompiler(builds *int) *compiler {
	var mu sync.Mutex // guards builds, too
	var last uintptr
	sources := map[uintptr][]byte{}
	of := func(program uintptr) []byte {
		mu.Lock()
		defer mu.Unlock()
		return sources[program]
	}
	c := &compiler{path: "libfakertc.so"}
	c.version = func(major, minor *int32) result { *major, *minor = 13, 1; return success }
	c.create = func(program *uintptr, s, name []byte) result {
		mu.Lock()
		defer mu.Unlock()
		last++
		*program, sources[last] = last, s
		return success
	}
	c.compile = func(program uintptr, options []*byte) result {
		mu.Lock()
		defer mu.Unlock()
		*builds++
		if bytes.Contains(sources[program], []byte("wrong")) {
			return 6
		}
		return success
	}
	log := "kernels.cu(3): error: expected a ;\x00"
	c.logSize = func(program uintptr, n *uint64) result { *n = uint64(len(log)); return success }
	c.log = func(program uintptr, b []byte) result { copy(b, log); return success }
	c.size = func(program uintptr, n *uint64) result { *n = uint64(len(of(program))); return success }
	c.code = func(program uintptr, b []byte) result { copy(b, of(program)); return success }
	c.destroy = func(program *uintptr) result { *program = 0; return success }
	c.text = func(r result) string { return "NVRTC_ERROR_COMPILATION" }
	return c
}

// openFake returns a backend on a fake driver, which is closed and looked through when the test
// ends.
func openFake(t *testing.T, cfg Config) (*backend, *fake, *int) {
	t.Helper()
	f, builds := newFake(t), new(int)
	b, err := newBackend(cfg, f.driver(), func(int) (*compiler, error) { return fakeCompiler(builds), nil })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		f.rest()
	})
	return b, f, builds
}

func parse(t *testing.T, source string) *msl.Module {
	t.Helper()
	m, err := msl.Parse("test.metal", func(string) (string, error) { return source, nil })
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestOpen(t *testing.T) {
	b, _, _ := openFake(t, Config{})
	if want := "cuda (Fake 9000, sm_90, NVRTC 13.1)"; b.Name() != want {
		t.Errorf("the name is %q, want %q", b.Name(), want)
	}
}

// Whatever function fails while a device is opened, the error names it and nothing is left behind.
func TestOpenFails(t *testing.T) {
	for _, function := range []string{
		"cuInit", "cuDriverGetVersion", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName", "cuDeviceGetAttribute", "cuDevicePrimaryCtxRetain", "cuStreamCreate",
	} {
		f := newFake(t)
		f.fail(function, noDevice)
		_, err := newBackend(Config{}, f.driver(), func(int) (*compiler, error) { return fakeCompiler(new(int)), nil })
		if e := (*Error)(nil); !errors.As(err, &e) || e.Function != function || e.Code != int(noDevice) || !strings.Contains(err.Error(), "FAKE_100, a fake error") {
			t.Errorf("%s fails: %v", function, err)
		}
		f.rest()
	}
	f := newFake(t)
	if _, err := newBackend(Config{Ordinal: 1}, f.driver(), nil); err == nil || !strings.Contains(err.Error(), "no GPU 1: the driver shows 1") {
		t.Errorf("the second of one GPU: %v", err)
	}
	cause := &LibraryError{What: "the compiler", Variable: CompilerVariable, Tried: []string{"nowhere"}}
	if _, err := newBackend(Config{}, f.driver(), func(major int) (*compiler, error) {
		if major != 13 {
			t.Errorf("the driver serves CUDA 13, the compiler is to serve %d", major)
		}
		return nil, cause
	}); err != error(cause) {
		t.Errorf("no compiler: %v", err)
	}
	f.rest()
}

func TestMemory(t *testing.T) {
	b, f, _ := openFake(t, Config{})
	m, err := b.NewMemory(1000)
	if err != nil {
		t.Fatal(err)
	}
	if got := f.at(address(m.Address()), 1000); m.Bytes() != nil || !bytes.Equal(got, make([]byte, 1000)) {
		t.Errorf("host bytes %v, device bytes % x…, want none and zeros", m.Bytes(), got[:8])
	}
	for _, n := range []int{1<<20 - 999, math.MaxInt} {
		_, err := b.NewMemory(n)
		want := fmt.Sprintf("%d bytes asked, 1047576 of 1048576 of Fake 9000 are free", n)
		if !errors.Is(err, gpu.ErrOutOfMemory) || !strings.Contains(err.Error(), want) {
			t.Errorf("%d bytes: %v, want %q", n, err, want)
		}
	}
	for _, function := range []string{"cuMemGetInfo_v2", "cuMemAlloc_v2", "cuMemsetD8Async", "cuStreamSynchronize"} {
		f.fail(function, 1)
		if _, err := b.NewMemory(10); err == nil || !strings.Contains(err.Error(), function) {
			t.Errorf("%s fails: %v", function, err)
		}
	}
	if b.Close() == nil {
		t.Error("a device with memory was closed")
	}
	if free, total, err := b.memoryInfo(); free != 1<<20-1000 || total != 1<<20 || err != nil {
		t.Errorf("%d of %d bytes free, %v", free, total, err)
	}
	m.Release()
}

func TestWrap(t *testing.T) {
	b, f, _ := openFake(t, Config{})
	mem := make([]byte, 100)
	m, err := b.Wrap(mem)
	if err != nil {
		t.Fatal(err)
	}
	if m.Address() != uint64(uintptr(unsafe.Pointer(&mem[0]))) || &m.Bytes()[0] != &mem[0] {
		t.Errorf("wrapped memory lies at %#x", m.Address())
	}
	m.Release()
	for _, function := range []string{"cuMemHostRegister_v2", "cuMemHostGetDevicePointer_v2"} {
		f.fail(function, 1)
		if _, err := b.Wrap(mem); err == nil || !strings.Contains(err.Error(), "wrapping 100 bytes of host memory: "+function) {
			t.Errorf("%s fails: %v", function, err)
		}
	}
}

const testKernels = `
struct pair { uint a, b; };
kernel void fill(device uint* y [[buffer(0)]], constant uint& n [[buffer(1)]], constant pair& p [[buffer(2)]], uint i [[thread_position_in_grid]]) {
	if (i < n) y[i] = p.a + p.b;
}
`

// fillKernel is what the kernel above does with its parameters as they are when it is launched.
func (f *fake) fillKernel(params *[maxArgs]unsafe.Pointer) func() result {
	y, n, a, b := *(*address)(params[0]), *(*uint32)(params[1]), *(*uint32)(params[2]), *(*uint32)(unsafe.Add(params[2], 4))
	return func() result {
		mem := f.at(y, 4*uint64(n))
		if mem == nil {
			return illegalAddress
		}
		for i := range n {
			binary.LittleEndian.PutUint32(mem[4*i:], a+b)
		}
		return success
	}
}

// launchFill launches it over n words from an offset on.
func launchFill(s launch.Stream, p launch.Pipeline, m launch.Memory, offset, n int, a, b uint32) error {
	constants := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, a), b)
	return s.Launch(p, &launch.Launch{Kernel: launch.Kernel{Name: "fill"}, Groups: [3]int{1, 1, 1}, Threads: 32, Args: []launch.Arg{
		{Memory: m, Offset: offset}, {Bytes: binary.LittleEndian.AppendUint32(nil, uint32(n))}, {Bytes: constants},
	}})
}

// bench is a stream, memory and a kernel on a fake.
type bench struct {
	t *testing.T
	*backend
	f *fake
	s launch.Stream
	m launch.Memory
	p launch.Pipeline
}

func openBench(t *testing.T) *bench {
	t.Helper()
	b, f, _ := openFake(t, Config{})
	f.kernels["fill"] = f.fillKernel
	x := &bench{t: t, backend: b, f: f}
	var err error
	if x.m, err = b.NewMemory(4096); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.m.Release)
	if x.s, err = b.NewStream(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.s.Close(); err != nil {
			t.Error(err)
		}
	})
	if x.p, err = b.Compile(launch.Kernel{Name: "fill"}, parse(t, testKernels)); err != nil {
		t.Fatal(err)
	}
	return x
}

// commit waits for the end of a batch.
func (x *bench) commit() (ns int64, err error) {
	done := make(chan error)
	x.s.Commit(func(n int64, err error) { ns = n; done <- err })
	return ns, <-done
}

// A stream says whether it had to wait for a batch.
func TestStreamWaited(t *testing.T) {
	x := openBench(t)
	s := x.s.(*stream)
	committed, waited := make(chan struct{}), make(chan bool, 2)
	for i := range 2 {
		if err := s.CopyIn(x.m, 0, make([]byte, 16)); err != nil {
			t.Fatal(err)
		}
		s.Commit(func(int64, error) {
			waited <- s.Waited()
			if i == 0 { // while it is busy the other one is done
				<-committed
				s.b.d.streamSync(s.handle)
			}
		})
	}
	close(committed)
	if first, second := <-waited, <-waited; !first || second {
		t.Errorf("it waited for the first batch: %v, for the second: %v; want true and false", first, second)
	}
}

// Copies, fills and launches run in order, with parameters as they were.
func TestStream(t *testing.T) {
	x := openBench(t)
	up, down := bytes.Repeat([]byte{7}, 4096), make([]byte, 4096)
	for _, err := range []error{
		x.s.CopyIn(x.m, 0, up), x.s.Fill(x.m, 8, 100), launchFill(x.s, x.p, x.m, 16, 3, 1000, 24), launchFill(x.s, x.p, x.m, 20, 1, 1, 2),
		x.s.CopyOut(down[5:], x.m, 5),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	want := bytes.Clone(up)
	clear(want[8:108])
	for i, v := range []uint32{1024, 3, 1024} {
		binary.LittleEndian.PutUint32(want[16+4*i:], v)
	}
	clear(want[:5])
	clear(up) // has been copied
	if ns, err := x.commit(); err != nil || ns != 6000 {
		t.Errorf("the work took %d ns, %v; want 6000 of the fake's clock", ns, err)
	}
	if !bytes.Equal(down, want) {
		t.Errorf("got % x…, want % x…", down[:32], want[:32])
	}
	if ns, err := x.commit(); err != nil || ns < 1 {
		t.Errorf("a Commit of nothing took %d ns, %v", ns, err)
	}
}

// Batches end in order, each with its own bytes, and their memory is used again.
func TestManyBatches(t *testing.T) {
	x := openBench(t)
	const n = 200
	type ended struct {
		batch int
		err   error
	}
	all := make(chan ended, n)
	down := make([][]byte, n)
	for i := range n {
		down[i] = make([]byte, 4)
		for _, err := range []error{launchFill(x.s, x.p, x.m, 0, 1, uint32(i), 5), x.s.CopyOut(down[i], x.m, 0)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		x.s.Commit(func(_ int64, err error) { all <- ended{i, err} })
	}
	for i := range n {
		if e := <-all; e.err != nil || e.batch != i {
			t.Fatalf("batch %d ended as number %d: %v", e.batch, i, e.err)
		}
	}
	for i := range n {
		if got := binary.LittleEndian.Uint32(down[i]); got != uint32(i)+5 {
			t.Errorf("batch %d gives %d", i, got)
		}
	}
	blocks := 0
	x.pinned.Free = func(b launch.Block[struct{}]) {
		blocks++
		x.freeBlock(b)
	}
	x.pinned.Drain()
	if blocks > n || blocks == 0 {
		t.Errorf("%d blocks of pinned memory", blocks)
	}
}

// What a method refuses fails its batch with its cause; the next is none the worse.
func TestRefused(t *testing.T) {
	x := openBench(t)
	for _, c := range []struct {
		function, want string
		code           result
	}{
		{"cuLaunchKernel", "kernel fill in [1 1 1] groups of 32 threads", launchOutOfResources},
		{"cuMemcpyHtoDAsync_v2", "copying 4 bytes to the device", 1},
		{"cuMemcpyDtoHAsync_v2", "copying 4 bytes from the device", 1},
		{"cuMemsetD8Async", "clearing 4 bytes", 1},
		{"cuEventRecord", "cuEventRecord", 1},
	} {
		x.f.fail(c.function, c.code)
		four := make([]byte, 4)
		var first error
		for _, err := range []error{launchFill(x.s, x.p, x.m, 0, 1, 1, 1), x.s.CopyIn(x.m, 0, four), x.s.CopyOut(four, x.m, 0), x.s.Fill(x.m, 0, 4)} {
			if first == nil {
				first = err
			}
		}
		_, err := x.commit()
		if first == nil || !strings.Contains(first.Error(), c.want) || !errors.Is(err, first) {
			t.Errorf("%s fails: a method says %v, the batch %v; want %q", c.function, first, err, c.want)
		}
		if err := launchFill(x.s, x.p, x.m, 0, 1, 1, 1); err != nil {
			t.Error(err)
		}
		if _, err := x.commit(); err != nil {
			t.Errorf("the batch behind a refused %s: %v", c.function, err)
		}
	}
	if err := x.s.Launch(x.p, &launch.Launch{Args: make([]launch.Arg, maxArgs+1)}); err == nil || !strings.Contains(err.Error(), "33 arguments") {
		t.Errorf("too many arguments: %v", err)
	}
	if _, err := x.commit(); err == nil {
		t.Error("a batch with too many arguments went well")
	}
}

// Chains of launches that come again are replayed with their constants as they are by then: on
// other memory they are another chain.
func TestGraphs(t *testing.T) {
	x := openBench(t)
	chain := func(offset, n int, base uint32) []uint32 {
		t.Helper()
		for i := range n {
			if err := launchFill(x.s, x.p, x.m, offset+4*i, 1, base, uint32(i*i)); err != nil {
				t.Fatal(err)
			}
		}
		down := make([]byte, 4*n)
		if err := x.s.CopyOut(down, x.m, offset); err != nil {
			t.Fatal(err)
		}
		if _, err := x.commit(); err != nil {
			t.Fatal(err)
		}
		got := make([]uint32, n)
		for i := range got {
			got[i] = binary.LittleEndian.Uint32(down[4*i:])
			if want := base + uint32(i*i); got[i] != want {
				t.Errorf("chain of %d at %d: word %d is %d, want %d", n, offset, i, got[i], want)
			}
		}
		return got
	}
	check := func(what string, launches, graphs, sets int) {
		t.Helper()
		c := x.f.counts
		if c["cuLaunchKernel"] != launches || c["cuGraphLaunch"] != graphs || c["cuGraphExecKernelNodeSetParams_v2"] != sets {
			t.Errorf("%s: %d launches, %d graphs, %d nodes changed; want %d, %d, %d", what, c["cuLaunchKernel"], c["cuGraphLaunch"],
				c["cuGraphExecKernelNodeSetParams_v2"], launches, graphs, sets)
		}
		clear(c)
	}
	chain(0, 5, 10)
	check("a chain that is new", 5, 0, 0)
	chain(0, 5, 10)
	check("again", 0, 1, 0)
	chain(0, 5, 10)
	check("and again", 0, 1, 0)
	chain(0, 5, 1000)
	check("with other constants", 0, 1, 5)
	chain(64, 5, 1000)
	check("elsewhere", 5, 0, 0)
	chain(0, 5, 1000)
	check("the first one", 0, 1, 0)
	chain(0, 2, 1000)
	chain(0, 2, 1000)
	check("short ones", 4, 0, 0)
	for n := 3; n < 10; n++ { // more chains than are kept
		for i := range 400 {
			chain(64+4*i, n, 0)
			if i%8 == 0 {
				chain(64+4*i, n, 0)
			}
		}
	}
	if n := len(x.s.(*stream).graphs.known); n != mostGraphs {
		t.Errorf("%d graphs are kept, want %d", n, mostGraphs)
	}
	for i, function := range []string{"cuGraphCreate", "cuGraphAddKernelNode_v2", "cuGraphAddDependencies_v2", "cuGraphInstantiateWithFlags"} {
		chain(3200+32*i, 6, 1)
		x.f.fail(function, outOfMemory)
		chain(3200+32*i, 6, 1) // is launched kernel by kernel
		x.f.mu.Lock()
		if _, left := x.f.fails[function]; left {
			t.Errorf("%s was not called", function)
		}
		x.f.mu.Unlock()
	}
	chain(3000, 6, 1)
	chain(3000, 6, 1)
	x.f.fail("cuGraphExecKernelNodeSetParams_v2", 1)
	for i := range 6 {
		if err := launchFill(x.s, x.p, x.m, 3000+4*i, 1, 2, 2); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := x.commit(); err == nil || !strings.Contains(err.Error(), "kernel fill in [1 1 1] groups") {
		t.Errorf("a node cannot be changed: %v", err)
	}
	chain(3000, 6, 77)
}

// Kernels of a graph may begin before the one before them ends where the GPU is of sm_90 or later
// and the driver has edges of that kind; else they stand behind one another as ever.
func TestOverlap(t *testing.T) {
	for _, c := range []struct {
		capability    int
		older         bool // the driver has no cuGraphAddDependencies_v2
		plain, behind int  // graphs with edges of each kind
	}{{90, false, 0, 1}, {100, false, 0, 1}, {90, true, 1, 0}, {89, false, 1, 0}} {
		x := openBench(t)
		x.capability = c.capability
		if c.older {
			x.d.graphOverlap = nil
		}
		for range 3 {
			for i := range 5 {
				if err := launchFill(x.s, x.p, x.m, 4*i, 1, 7, 1); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := x.commit(); err != nil {
				t.Fatal(err)
			}
		}
		n := x.f.counts
		if n["cuGraphAddDependencies"] != c.plain || n["cuGraphAddDependencies_v2"] != c.behind || n["cuGraphLaunch"] != 2 {
			t.Errorf("%+v: %d plain graphs, %d that overlap, %d launches of them", c, n["cuGraphAddDependencies"], n["cuGraphAddDependencies_v2"], n["cuGraphLaunch"])
		}
	}
}

// In the steady state nothing is allocated.
func TestNoAllocations(t *testing.T) {
	x := openBench(t)
	args := []launch.Arg{{Memory: x.m}, {Bytes: binary.LittleEndian.AppendUint32(nil, 1)}, {Bytes: make([]byte, 8)}}
	l := &launch.Launch{Kernel: launch.Kernel{Name: "fill"}, Groups: [3]int{1, 1, 1}, Threads: 32, Args: args}
	s := x.s.(*stream)
	d := *x.d
	d.launch = func(functionHandle, [3]int, int, streamHandle, *unsafe.Pointer) result { return success }
	d.graphLaunch = func(execHandle, streamHandle) result { return success }
	d.graphSet = func(execHandle, nodeHandle, *kernelSpec) result { return success }
	x.backend.d = &d
	n := 0
	if a := testing.AllocsPerRun(100, func() {
		n++
		binary.LittleEndian.PutUint32(args[2].Bytes, uint32(n%2))
		for range 4 {
			x.s.Launch(x.p, l)
		}
		batch, _ := s.record()
		runtime.UnlockOSThread()
		s.flush(batch)
	}); a != 0 {
		t.Errorf("a chain allocates %v times", a)
	}
	if _, err := x.commit(); err != nil {
		t.Error(err)
	}
}

// A kernel that goes astray fails its batch and all that follows, and the cause names it. What was
// before is unharmed.
func TestSpoiled(t *testing.T) {
	x := openBench(t)
	down := make([]byte, 4)
	ends := make(chan error, 3)
	end := func(_ int64, err error) { ends <- err }
	for _, err := range []error{launchFill(x.s, x.p, x.m, 0, 1, 40, 2), x.s.CopyOut(down, x.m, 0)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	x.f.mu.Lock() // so that nothing is waited for before all is there
	ready := make(chan error, 1)
	go func() {
		x.s.Commit(end)
		err := launchFill(x.s, x.p, x.m, 1<<30, 1, 1, 1)
		x.s.Commit(end)
		ready <- errors.Join(err, x.s.Fill(x.m, 0, 4))
		x.s.Commit(end)
	}()
	x.f.mu.Unlock()
	<-ready
	if err := <-ends; err != nil || binary.LittleEndian.Uint32(down) != 42 {
		t.Errorf("the batch before: %v, % x", err, down)
	}
	for i := range 2 {
		err := <-ends
		if e := (*Error)(nil); !errors.As(err, &e) || e.Code != int(illegalAddress) || !strings.Contains(err.Error(), "Fake 9000 has failed and takes no more work: cuda: kernel fill:") {
			t.Errorf("batch %d: %v", i+1, err)
		}
	}
	if _, err := x.NewMemory(10); err == nil || !strings.Contains(err.Error(), "kernel fill:") {
		t.Errorf("new memory: %v", err)
	}
	if err := x.s.Fill(x.m, 0, 4); err == nil {
		t.Error("a spoiled stream takes work")
	}
	if _, err := x.commit(); err == nil {
		t.Error("a spoiled stream does work")
	}
}

// Kernels are compiled once, on disk too, and what the compiler refuses is reported with its words.
func TestCompile(t *testing.T) {
	dir := t.TempDir()
	m := parse(t, testKernels)
	for _, want := range []int{1, 0} {
		b, _, builds := openFake(t, Config{CacheDir: dir})
		if _, err := b.Compile(launch.Kernel{Name: "fill"}, m); err != nil || *builds != want {
			t.Errorf("%d builds, %v; want %d", *builds, err, want)
		}
		if _, err := b.Compile(launch.Kernel{Name: "fill", Defines: fmt.Sprintf("#define N %d\n", want)}, m); err != nil || *builds != want+1 {
			t.Errorf("%d builds with another #define, %v; want %d", *builds, err, want+1)
		}
		_, err := b.Compile(launch.Kernel{Name: "fill", Defines: "#define wrong\n"}, m)
		if e := (*CompileError)(nil); !errors.As(err, &e) || e.Kernel != "fill" || !strings.Contains(err.Error(), "kernels.cu(3): error: expected a ;") ||
			!strings.Contains(err.Error(), "--gpu-architecture=sm_90") {
			t.Errorf("a wrong kernel: %v", err)
		}
	}
	b, f, _ := openFake(t, Config{})
	for _, function := range []string{"cuModuleLoadData", "cuModuleGetFunction"} {
		f.fail(function, 200)
		if _, err := b.Compile(launch.Kernel{Name: "fill"}, m); err == nil || !strings.Contains(err.Error(), "kernel fill: "+function) {
			t.Errorf("%s fails: %v", function, err)
		}
	}
}
