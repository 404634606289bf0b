package host

import (
	"bytes"
	"errors"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/internal/mapfault"
)

func TestConfig(t *testing.T) {
	for _, cfg := range []Config{{Threads: -1}, {Threads: 1025}, {Activations: 2}, {Threads: -1, Activations: 9}, {Variant: "sse9"}} {
		if d, err := New(cfg); err == nil {
			d.Close()
			t.Errorf("New(%+v) gave no error", cfg)
		}
	}
	err := Config{Threads: -1, Activations: 9, Variant: "sse9"}.Validate()
	for _, part := range []string{"-1 threads", "activations(9)", "must be f32 or int8", `"sse9"`, strings.Join(Variants(), ", ")} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not say %q", err, part)
		}
	}
	if got, want := open(t, 0).Threads(), min(runtime.GOMAXPROCS(0), runtime.NumCPU()); got != want {
		t.Errorf("0 threads mean %d, want %d", got, want)
	}
	for threads, want := range map[int]string{1: "host (1 thread, portable)", 3: "host (3 threads, portable)"} {
		if got := openVariant(t, threads, "portable").Name(); got != want {
			t.Errorf("name %q, want %q", got, want)
		}
	}
	if got, want := openConfig(t, Config{Threads: 1, Activations: Int8, Variant: "portable"}).Name(), "host (1 thread, portable, int8)"; got != want {
		t.Errorf("with int8 activations the name is %q, want %q", got, want)
	}
	if got, want := open(t, 1).Name(), "host (1 thread, "+Variants()[0]+")"; got != want {
		t.Errorf("without a variant the name is %q, want %q", got, want)
	}
}

func TestClose(t *testing.T) {
	d, err := New(Config{Threads: 3})
	if err != nil {
		t.Fatal(err)
	}
	b, err := d.NewBuffer(10)
	if err != nil {
		t.Fatal(err)
	}
	q, err := d.NewQueue()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err == nil || !strings.Contains(err.Error(), "1 open queues, 1 buffers") {
		t.Errorf("closing with a queue and a buffer: error %v", err)
	}
	if err := q.Close(); err != nil {
		t.Error(err)
	}
	b.Release()
	for range 2 {
		if err := d.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
	}
	if _, err := d.NewBuffer(1); !errors.Is(err, gpu.ErrClosed) {
		t.Errorf("NewBuffer after Close: %v", err)
	}
	if _, err := d.Wrap(make([]byte, 8)); !errors.Is(err, gpu.ErrClosed) {
		t.Errorf("Wrap after Close: %v", err)
	}
	if _, err := d.NewQueue(); !errors.Is(err, gpu.ErrClosed) {
		t.Errorf("NewQueue after Close: %v", err)
	}
	if err := d.Run(new(gpu.Commands)); !errors.Is(err, gpu.ErrClosed) {
		t.Errorf("Run after Close: %v", err)
	}
}

// TestMemory allocates and releases buffers at random. Each must be zero, aligned, and its own.
func TestMemory(t *testing.T) {
	d := open(t, 1)
	rng := rand.New(rand.NewPCG(1, 2))
	type owned struct {
		gpu.Buffer
		mark byte
	}
	var live []owned
	drop := func(i int) {
		b := live[i]
		if got := b.Bytes(); !bytes.Equal(got, bytes.Repeat([]byte{b.mark}, len(got))) {
			t.Fatalf("a buffer of %d bytes was written by somebody else", len(got))
		}
		b.Release()
		if b.Len() != 0 || b.Bytes() != nil {
			t.Errorf("a released buffer has %d bytes", b.Len())
		}
		live[i] = live[len(live)-1]
		live = live[:len(live)-1]
	}
	for step := range 4000 {
		if len(live) > 0 && rng.IntN(9) < 4 {
			drop(rng.IntN(len(live)))
		}
		if step%500 == 499 { // an empty slab starts again
			for len(live) > 0 {
				drop(0)
			}
		}
		n := 1 + rng.IntN(smallBytes/8)
		if rng.IntN(50) == 0 {
			n = smallBytes + rng.IntN(1<<17)
		}
		b, err := d.NewBuffer(n)
		if err != nil {
			t.Fatal(err)
		}
		mem := b.Bytes()
		if len(mem) != n || cap(mem) < n || !bytes.Equal(mem, make([]byte, n)) {
			t.Fatalf("step %d: a buffer of %d bytes has %d, or is not zero", step, n, len(mem))
		}
		if at := uintptr(unsafe.Pointer(unsafe.SliceData(mem))); at%alignBytes != 0 || n > smallBytes && at%4096 != 0 {
			t.Fatalf("a buffer of %d bytes is at %#x", n, at)
		}
		o := owned{b, byte(1 + rng.IntN(255))}
		for i := range mem {
			mem[i] = o.mark
		}
		live = append(live, o)
	}
	for len(live) > 0 {
		drop(0)
	}
}

func TestWrapMisaligned(t *testing.T) {
	d := open(t, 1)
	mem := make([]byte, 64)
	if _, err := d.Wrap(mem[1:]); err == nil || !strings.Contains(err.Error(), "multiple of 4") {
		t.Errorf("wrapping at an odd address: error %v", err)
	}
	if _, err := d.Wrap(nil); err == nil {
		t.Error("wrapping nothing gave no error")
	}
}

// deviceBuffer has a length and no memory on the host.
type deviceBuffer struct{ n int }

func (b deviceBuffer) Len() int      { return b.n }
func (b deviceBuffer) Bytes() []byte { return nil }
func (b deviceBuffer) Release()      {}

// attentionOver is work for all threads that reads pages.
func attentionOver(t testing.TB, d *Device, page gpu.View) *gpu.Commands {
	const heads, dim, rows = 4, 64, 64
	kv := gpu.KV{KVLayout: gpu.KVLayout{PageRows: 64, Dim: heads * dim, VOffset: 64 * heads * dim * 4}, Pages: gpu.PagesOf(page)}
	c := new(gpu.Commands)
	gpu.Encode(c, gpu.Fill{Dst: benchFloats(t, d, 4), Bytes: 4})
	gpu.Encode(c, gpu.Attention{Q: benchFloats(t, d, rows*heads*dim), Y: benchFloats(t, d, rows*heads*dim), QRowStride: heads * dim,
		QHeadStride: dim, Heads: heads, KVHeads: heads, HeadDim: dim, Scale: 1, Cache: kv.KVLayout, Segments: []gpu.KVSegment{{Rows: rows, Pages: kv.Pages}}})
	return c
}

const attentionPage = 2 * 64 * 4 * 64 * 4 // bytes

// TestKernelError lets operations panic in the queue's goroutine and in workers, through a bug and
// through missing memory. The ticket must report it, and later work must succeed.
func TestKernelError(t *testing.T) {
	gone, err := unix.Mmap(-1, 0, attentionPage, unix.PROT_NONE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(gone)
	for _, threads := range []int{1, 4} {
		d := open(t, threads)
		wrapped, err := d.Wrap(gone)
		if err != nil {
			t.Fatal(err)
		}
		foreign := gpu.View{Buf: deviceBuffer{attentionPage}}
		good := attentionOver(t, d, benchFloats(t, d, attentionPage/4))
		weights := benchMatrix(t, d, 8, 4096, q4)
		weights.Weight = gpu.View{Buf: wrapped}
		var product, products gpu.Commands
		for rows, c := range map[int]*gpu.Commands{1: &product, 3: &products} {
			gpu.Encode(c, gpu.MatMul{W: weights, X: benchFloats(t, d, rows*4096), Y: benchFloats(t, d, rows*8), Rows: rows})
		}
		var fill gpu.Commands
		gpu.Encode(&fill, gpu.Fill{Dst: foreign, Bytes: 4})
		q, err := d.NewQueue()
		if err != nil {
			t.Fatal(err)
		}
		for _, bad := range []struct {
			name, op string
			index    int
			commands *gpu.Commands
		}{
			{"foreign memory", "fill", 0, &fill},
			{"foreign memory in a chunk", "attention", 1, attentionOver(t, d, foreign)},
			{"no memory", "attention", 1, attentionOver(t, d, gpu.View{Buf: wrapped})},
			{"no memory", "matmul", 0, &product},
			{"no memory", "matmul", 0, &products},
		} {
			err := wait(t, q, bad.commands)
			var e *KernelError
			if !errors.As(err, &e) || e.Op != bad.op || e.Index != bad.index || len(e.Stack) == 0 {
				t.Errorf("%d threads: %s: error %v, want a *KernelError of %s", threads, bad.name, err, bad.op)
			}
			if fault := (*mapfault.Fault)(nil); bad.name == "no memory" && (!errors.As(err, &fault) || strings.Contains(err.Error(), "goroutine")) {
				t.Errorf("%d threads: %v, want a *mapfault.Fault and no stack", threads, err)
			}
			if err := d.Run(bad.commands); !errors.As(err, &e) {
				t.Errorf("%d threads: %s: Run gave %v, want a *KernelError", threads, bad.name, err)
			}
			if err := wait(t, q, good); err != nil {
				t.Errorf("%d threads: after %s: %v", threads, bad.name, err)
			}
		}
		if err := q.Close(); err != nil {
			t.Error(err)
		}
		wrapped.Release()
	}
}

func wait(t *testing.T, q gpu.Queue, c *gpu.Commands) error {
	t.Helper()
	ticket, err := q.Submit(c)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	ticket.OnDone(func(err error) { done <- err })
	return <-done
}

// TestPool runs jobs of all sizes on more workers than cores. Every chunk must run once.
func TestPool(t *testing.T) {
	processors(t, 8)
	for _, workers := range []int{0, 1, 4, 9} {
		p := newPool(workers)
		var callers sync.WaitGroup
		for caller := range 3 {
			callers.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(workers), uint64(caller)))
				var s scratch
				for range 1500 {
					n := 1 + rng.IntN(40)
					c := &counting{done: make([]atomic.Int32, n), spin: rng.IntN(200)}
					p.run(&s, c, n, workers+1, nil)
					for i := range c.done {
						if got := c.done[i].Load(); got != 1 {
							t.Errorf("%d workers: chunk %d of %d ran %d times", workers, i, n, got)
							return
						}
					}
				}
			})
		}
		callers.Wait()
		p.close()
	}
}

// processors lets n threads run Go code at once during a test: a job wakes no more workers than
// that.
func processors(t *testing.T, n int) {
	before := runtime.GOMAXPROCS(n)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
}

// TestLateWorker runs jobs beside a worker that never comes: they must not wait for it.
func TestLateWorker(t *testing.T) {
	p := newPool(0)
	p.parts, p.workers = make([]part, 2), []*worker{{id: 1}}
	c := &counting{done: make([]atomic.Int32, 9)}
	p.run(new(scratch), c, len(c.done), 2, nil)
	for i := range c.done {
		if n := c.done[i].Load(); n != 1 {
			t.Errorf("chunk %d ran %d times, want once", i, n)
		}
	}
}

// TestCallerSleeps keeps a worker in a job until its caller, who has nothing left to do, sleeps.
func TestCallerSleeps(t *testing.T) {
	processors(t, 2)
	p := newPool(1)
	defer p.close()
	var caller scratch
	begun, slow := make(chan bool), false
	p.run(&caller, scratchFunc(func(s *scratch) {
		if s == &caller {
			<-begun
			return
		}
		close(begun)
		for !p.waiting.Load() {
			time.Sleep(time.Millisecond)
		}
		slow = true
	}), 2, 2, nil)
	if !slow {
		t.Error("the job ended before its worker")
	}
}

// scratchFunc is a task for tests.
type scratchFunc func(s *scratch)

func (f scratchFunc) do(s *scratch, _ int) { f(s) }

// TestHelped checks that the job's caller helps every thread, and others those near them, never
// themselves.
func TestHelped(t *testing.T) {
	for threads := 1; threads <= 70; threads++ {
		for id := range threads {
			seen := map[int]bool{}
			for k := range helps(id, threads) {
				other := helped(id, k, threads)
				if other == id || other < 0 || other >= threads {
					t.Fatalf("thread %d of %d helps %d", id, threads, other)
				}
				seen[other] = true
			}
			switch {
			case id == 0 && len(seen) != threads-1:
				t.Errorf("the caller helps %d of %d threads", len(seen), threads)
			case id > 0 && (!seen[(id+1)%threads] || len(seen) > 2*bits.Len(uint(threads))):
				t.Errorf("thread %d of %d helps %v", id, threads, seen)
			}
		}
	}
}

// TestWorkerFault touches missing memory in a worker while the caller is busy.
func TestWorkerFault(t *testing.T) {
	gone, err := unix.Mmap(-1, 0, 4096, unix.PROT_NONE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(gone)
	processors(t, 2)
	p := newPool(1)
	defer p.close()
	task := &faulting{mem: gone, faulted: make(chan struct{})}
	defer func() {
		c, ok := recover().(*chunkPanic)
		if !ok {
			t.Fatal("the worker's fault did not reach the caller")
		}
		if _, ok := c.value.(runtime.Error); !ok {
			t.Errorf("the fault is %v, want a runtime.Error", c.value)
		}
	}()
	p.run(&task.caller, task, 2, 2, nil)
}

type faulting struct {
	caller  scratch
	mem     []byte
	faulted chan struct{}
	sum     byte
}

func (f *faulting) do(s *scratch, _ int) {
	if s == &f.caller {
		<-f.faulted
		return
	}
	defer close(f.faulted)
	f.sum += f.mem[100]
}

type counting struct {
	done []atomic.Int32
	spin int
}

func (c *counting) do(s *scratch, chunk int) {
	f := grow(&s.a, 8)
	for i := range c.spin {
		f[i%8]++
	}
	c.done[chunk].Add(1)
}

// TestConcurrentRuns runs the same work from many goroutines at once.
func TestConcurrentRuns(t *testing.T) {
	d := open(t, 3)
	page := benchFloats(t, d, attentionPage/4)
	var want []byte
	var all sync.WaitGroup
	for i := range 6 {
		c := attentionOver(t, d, page)
		y := make([]byte, 64*4*64*4)
		gpu.Encode(c, gpu.Download{Src: c.Ops()[1].(*gpu.Attention).Y, Dst: y})
		if i == 0 {
			if err := d.Run(c); err != nil {
				t.Fatal(err)
			}
			want = y
			continue
		}
		all.Go(func() {
			for range 20 {
				if err := d.Run(c); err != nil {
					t.Error(err)
				}
				if !bytes.Equal(y, want) {
					t.Error("the same work gave other bits")
				}
			}
		})
	}
	all.Wait()
}

// TestBacklog submits far ahead of the device and checks the order.
func TestBacklog(t *testing.T) {
	d := open(t, 1)
	q, err := d.NewQueue()
	if err != nil {
		t.Fatal(err)
	}
	const n = 1000
	hold := make(chan struct{})
	// A ticket whose callback was set before it was submitted blocks the device: a ticket that is
	// done already would block the test.
	own := q.(*queue)
	first, _ := own.tickets.Get()
	first.Of = new(gpu.Commands)
	first.OnDone(func(error) { <-hold }) // only a test may block here
	own.line.Add(first)
	var order []int
	for i := range n {
		ticket, err := q.Submit(new(gpu.Commands))
		if err != nil {
			t.Fatal(err)
		}
		ticket.OnDone(func(error) { order = append(order, i) })
		if i == 0 && ticket.DeviceNS() != 0 {
			t.Errorf("a ticket that waits took %d ns", ticket.DeviceNS())
		}
		if i == n/2 {
			close(hold)
		}
	}
	if err := q.Close(); err != nil {
		t.Error(err)
	}
	for i, got := range order {
		if got != i {
			t.Fatalf("ticket %d was done at place %d", got, i)
		}
	}
	if len(order) != n {
		t.Errorf("%d of %d tickets were done after Close", len(order), n)
	}
}
