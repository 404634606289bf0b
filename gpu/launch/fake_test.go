package launch

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"go.uber.org/goleak"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/gpu/msl"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a back end in host memory whose kernels do nothing but be counted; its work ends some
// time after Commit, from a goroutine of its own.
type fake struct {
	mu       sync.Mutex
	memories int // not released
	compiled []Kernel
	launched []Launch // with their own copies of Args
	copied   int      // CopyIn
	streams  int
	record   bool // keep launches
	closed   bool

	compileErr, launchErr, streamErr error
	slow                             time.Duration // from Commit to done
	busy                             bool          // streams have not waited for what is done
	refuse                           int           // bytes from which on there is no memory
	limbs                            bool          // it has products of its own
	rounds                           bool          // they round
	processors                       int           // 0 is as many as the measured GPU has
	ahead                            int           // kernels that are compiled ahead at once
	hold                             chan struct{} // until it is closed, compiling ahead does not end
	prepareErr                       error
	prepared                         []Kernel // compiled ahead
}

type fakeMemory struct {
	f     *fake
	bytes []byte
}

func (m *fakeMemory) Bytes() []byte { return nil }
func (m *fakeMemory) Address() uint64 {
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(m.bytes))))
}
func (m *fakeMemory) Release() {
	m.f.mu.Lock()
	defer m.f.mu.Unlock()
	m.f.memories--
	m.bytes = nil
}

func (f *fake) Name() string { return "fake" }

func (f *fake) NewMemory(n int) (Memory, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refuse > 0 && n >= f.refuse {
		return nil, fmt.Errorf("fake: %d bytes: %w", n, gpu.ErrOutOfMemory)
	}
	f.memories++
	return &fakeMemory{f, make([]byte, n)}, nil
}

func (f *fake) Wrap(mem []byte) (Memory, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.memories++
	return &fakeMemory{f, mem}, nil
}

func (f *fake) Compile(k Kernel, m *msl.Module) (Pipeline, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.compiled = append(f.compiled, k)
	return m.Kernel(k.Name), f.compileErr
}

func (f *fake) LimbProducts() bool { return f.limbs }

func (f *fake) Rounds() bool { return f.rounds }

func (f *fake) Ahead() int { return f.ahead }

func (f *fake) PrepareOwn(k Kernel) error {
	if f.hold != nil {
		<-f.hold
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.prepared = append(f.prepared, k)
	return f.prepareErr
}

func (f *fake) Processors() int { return or(f.processors, measuredProcessors) }

// CompileOwn knows how many parameters those kernels have.
func (f *fake) CompileOwn(k Kernel) (Pipeline, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.compiled = append(f.compiled, k)
	n := map[string]int{"limbs_split": 4, "limbs_matmul": 4, "limbs_swiglu": 5, "limbs_experts": 8}[k.Name]
	if _, parts, ok := strings.Cut(k.Defines, "PARTS "); ok {
		n += 5 * int(parts[0]-'0')
	}
	return &msl.Kernel{Name: k.Name, Args: make([]msl.Arg, n)}, f.compileErr
}

func (f *fake) Close() error {
	f.closed = true
	return nil
}

type fakeDone struct {
	done func(int64, error)
	err  error
}

type fakeStream struct {
	f       *fake
	pending chan fakeDone
	ended   chan struct{}
}

func (f *fake) NewStream() (Stream, error) {
	if f.streamErr != nil {
		return nil, f.streamErr
	}
	f.mu.Lock()
	f.streams++
	f.mu.Unlock()
	s := &fakeStream{f, make(chan fakeDone, 100), make(chan struct{})}
	go func() {
		for d := range s.pending {
			time.Sleep(f.slow)
			d.done(7, d.err)
		}
		close(s.ended)
	}()
	return s, nil
}

func (s *fakeStream) Launch(p Pipeline, l *Launch) error {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	if k := p.(*msl.Kernel); len(k.Args) != len(l.Args) || k.Name != l.Kernel.Name {
		return fmt.Errorf("fake: %s with %d arguments, want %d", k.Name, len(l.Args), len(k.Args))
	}
	if s.f.record {
		c := *l
		c.Args = append([]Arg{}, l.Args...)
		s.f.launched = append(s.f.launched, c)
	}
	return s.f.launchErr
}

func (s *fakeStream) CopyIn(dst Memory, offset int, src []byte) error {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	s.f.copied++
	copy(dst.(*fakeMemory).bytes[offset:], src)
	return nil
}

func (s *fakeStream) CopyOut(dst []byte, src Memory, offset int) error {
	copy(dst, src.(*fakeMemory).bytes[offset:])
	return nil
}

func (s *fakeStream) Fill(dst Memory, offset, n int) error {
	clear(dst.(*fakeMemory).bytes[offset : offset+n])
	return nil
}

func (s *fakeStream) Waited() bool { return !s.f.busy }

func (s *fakeStream) Commit(done func(int64, error)) { s.pending <- fakeDone{done, nil} }

func (s *fakeStream) Close() error {
	close(s.pending)
	<-s.ended
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	s.f.streams--
	return nil
}

func openFake(t testing.TB, f *fake) *Device {
	t.Helper()
	d, err := New(f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if f.memories != 0 || f.streams != 0 || !f.closed {
			t.Errorf("closed with %d memories and %d streams open; closed: %v", f.memories, f.streams, f.closed)
		}
	})
	return d
}

func newBuffer(t testing.TB, d gpu.Device, n int) gpu.View {
	t.Helper()
	b, err := d.NewBuffer(n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Release)
	return gpu.View{Buf: b}
}

// newQueue makes a queue that is closed before buffers are released.
func newQueue(t testing.TB, d gpu.Device) gpu.Queue {
	t.Helper()
	q, err := d.NewQueue()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	})
	return q
}

// wait submits c and waits for it.
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

// adds returns commands of one addition in place.
func adds(v gpu.View) *gpu.Commands {
	c := new(gpu.Commands)
	gpu.Encode(c, gpu.Add{A: v, B: v, Y: v, N: 4})
	return c
}

// A launch that fails fails its ticket, with the operation and the cause, and no other.
func TestFailedLaunch(t *testing.T) {
	f := &fake{}
	d := openFake(t, f)
	v, q := newBuffer(t, d, 64), newQueue(t, d)
	cause := errors.New("the device is gone")
	f.launchErr = cause
	err := wait(t, q, adds(v))
	var op *OpError
	if !errors.Is(err, cause) || !errors.As(err, &op) || op.Op != "add" || op.Index != 0 {
		t.Errorf("error %v, want an *OpError of add that wraps %v", err, cause)
	}
	f.launchErr = nil
	if err := wait(t, q, adds(v)); err != nil {
		t.Errorf("after it: %v", err)
	}
}

// A kernel that does not compile fails its ticket and is tried again.
func TestFailedCompile(t *testing.T) {
	f := &fake{compileErr: errors.New("line 3")}
	d := openFake(t, f)
	v, q := newBuffer(t, d, 64), newQueue(t, d)
	if err := wait(t, q, adds(v)); !errors.Is(err, f.compileErr) {
		t.Errorf("error %v, want %v", err, f.compileErr)
	}
	f.compileErr = nil
	for range 3 {
		if err := wait(t, q, adds(v)); err != nil {
			t.Error(err)
		}
	}
	if len(f.compiled) != 2 {
		t.Errorf("%d compilations, want 2", len(f.compiled))
	}
}

// Without memory for what operations need between launches the ticket fails, and says so.
func TestNoScratch(t *testing.T) {
	f := &fake{}
	d := openFake(t, f)
	const heads, dim = 16, 64
	x, page, q := newBuffer(t, d, 1<<20), newBuffer(t, d, 1<<20), newQueue(t, d)
	c := new(gpu.Commands)
	gpu.Encode(c, gpu.Attention{Q: x, Y: x.At(1 << 16), Heads: heads, KVHeads: 1, HeadDim: dim, QRowStride: heads * dim, QHeadStride: dim, Scale: 1,
		Cache: gpu.KVLayout{PageRows: 1000, Dim: dim, VOffset: 1 << 19}, Segments: []gpu.KVSegment{{Rows: 1, Pos: 999, Pages: gpu.PagesOf(page)}}})
	f.refuse = 1<<16 + 1 // what tables take there is
	if err := wait(t, q, c); !errors.Is(err, gpu.ErrOutOfMemory) || !strings.Contains(err.Error(), "between launches") {
		t.Errorf("error %v, want ErrOutOfMemory of what operations need between launches", err)
	}
	f.refuse = 0
	if err := wait(t, q, c); err != nil {
		t.Error(err)
	}
}

// What is over while the goroutine that tells so is busy with what was over before is told late.
func TestLate(t *testing.T) {
	const slow = 3 * time.Millisecond
	for _, busy := range []bool{false, true} {
		f := &fake{slow: slow, busy: busy}
		d := openFake(t, f)
		v, q := newBuffer(t, d, 64), newQueue(t, d)
		var late []time.Duration // of a beginning, an end, a beginning, an end
		q.(gpu.Watched).Watch(func(p gpu.Progress) { late = append(late, time.Duration(p.LateNS)) })
		began := time.Now()
		first, err := q.Submit(adds(v))
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		first.OnDone(func(error) { close(done) })
		second, err := q.Submit(adds(v))
		if err != nil {
			t.Fatal(err)
		}
		inTime := true
		select {
		case <-done: // the test was slow: the second piece may have begun by itself
			inTime = false
		default:
		}
		<-done
		over := make(chan struct{})
		second.OnDone(func(error) { close(over) })
		<-over
		took := time.Since(began)
		if len(late) != 4 {
			t.Fatalf("told of %v", late)
		}
		// The fake says that work took 7 ns, from when it was committed. The second piece began
		// when the first was over.
		for i, d := range late {
			if want := busy && i > 0; (inTime || i != 2) && ((d != 0) != want || want && (d < slow || d > took)) {
				t.Errorf("a stream that is busy: %v; of work of 7 ns each, %v ago, late by %v", busy, took, late)
				break
			}
		}
	}
}

// Work that overlaps is reported piece after piece, each before its ticket is done.
func TestWatch(t *testing.T) {
	f := &fake{slow: 3 * time.Millisecond}
	d := openFake(t, f)
	v, q := newBuffer(t, d, 64), newQueue(t, d)
	var mu sync.Mutex
	var seen []bool
	reports := [2]int{} // of what is not urgent, and of what is
	q.(gpu.Watched).Watch(func(p gpu.Progress) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, p.Working)
		if want := map[bool]int64{true: 0, false: 7}[p.Working]; p.DeviceNS != want {
			t.Errorf("working %v: told of %d ns, want %d", p.Working, p.DeviceNS, want)
		}
		if p.Urgent {
			reports[1]++
		} else {
			reports[0]++
		}
	})
	const n = 5
	var tickets []gpu.Ticket
	for i := range n {
		c := adds(v)
		c.Urgent = i%2 == 1
		ticket, err := q.Submit(c)
		if err != nil {
			t.Fatal(err)
		}
		tickets = append(tickets, ticket)
	}
	for i, ticket := range tickets {
		done := make(chan error, 1)
		ticket.OnDone(func(err error) {
			mu.Lock()
			defer mu.Unlock()
			if len(seen) < 2*(i+1) {
				t.Errorf("ticket %d is done after %d reports", i, len(seen))
			}
			if ns := ticket.DeviceNS(); ns != 7 {
				t.Errorf("it took %d ns, want 7", ns)
			}
			done <- err
		})
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(seen) != 2*n {
		t.Errorf("%d reports, want %d", len(seen), 2*n)
	}
	if reports != [2]int{6, 4} {
		t.Errorf("%v reports of what is not urgent and what is, want 6 and 4", reports)
	}
	for i, working := range seen {
		if working != (i%2 == 0) {
			t.Errorf("reports %v, want begin and end in turn", seen)
			break
		}
	}
}

// The tables of all operations of a Submit are one copy.
func TestTablesTogether(t *testing.T) {
	f := &fake{record: true}
	d := openFake(t, f)
	v, q := newBuffer(t, d, 1<<16), newQueue(t, d)
	c := new(gpu.Commands)
	for i := range 5 {
		gpu.Encode(c, gpu.Gather{X: v, XRows: 8, Rows: []int32{int32(i), 7}, Y: v.Floats(1024), Dim: 16})
	}
	if err := wait(t, q, c); err != nil {
		t.Fatal(err)
	}
	if f.copied != 1 || len(f.launched) != 5 {
		t.Errorf("%d copies and %d launches, want 1 and 5", f.copied, len(f.launched))
	}
	for i, l := range f.launched {
		m := l.Args[1].Memory.(*fakeMemory)
		if got := m.bytes[l.Args[1].Offset]; got != byte(i) {
			t.Errorf("launch %d reads row %d", i, got)
		}
	}
}

func TestNewFails(t *testing.T) {
	f := &fake{refuse: 1}
	if _, err := New(f); !errors.Is(err, gpu.ErrOutOfMemory) || !f.closed {
		t.Errorf("error %v, closed %v", err, f.closed)
	}
	f = &fake{streamErr: errors.New("no streams")}
	d := openFake(t, f)
	if _, err := d.NewQueue(); !errors.Is(err, f.streamErr) {
		t.Errorf("NewQueue: %v", err)
	}
}

// many returns a function that submits one of nearly each operation, alone and joined with others,
// and waits for it. The back end does nothing.
func many(t testing.TB) (submit func()) {
	d := openFake(t, &fake{})
	v, state, q := newBuffer(t, d, 1<<20), newBuffer(t, d, 1<<20), newQueue(t, d)
	at := func(i int) gpu.View { return v.At(i << 16) }
	kv := gpu.KVLayout{PageRows: 64, Dim: 64, KOffset: 0, VOffset: 1 << 15}
	segments := []gpu.KVSegment{{Rows: 2, Pos: 3, Pages: gpu.PagesOf(state)}}
	states := []gpu.StateSegment{{Rows: 2, State: state}}
	w := gpu.Matrix{Rows: 32, Cols: 64, Weight: at(2)}
	square := gpu.Matrix{Rows: 64, Cols: 64, Weight: at(2)}
	wave := &gpu.ExpertTable{Experts: []gpu.Expert{{Gate: square, Up: square, Down: square}}}
	layer := &gpu.ExpertTable{Experts: wave.Experts, At: at(6)}
	picks := []int32{0, -1}
	rows := []int32{1, 0}
	long := []gpu.KVSegment{{Rows: 2, Pos: 3, Pages: gpu.PagesOf(state)}}
	weights := []float32{1, 2}
	var c gpu.Commands
	fill := func() {
		c.Reset()
		gpu.Encode(&c, gpu.Gather{X: at(0), XRows: 2, Rows: rows, Y: at(1), Dim: 16})
		gpu.Encode(&c, gpu.RMSNorm{X: at(0), Y: at(1), Vectors: 2, Dim: 64, Eps: 1e-6})
		gpu.Encode(&c, gpu.MatMul{W: w, X: at(0), Y: at(1), Rows: 2})
		gpu.Encode(&c, gpu.AppendKV{K: at(0), V: at(1), Cache: kv, Segments: segments})
		gpu.Encode(&c, gpu.Attention{Q: at(0), Y: at(1), QRowStride: 128, QHeadStride: 32, Heads: 4, KVHeads: 2, HeadDim: 32, Scale: 1, Cache: kv, Segments: segments})
		gpu.Encode(&c, gpu.CausalConv{X: at(0), W: at(2), Y: at(1), Channels: 16, Kernel: 4, Segments: states})
		gpu.Encode(&c, gpu.DeltaRule{QKV: at(0), Alpha: at(3), Beta: at(4), ALog: at(5), DtBias: at(6), Y: at(1), KeyHeads: 1, ValueHeads: 1, KeyDim: 8,
			ValueDim: 8, Segments: states})
		gpu.Encode(&c, gpu.TopK{Logits: at(0), Values: at(1), Indices: at(3), Stats: at(4), Rows: 2, Vocab: 64, K: 8})
		gpu.Encode(&c, gpu.Experts{X: at(0), Y: at(1), Scratch: at(3), Rows: 2, TopK: 1, Table: wave, Picks: gpu.List[int32]{Host: picks}})
		gpu.Encode(&c, gpu.Route{Scores: at(0), Picks: at(4), Weights: at(5), Rows: 2, Experts: 8, TopK: 1})
		gpu.Encode(&c, gpu.Experts{X: at(0), Y: at(1), Scratch: at(3), Rows: 2, TopK: 1, Table: layer, Picks: gpu.List[int32]{At: at(4)}})
		gpu.Encode(&c, gpu.Combine{Routed: at(1), Residual: at(0), Y: at(0), Weights: gpu.List[float32]{At: at(5)}, Rows: 2, TopK: 1, Dim: 64})
		gpu.Encode(&c, gpu.MatMul{W: w, X: at(0), Y: at(1), Rows: 2})
		gpu.Encode(&c, gpu.MatMul{W: square, X: at(0), Y: at(3), Rows: 2})
		gpu.Encode(&c, gpu.MatMul{W: square, X: at(1), Y: at(3), Rows: 2})
		gpu.Encode(&c, gpu.MatMul{W: square, X: at(1), Y: at(4), Rows: 2})
		gpu.Encode(&c, gpu.SwiGLU{Gate: at(3), Up: at(4), Y: at(3), Rows: 2, Dim: 64})
		gpu.Encode(&c, gpu.Add{A: at(0), B: at(1), Y: at(0), N: 128})
		gpu.Encode(&c, gpu.RMSNorm{X: at(0), Y: at(1), Vectors: 2, Dim: 64, Eps: 1e-6})
		gpu.Encode(&c, gpu.Combine{Routed: at(0), Residual: at(1), Y: at(1), Weights: gpu.List[float32]{Host: weights}, Rows: 2, TopK: 1, Dim: 64})
		gpu.Encode(&c, gpu.RMSNorm{X: at(1), Y: at(1), Vectors: 2, Dim: 64, Eps: 1e-6})
		gpu.Encode(&c, gpu.RMSNorm{X: at(0), W: at(2), Y: at(0), Vectors: 4, Dim: 32, Eps: 1e-6})
		gpu.Encode(&c, gpu.Rope{X: at(1), Table: at(3), Rows: 2, Heads: 2, Rotary: 16, RowStride: 64, HeadStride: 32})
		gpu.Encode(&c, gpu.AppendKV{K: at(1), V: at(4), Cache: kv, Segments: long})
	}
	done := make(chan error, 1)
	tell := func(err error) { done <- err }
	run := func(c *gpu.Commands) {
		ticket, err := q.Submit(c)
		if err != nil {
			t.Fatal(err)
		}
		ticket.OnDone(tell)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	tabulate := new(gpu.Commands)
	gpu.Encode(tabulate, gpu.Tabulate{Table: layer})
	run(tabulate)
	return func() { fill(); run(&c) }
}

// In the steady state a Submit allocates nothing.
func TestNoAllocations(t *testing.T) {
	submit := many(t)
	submit()
	if n := testing.AllocsPerRun(50, submit); n > 0 {
		t.Errorf("%v allocations a Submit", n)
	}
}
