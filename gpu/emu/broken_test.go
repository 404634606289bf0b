//go:build linux && (amd64 || arm64)

package emu

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/gpu/launch"
	"github.com/moeflux/moeflux-actor/gpu/msl"
	"github.com/moeflux/moeflux-actor/internal/testenv"
)

// backend opens the emulator itself.
func backend(t testing.TB, order Order) *Backend {
	t.Helper()
	b, err := Open(Config{Order: order, Threads: 1, Cache: cache(t)})
	if errors.Is(err, ErrNoCompiler) {
		testenv.Missing(t, err.Error(), testenv.CXXCompilers...)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// broken reads the deliberate faults.
func broken(t testing.TB) *msl.Module {
	t.Helper()
	m, err := msl.Parse("broken.metal", func(name string) (string, error) {
		b, err := os.ReadFile(filepath.Join("../../shaders/testdata", name))
		return string(b), err
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// run64 runs a kernel of two buffers of 64 float32 and returns the second.
func run64(t testing.TB, b *Backend, m *msl.Module, name string) ([]float32, error) {
	t.Helper()
	k := launch.Kernel{Name: name}
	p, err := b.Compile(k, m)
	if err != nil {
		return nil, err
	}
	x, y := memory64(t, b), memory64(t, b)
	in := gpu.Floats(x.Bytes(), 64)
	for i := range in {
		in[i] = float32(i + 1)
	}
	s, err := b.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	err = s.Launch(p, &launch.Launch{Kernel: k, Groups: [3]int{1, 1, 1}, Threads: 64, Args: []launch.Arg{{Memory: x}, {Memory: y}}})
	return append([]float32{}, gpu.Floats(y.Bytes(), 64)...), err
}

func memory64(t testing.TB, b *Backend) launch.Memory {
	t.Helper()
	m, err := b.NewMemory(4 * 64)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Release)
	return m
}

// TestFaults wants each deliberate fault found: by an error that says what it is, or by wrong
// numbers in one of the three orders.
func TestFaults(t *testing.T) {
	m := broken(t)
	orders := []Order{Up, Down, Shuffled}
	for name, want := range map[string]string{
		"divergent_barrier":  "threadgroup_barrier not reached by every thread",
		"different_barriers": "different barriers",
		"divergent_simd":     "simd function not reached by every lane",
		"overrun":            "memory fault",
		"underrun":           "memory fault",
		"too_much_memory":    "36000 bytes of threadgroup memory, Metal has 32768",
	} {
		for _, order := range orders {
			if _, err := run64(t, backend(t, order), m, name); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s, order %d: error %v, want one with %q", name, order, err, want)
			}
		}
	}
	x := make([]float32, 64)
	for i := range x {
		x[i] = float32(i + 1)
	}
	for name, want := range map[string]func(i int) float32{
		"no_barrier":    func(i int) float32 { return x[63-i] },
		"stale_barrier": func(i int) float32 { return x[i] + 3*x[(i+1)%64] + 3*x[(i+2)%64] + x[(i+3)%64] },
		"overtaken":     func(i int) float32 { return x[63-i] + 64 },
		"uninitialised": func(i int) float32 { return x[i] },
	} {
		wrong := 0
		for _, order := range orders {
			y, err := run64(t, backend(t, order), m, name)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			for i, v := range y {
				if v != want(i) {
					wrong++
					break
				}
			}
		}
		if wrong == 0 {
			t.Errorf("%s gives the right numbers in all orders", name)
		}
	}
}

// A launch that Metal or CUDA would refuse is refused.
func TestRefusedLaunches(t *testing.T) {
	b, m := backend(t, Up), broken(t)
	k := launch.Kernel{Name: "no_barrier"}
	p, err := b.Compile(k, m)
	if err != nil {
		t.Fatal(err)
	}
	s, err := b.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	x, y := memory64(t, b), memory64(t, b)
	good := launch.Launch{Kernel: k, Groups: [3]int{1, 1, 1}, Threads: 64, Args: []launch.Arg{{Memory: x}, {Memory: y}}}
	if err := s.Launch(p, &good); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(l *launch.Launch)
		want   string
	}{
		"threads":     {func(l *launch.Launch) { l.Threads = 48 }, "48 threads"},
		"no groups":   {func(l *launch.Launch) { l.Groups[1] = 0 }, "a grid of [1 0 1]"},
		"many groups": {func(l *launch.Launch) { l.Groups[2] = 65536 }, "a grid of"},
		"arguments":   {func(l *launch.Launch) { l.Args = l.Args[:1] }, "1 arguments, want 2"},
		"alignment":   {func(l *launch.Launch) { l.Args = []launch.Arg{{Memory: x, Offset: 2}, {Memory: y}} }, "x: offset 2 is not aligned to 4"},
		"place":       {func(l *launch.Launch) { l.Args = []launch.Arg{{Memory: x, Offset: 256}, {Memory: y}} }, "x: offset 256 in memory of 256"},
		"same memory": {func(l *launch.Launch) { l.Args = []launch.Arg{{Memory: x}, {Memory: x}} }, "x and y are the same memory"},
	} {
		l := good
		c.change(&l)
		if err := s.Launch(p, &l); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}
}

func TestOpen(t *testing.T) {
	if _, err := Open(Config{Threads: -1}); err == nil {
		t.Error("-1 threads gave no error")
	}
	_, err := Open(Config{Compiler: "/nowhere/g++"})
	if !errors.Is(err, ErrNoCompiler) || !strings.Contains(err.Error(), "apt-get install g++") {
		t.Errorf("without a compiler: %v", err)
	}
	b := backend(t, Up)
	if _, err := b.Compile(launch.Kernel{Name: "nothing"}, broken(t)); err == nil || !strings.Contains(err.Error(), `"nothing"`) {
		t.Errorf("a kernel that is not there: %v", err)
	}
	bad, err := msl.Parse("bad.metal", func(string) (string, error) {
		return "kernel void bad(device float* y [[buffer(0)]]) {\n  y[0] = log1p(1.0f);\n}\n", nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Compile(launch.Kernel{Name: "bad"}, bad); err == nil || !strings.Contains(err.Error(), "bad.metal:2") {
		t.Errorf("a kernel that is no C++: %v", err)
	}
}

// Several that want the same kernel at once build it once, and the cache keeps nothing else.
func TestCache(t *testing.T) {
	dir := t.TempDir()
	m := broken(t)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			b, err := Open(Config{Threads: 1, Cache: dir})
			if errors.Is(err, ErrNoCompiler) {
				return
			}
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := b.Compile(launch.Kernel{Name: "no_barrier"}, m); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if filepath.Ext(f.Name()) != ".so" {
			t.Errorf("the cache holds %s", f.Name())
		}
	}
	if len(files) != 0 && len(files) != 2 { // the runtime and the kernel
		t.Errorf("%d files", len(files))
	}
}
