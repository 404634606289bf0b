//go:build cuda && linux && (amd64 || arm64)

package cuda

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/moeflux/moeflux-actor/gpu/launch"
	"github.com/moeflux/moeflux-actor/gpu/msl"
)

// The tests and figures of this file need a GPU: go test -tags cuda.

const probeSource = `
kernel void nothing(device uint* x [[buffer(0)]], constant uint& n [[buffer(1)]], uint i [[thread_position_in_grid]]) {
	if (i < n) x[i] = x[i] + 1;
}
kernel void copy(device const uint4* x [[buffer(0)]], device uint4* y [[buffer(1)]], constant uint& n [[buffer(2)]],
		uint i [[thread_position_in_grid]], uint groups [[threadgroups_per_grid]], uint threads [[threads_per_threadgroup]]) {
	for (ulong k = i; k < n; k += ulong(groups) * threads) y[k] = x[k];
}
struct words { uint v[256]; };
kernel void put(device uint* y [[buffer(0)]], constant words& w [[buffer(1)]], constant uint& n [[buffer(2)]], uint i [[thread_position_in_grid]]) {
	if (i < n) y[i] = w.v[i];
}
kernel void wild(device uint* y [[buffer(0)]], constant ulong& at [[buffer(1)]], uint i [[thread_position_in_grid]]) {
	y[at + i] = 1;
}
`

func openProbe(tb testing.TB) (*backend, *msl.Module) {
	tb.Helper()
	cfg := Config{Driver: os.Getenv(DriverVariable), Compiler: os.Getenv(CompilerVariable)}
	d, err := openDriver(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	b, err := newBackend(cfg, d, func(major int) (*compiler, error) { return openCompiler(cfg, major) })
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := b.Close(); err != nil {
			tb.Error(err)
		}
	})
	m, err := msl.Parse("probe.metal", func(string) (string, error) { return probeSource, nil })
	if err != nil {
		tb.Fatal(err)
	}
	return b, m
}

func compileProbe(tb testing.TB, b *backend, m *msl.Module, name string) launch.Pipeline {
	tb.Helper()
	p, err := b.Compile(launch.Kernel{Name: name}, m)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func newMemory(tb testing.TB, b *backend, n int) launch.Memory {
	tb.Helper()
	m, err := b.NewMemory(n)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(m.Release)
	return m
}

func newStream(tb testing.TB, b *backend) *stream {
	tb.Helper()
	s, err := b.NewStream()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s.(*stream)
}

func u32(v uint32) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(&v)), 4) }

// wait commits and waits.
func wait(tb testing.TB, s *stream) (ns int64) {
	tb.Helper()
	done := make(chan error, 1)
	s.Commit(func(n int64, err error) { ns = n; done <- err })
	must(tb, <-done)
	return ns
}

func TestProbe(t *testing.T) {
	b, m := openProbe(t)
	t.Logf("%s; driver %s, compiler %s", b.Name(), b.d.lib.path, b.c.path)
	free, total, err := b.memoryInfo()
	t.Logf("%d of %d bytes free, %v; GOMAXPROCS %d", free, total, err, runtime.GOMAXPROCS(0))
	x := newMemory(t, b, 4096)
	s := newStream(t, b)
	p := compileProbe(t, b, m, "nothing")
	for range 3 {
		must(t, s.Launch(p, &launch.Launch{Groups: [3]int{4, 1, 1}, Threads: 256, Args: []launch.Arg{{Memory: x}, {Bytes: u32(1000)}}}))
	}
	out := make([]byte, 4096)
	must(t, s.CopyOut(out, x, 0))
	ns := wait(t, s)
	words := unsafe.Slice((*uint32)(unsafe.Pointer(&out[0])), 1024)
	for i, w := range words {
		if want := uint32(3); i >= 1000 && w != 0 || i < 1000 && w != want {
			t.Fatalf("word %d is %d", i, w)
		}
	}
	t.Logf("three launches took %d ns", ns)
}

func TestProbeOutOfMemory(t *testing.T) {
	b, _ := openProbe(t)
	free, _, err := b.memoryInfo()
	must(t, err)
	for _, n := range []int{int(free) + 1<<30, 1 << 50} {
		_, err := b.NewMemory(n)
		t.Logf("%v", err)
		if err == nil {
			t.Errorf("%d bytes of %d", n, free)
		}
	}
	again, _, err := b.memoryInfo()
	must(t, err)
	if again != free {
		t.Errorf("%d bytes are free, %d were", again, free)
	}
}

// An address that does not exist spoils the context, and the error names the kernel. All of the
// process shares the context, so the test has a process of its own.
func TestProbeWild(t *testing.T) {
	if os.Getenv("MOEFLUX_PROBE_WILD") == "" {
		c := exec.Command(os.Args[0], "-test.run=^TestProbeWild$", "-test.v")
		c.Env = append(os.Environ(), "MOEFLUX_PROBE_WILD=1")
		if out, err := c.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestProbeWild") {
			t.Errorf("%v:\n%s", err, out)
		}
		return
	}
	b, m := openProbe(t)
	x := newMemory(t, b, 4096)
	s := newStream(t, b)
	p := compileProbe(t, b, m, "wild")
	at := uint64(1) << 45
	must(t, s.Launch(p, &launch.Launch{Groups: [3]int{1, 1, 1}, Threads: 32, Args: []launch.Arg{{Memory: x}, {Bytes: unsafe.Slice((*byte)(unsafe.Pointer(&at)), 8)}}}))
	done := make(chan error, 2)
	s.Commit(func(_ int64, err error) { done <- err })
	s.Fill(x, 0, 16) // may or may not see already what becomes of the launch
	s.Commit(func(_ int64, err error) { done <- err })
	first, second := <-done, <-done
	if e := (*Error)(nil); !errors.As(first, &e) || result(e.Code) != illegalAddress || !strings.Contains(first.Error(), "kernel wild") {
		t.Errorf("the launch ended with %v, want error %d of kernel wild", first, illegalAddress)
	}
	_, third := b.NewMemory(10)
	for what, err := range map[string]error{"the next work": second, "new memory": third} {
		if err == nil || !strings.Contains(err.Error(), "takes no more work") {
			t.Errorf("%s: %v, want an error that says that the GPU has failed", what, err)
		}
	}
}

func perOp(b *testing.B, name string, value float64) { b.ReportMetric(value, name) }

func BenchmarkLaunches(b *testing.B) {
	g, m := openProbe(b)
	x := newMemory(b, g, 4096)
	s := newStream(b, g)
	p := compileProbe(b, g, m, "nothing")
	l := &launch.Launch{Groups: [3]int{1, 1, 1}, Threads: 32, Args: []launch.Arg{{Memory: x}, {Bytes: u32(32)}}}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	b.ReportAllocs()
	const each = 20
	var cpu time.Duration
	var device int64
	done := make(chan error, 1)
	for b.Loop() {
		began := time.Now()
		for range each {
			must(b, s.Launch(p, l))
		}
		cpu += time.Since(began)
		s.Commit(func(n int64, err error) { device += n; done <- err })
		must(b, <-done)
	}
	perOp(b, "cpu-ns/launch", float64(cpu)/float64(b.N)/each)
	perOp(b, "device-ns/launch", float64(device)/float64(b.N)/each)
}

// A round trip: one launch, 512 bytes out, and the next from the callback.
func BenchmarkRoundTrip(b *testing.B) {
	g, m := openProbe(b)
	x := newMemory(b, g, 4096)
	s := newStream(b, g)
	p := compileProbe(b, g, m, "nothing")
	l := &launch.Launch{Groups: [3]int{1, 1, 1}, Threads: 32, Args: []launch.Arg{{Memory: x}, {Bytes: u32(32)}}}
	out := make([]byte, 512)
	b.Run("callback", func(b *testing.B) {
		end := make(chan error, 1)
		n := b.N
		var next func(int64, error)
		next = func(_ int64, err error) {
			if err != nil || n == 0 {
				end <- err
				return
			}
			n--
			s.Launch(p, l)
			s.CopyOut(out, x, 0)
			s.Commit(next)
		}
		b.ResetTimer()
		next(0, nil)
		must(b, <-end)
	})
	b.Run("goroutine", func(b *testing.B) {
		done := make(chan error, 1)
		for b.Loop() {
			s.Launch(p, l)
			s.CopyOut(out, x, 0)
			s.Commit(func(_ int64, err error) { done <- err })
			must(b, <-done)
		}
	})
	// What the driver offers for waiting, without the goroutine.
	var e eventHandle
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_, blk, err := g.newBlock(4096)
	must(b, err)
	flag := (*uint32)(unsafe.Pointer(&blk[0]))
	run := func(name string, flags uint32, await func()) {
		b.Run(name, func(b *testing.B) {
			unbind, err := g.bind()
			must(b, err)
			defer unbind()
			must(b, g.check(g.d.eventCreate(&e, flags), "cuEventCreate", ""))
			var params [2]unsafe.Pointer
			at, n := x.Address(), uint32(32)
			params[0], params[1] = unsafe.Pointer(&at), unsafe.Pointer(&n)
			for b.Loop() {
				*flag = 0
				g.d.launch(p.(*pipeline).function, [3]int{1, 1, 1}, 32, s.handle, &params[0])
				g.d.copyOut(unsafe.Pointer(&blk[0]), address(x.Address()), 512, s.handle)
				g.d.eventRecord(e, s.handle)
				await()
			}
			g.d.eventDestroy(e)
		})
	}
	run("eventsync", 0, func() { g.d.eventSync(e) })
	sym := &symbols{lib: g.d.lib}
	write := sym.quick("cuStreamWriteValue32_v2")
	must(b, sym.err)
	var at address
	must(b, g.check(g.d.hostAddress(&at, unsafe.Pointer(&blk[2048])), "cuMemHostGetDevicePointer_v2", ""))
	word := (*atomic.Uint32)(unsafe.Pointer(&blk[2048]))
	run("poll-written", 0, func() {
		word.Store(0)
		if r := write.call(uintptr(s.handle), uintptr(at), 1, 0); r != success {
			b.Fatal(g.check(r, "cuStreamWriteValue32_v2", ""))
		}
		for word.Load() == 0 {
		}
		g.d.eventSync(e)
	})
	run("eventsync-untimed", 2, func() { g.d.eventSync(e) })
	run("eventsync-blocking", 1, func() { g.d.eventSync(e) })
	run("poll-copied", 0, func() {
		for *(*uint32)(flag) == 0 {
			runtime.Gosched()
		}
	})
}

// Small uploads between kernels: by copies, by a kernel that has them as a parameter, none.
func BenchmarkSmallUploads(b *testing.B) {
	g, m := openProbe(b)
	x, y := newMemory(b, g, 4096), newMemory(b, g, 4096)
	s := newStream(b, g)
	p, put := compileProbe(b, g, m, "nothing"), compileProbe(b, g, m, "put")
	l := &launch.Launch{Groups: [3]int{1, 1, 1}, Threads: 32, Args: []launch.Arg{{Memory: x}, {Bytes: u32(32)}}}
	var words [1024]byte
	lp := &launch.Launch{Groups: [3]int{1, 1, 1}, Threads: 256, Args: []launch.Arg{{Memory: y}, {Bytes: words[:]}, {Bytes: u32(256)}}}
	const each = 10
	for _, c := range []struct {
		name string
		do   func() error
	}{
		{"none", func() error { return nil }},
		{"copy", func() error { return s.CopyIn(y, 0, words[:]) }},
		{"param", func() error { return s.Launch(put, lp) }},
		{"fill", func() error { return s.Fill(y, 0, 1024) }},
		{"out", func() error { return s.CopyOut(words[:], y, 0) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			var cpu time.Duration
			var device int64
			for b.Loop() {
				began := time.Now()
				for range each {
					must(b, s.Launch(p, l))
					must(b, c.do())
				}
				cpu += time.Since(began)
				device += wait(b, s)
			}
			perOp(b, "cpu-ns/pair", float64(cpu)/float64(b.N)/each)
			perOp(b, "device-ns/pair", float64(device)/float64(b.N)/each)
		})
	}
}

func BenchmarkBandwidth(b *testing.B) {
	g, m := openProbe(b)
	s := newStream(b, g)
	const n = 1 << 30
	x, y := newMemory(b, g, n), newMemory(b, g, n)
	p := compileProbe(b, g, m, "copy")
	rate := func(b *testing.B, bytes int, ns int64) {
		b.ReportMetric(float64(bytes)*float64(b.N)/float64(ns), "GB/s")
	}
	for _, groups := range []int{132 * 8, 132 * 16, 132 * 64} {
		b.Run(fmt.Sprintf("device/groups=%d", groups), func(b *testing.B) {
			var ns int64
			for b.Loop() {
				must(b, s.Launch(p, &launch.Launch{Groups: [3]int{groups, 1, 1}, Threads: 256, Args: []launch.Arg{{Memory: x}, {Memory: y}, {Bytes: u32(n / 16)}}}))
				ns += wait(b, s)
			}
			rate(b, 2*n, ns)
		})
	}
	sym := &symbols{lib: g.d.lib}
	d2d := sym.proc("cuMemcpyDtoDAsync_v2")
	b.Run("device/driver", func(b *testing.B) {
		var ns int64
		for b.Loop() {
			_, err := s.record()
			must(b, err)
			d2d.call(uintptr(y.Address()), uintptr(x.Address()), n, uintptr(s.handle))
			ns += wait(b, s)
		}
		rate(b, 2*n, ns)
	})
	_, blk, err := g.newBlock(64 << 20)
	must(b, err)
	for _, size := range []int{256 << 10, 2 << 20, 64 << 20} {
		b.Run(fmt.Sprintf("up/pinned/bytes=%d", size), func(b *testing.B) {
			var ns int64
			for b.Loop() {
				_, err := s.record()
				must(b, err)
				g.d.copyIn(address(x.Address()), unsafe.Pointer(&blk[0]), uint64(size), s.handle)
				ns += wait(b, s)
			}
			rate(b, size, ns)
		})
		b.Run(fmt.Sprintf("down/pinned/bytes=%d", size), func(b *testing.B) {
			var ns int64
			for b.Loop() {
				_, err := s.record()
				must(b, err)
				g.d.copyOut(unsafe.Pointer(&blk[0]), address(x.Address()), uint64(size), s.handle)
				ns += wait(b, s)
			}
			rate(b, size, ns)
		})
	}
	host := make([]byte, 256<<20)
	for i := range host {
		host[i] = byte(i)
	}
	for _, size := range []int{2 << 20, 64 << 20, 256 << 20} {
		b.Run(fmt.Sprintf("up/CopyIn/bytes=%d", size), func(b *testing.B) {
			began := time.Now()
			for b.Loop() {
				must(b, s.CopyIn(x, 0, host[:size]))
				wait(b, s)
			}
			rate(b, size, int64(time.Since(began)))
		})
	}
	b.Run("up/pageable/bytes=67108864", func(b *testing.B) {
		began := time.Now()
		for b.Loop() {
			_, err := s.record()
			must(b, err)
			g.d.copyIn(address(x.Address()), unsafe.Pointer(&host[0]), 64<<20, s.handle)
			wait(b, s)
		}
		rate(b, 64<<20, int64(time.Since(began)))
	})
	var at address
	mapped := host[:64<<20]
	must(b, g.check(g.d.hostRegister(unsafe.Pointer(&mapped[0]), 64<<20, hostRegisterMapped), "cuMemHostRegister_v2", ""))
	must(b, g.check(g.d.hostAddress(&at, unsafe.Pointer(&mapped[0])), "cuMemHostGetDevicePointer_v2", ""))
	b.Run("read-over-bus", func(b *testing.B) {
		wrapped := &memory{b: g, at: at}
		var ns int64
		for b.Loop() {
			must(b, s.Launch(p, &launch.Launch{Groups: [3]int{132 * 16, 1, 1}, Threads: 256, Args: []launch.Arg{{Memory: wrapped}, {Memory: y}, {Bytes: u32(64 << 20 / 16)}}}))
			ns += wait(b, s)
		}
		rate(b, 64<<20, ns)
	})
	g.d.unregister(unsafe.Pointer(&mapped[0]))
}

// Uploads on a stream of their own beside kernels on another.
func BenchmarkOverlap(b *testing.B) {
	g, m := openProbe(b)
	s, up := newStream(b, g), newStream(b, g)
	const n, piece = 1 << 30, 2 << 20
	x, y, z := newMemory(b, g, n), newMemory(b, g, n), newMemory(b, g, piece)
	p := compileProbe(b, g, m, "copy")
	_, blk, err := g.newBlock(piece)
	must(b, err)
	l := &launch.Launch{Groups: [3]int{132 * 16, 1, 1}, Threads: 256, Args: []launch.Arg{{Memory: x}, {Memory: y}, {Bytes: u32(n / 16)}}}
	for _, uploads := range []bool{false, true} {
		b.Run(fmt.Sprintf("uploads=%v", uploads), func(b *testing.B) {
			var ns, upNS int64
			for b.Loop() {
				must(b, s.Launch(p, l))
				done := make(chan error, 2)
				if uploads {
					_, err := up.record()
					must(b, err)
					for range 8 {
						g.d.copyIn(address(z.Address()), unsafe.Pointer(&blk[0]), piece, up.handle)
					}
				}
				up.Commit(func(v int64, err error) { upNS += v; done <- err })
				s.Commit(func(v int64, err error) { ns += v; done <- err })
				must(b, <-done)
				must(b, <-done)
			}
			b.ReportMetric(2*n*float64(b.N)/float64(ns), "compute-GB/s")
			if uploads {
				b.ReportMetric(8*piece*float64(b.N)/float64(upNS), "upload-GB/s")
			}
		})
	}
}
