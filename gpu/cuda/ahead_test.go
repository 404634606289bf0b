//go:build linux && (amd64 || arm64)

package cuda

import (
	"bytes"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/gpu/launch"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// slowCompiler is a fake compiler that counts sources in n. It compiles the kernel for one row at
// once, and others when hold is closed.
func slowCompiler(n *atomic.Int32, hold <-chan struct{}) *compiler {
	c := fakeCompiler(new(int))
	create, compile := c.create, c.compile
	var first sync.Map // programs of the kernel for one row
	c.create = func(program *uintptr, source, name []byte) result {
		r := create(program, source, name)
		if bytes.Contains(source, []byte("#define XROWS 1\n")) {
			first.Store(*program, true)
		}
		return r
	}
	c.compile = func(program uintptr, options []*byte) result {
		n.Add(1)
		if _, ok := first.Load(program); !ok {
			<-hold
		}
		return compile(program, options)
	}
	return c
}

// start is a process's use of a GPU: it opens the device with a folder for what is compiled.
func start(t *testing.T, dir string, ahead int, c *compiler) (d *Device, submit func(rows int), end func()) {
	t.Helper()
	f := newFake(t)
	f.total, f.idle = 1<<30, true
	b, err := newBackend(Config{CacheDir: dir, Ahead: ahead}, f.driver(), func(int) (*compiler, error) { return c, nil })
	if err != nil {
		t.Fatal(err)
	}
	l, err := launch.New(b)
	if err != nil {
		t.Fatal(err)
	}
	d = &Device{l, b}
	buf, err := d.NewBuffer(1 << 22)
	if err != nil {
		t.Fatal(err)
	}
	q, err := d.NewQueue()
	if err != nil {
		t.Fatal(err)
	}
	v := gpu.View{Buf: buf}
	submit = func(rows int) {
		t.Helper()
		var x submission
		w := gpu.Matrix{Rows: 64, Cols: 2048, Format: quant.Affine(4, 64), Weight: v, Scales: v, Biases: v}
		gpu.Encode(&x.Commands, gpu.MatMul{W: w, X: v.Floats(1 << 17), Y: v.Floats(1 << 19), Rows: rows})
		if err := x.wait(t, q); err != nil {
			t.Fatalf("%d rows: %v", rows, err)
		}
	}
	return d, submit, func() {
		if err := q.Close(); err != nil {
			t.Error(err)
		}
		buf.Release()
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		f.rest()
	}
}

// While the compiler is at work on kernels for other numbers of rows, steps go on with the kernel
// that is there. The next start calls the compiler for none of them.
func TestFirstUseAndSecondStart(t *testing.T) {
	dir, hold := t.TempDir(), make(chan struct{})
	var built atomic.Int32
	_, submit, end := start(t, dir, 2, slowCompiler(&built, hold))
	submit(1)
	for _, rows := range []int{2, 4, 8, 1} {
		submit(rows) // a step that waited for the compiler would not end
	}
	close(hold)
	const kernels = 7 // for 1, 2, 4, 8, 16 and more rows, and the one that makes limbs
	for deadline := time.Now().Add(10 * time.Second); built.Load() < kernels && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	end()
	if n := built.Load(); n != kernels {
		t.Errorf("the first start compiled %d kernels, want %d", n, kernels)
	}
	for _, ahead := range []int{2, 0} {
		built.Store(0)
		_, submit, end = start(t, dir, ahead, slowCompiler(&built, hold))
		for _, rows := range []int{8, 1, 2, 4, 16, 40, 8} {
			submit(rows)
		}
		end()
		if n := built.Load(); n != 0 {
			t.Errorf("with %d ahead the second start called the compiler %d times", ahead, n)
		}
	}
}

// Without a folder, or with one that cannot be written, what was compiled ahead is kept until it is
// loaded, and no longer.
func TestAheadWithoutFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, folder := range map[string]string{"none": "", "not writable": filepath.Join(file, "folder")} {
		t.Run(name, func(t *testing.T) { aheadWithoutFolder(t, folder) })
	}
}

func aheadWithoutFolder(t *testing.T, folder string) {
	hold := make(chan struct{})
	close(hold)
	var built atomic.Int32
	d, submit, end := start(t, folder, 2, slowCompiler(&built, hold))
	defer end()
	submit(1)
	images := func() int {
		d.b.mu.Lock()
		defer d.b.mu.Unlock()
		return len(d.b.images)
	}
	for deadline := time.Now().Add(10 * time.Second); images() < 6 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	if n := images(); n != 6 {
		t.Errorf("%d kernels are kept, want 6", n)
	}
	// A kernel is kept a moment before it is said to be compiled; until then another serves.
	for deadline := time.Now().Add(10 * time.Second); images() > 0 && time.Now().Before(deadline); {
		for _, rows := range []int{2, 4, 8, 16, 40} {
			submit(rows)
		}
	}
	if n, left := built.Load(), images(); n != 7 || left != 0 {
		t.Errorf("%d kernels were compiled, want 7, and %d are kept, want none", n, left)
	}
}

// A compiler that compiles one kernel after the other has one in the background, so that a kernel
// that a step needs waits for no more than that.
func TestAheadOneByOne(t *testing.T) {
	for _, c := range []struct {
		major, minor int32
		want         int
	}{{11, 8, 1}, {12, 2, 1}, {12, 3, 4}, {13, 0, 4}} {
		built := 0
		fake := fakeCompiler(&built)
		fake.version = func(major, minor *int32) result {
			*major, *minor = c.major, c.minor
			return success
		}
		b, err := newBackend(Config{Ahead: 4}, newFake(t).driver(), func(int) (*compiler, error) { return fake, nil })
		if err != nil {
			t.Fatal(err)
		}
		if got := b.Ahead(); got != c.want {
			t.Errorf("CUDA %d.%d: %d kernels at once, want %d", c.major, c.minor, got, c.want)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
}
