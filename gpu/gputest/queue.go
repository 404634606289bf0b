package gputest

import (
	"bytes"
	"errors"
	"math"
	"sync"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu"
)

// testDevice tests buffers, queues and tickets.
func testDevice(t *testing.T, d gpu.Device) {
	t.Run("name", func(t *testing.T) {
		if d.Name() == "" {
			t.Error("the device has no name")
		}
	})
	t.Run("buffers", func(t *testing.T) { testBuffers(t, d) })
	t.Run("wrap", func(t *testing.T) { testWrap(t, d) })
	t.Run("order", func(t *testing.T) { testOrder(t, d) })
	t.Run("urgent", func(t *testing.T) { testUrgent(t, d) })
	t.Run("refused", func(t *testing.T) { testRefused(t, d) })
	t.Run("closed", func(t *testing.T) { testClosed(t, d) })
	t.Run("tickets", func(t *testing.T) { testTickets(t, d) })
}

// testBuffers takes and releases buffers of many sizes: fresh ones are zero and no two share
// memory.
func testBuffers(t *testing.T, d gpu.Device) {
	for round := range 3 {
		var bufs []gpu.Buffer
		for _, n := range []int{1, 3, 64, 65, 4096, 100_000, 3 << 20} {
			b, err := d.NewBuffer(n)
			if err != nil {
				t.Fatalf("NewBuffer(%d): %v", n, err)
			}
			if b.Len() != n {
				t.Errorf("NewBuffer(%d) has %d bytes", n, b.Len())
			}
			got := make([]byte, n)
			var c gpu.Commands
			gpu.Encode(&c, gpu.Download{Src: gpu.View{Buf: b}, Dst: got})
			submit(t, d, &c)
			if !bytes.Equal(got, make([]byte, n)) {
				t.Errorf("round %d: a fresh buffer of %d bytes is not zero", round, n)
			}
			var dirty gpu.Commands
			gpu.Encode(&dirty, gpu.Upload{Dst: gpu.View{Buf: b}, Src: bytes.Repeat([]byte{byte(len(bufs) + 1)}, n)})
			submit(t, d, &dirty)
			bufs = append(bufs, b)
		}
		for i, b := range bufs {
			got := make([]byte, b.Len())
			var c gpu.Commands
			gpu.Encode(&c, gpu.Download{Src: gpu.View{Buf: b}, Dst: got})
			submit(t, d, &c)
			if !bytes.Equal(got, bytes.Repeat([]byte{byte(i + 1)}, b.Len())) {
				t.Errorf("round %d: buffer %d was overwritten by another", round, i)
			}
			b.Release()
			b.Release()
		}
	}
	for _, n := range []int{0, -1} {
		if _, err := d.NewBuffer(n); err == nil {
			t.Errorf("NewBuffer(%d) gave no error", n)
		}
	}
	if _, err := d.NewBuffer(math.MaxInt - 1<<20); !errors.Is(err, gpu.ErrOutOfMemory) {
		t.Errorf("NewBuffer of nearly all addresses: error %v, want ErrOutOfMemory", err)
	}
}

// testWrap reads host memory that changes between two submits.
func testWrap(t *testing.T, d gpu.Device) {
	mem := make([]byte, 1<<16)
	b, err := d.Wrap(mem)
	if err != nil {
		t.Fatalf("Wrap: %v", err)
	}
	defer b.Release()
	if b.Len() != len(mem) {
		t.Errorf("wrapping %d bytes gives a buffer of %d", len(mem), b.Len())
	}
	for round := range byte(2) {
		for i := range mem {
			mem[i] = byte(i)*3 + round
		}
		got := make([]byte, 1000)
		var c gpu.Commands
		gpu.Encode(&c, gpu.Download{Src: gpu.View{Buf: b, Offset: 77}, Dst: got})
		submit(t, d, &c)
		if !bytes.Equal(got, mem[77:1077]) {
			t.Errorf("round %d: wrapped memory reads % x…, want % x…", round, got[:8], mem[77:85])
		}
	}
}

// testOrder submits a chain of dependent work without waiting.
func testOrder(t *testing.T, d gpu.Device) {
	const n, steps = 1000, 200
	s := newSetup(t, d, "order")
	one := make([]float32, n)
	for i := range one {
		one[i] = float32(i)
	}
	a, sum := s.input("A", one), s.inout("sum", make([]float32, n))
	chain := make([]*gpu.Commands, steps)
	for i := range chain {
		chain[i] = new(gpu.Commands)
		gpu.Encode(chain[i], gpu.Add{A: sum.view(), B: a.view(), Y: sum.view(), N: n})
		if i == steps/2 {
			gpu.Encode(chain[i], gpu.Fill{Dst: sum.view(), Bytes: 4 * n})
		}
	}
	var up, down gpu.Commands
	for _, o := range s.operands {
		gpu.Encode(&up, gpu.Upload{Dst: gpu.View{Buf: o.buf}, Src: o.before})
		gpu.Encode(&down, gpu.Download{Src: gpu.View{Buf: o.buf}, Dst: o.after})
	}
	submit(t, d, append(append([]*gpu.Commands{&up}, chain...), &down)...)
	want := make([]float32, n)
	for i := range want {
		want[i] = float32(i * (steps - steps/2 - 1))
	}
	sum.expectExactly(want)
	for _, o := range s.operands {
		o.check(t)
	}
}

// testUrgent submits two chains of dependent work at once, one of them urgent. Each is in order,
// and what is not urgent sees what is, if that was submitted before.
func testUrgent(t *testing.T, d gpu.Device) {
	const n, steps = 1000, 100
	s := newSetup(t, d, "urgent")
	ramp := make([]float32, n)
	for i := range ramp {
		ramp[i] = float32(i)
	}
	a := s.input("A", ramp)
	hasty, slow := s.inout("hasty", make([]float32, n)), s.inout("slow", make([]float32, n))
	seen := s.inout("seen", make([]float32, n))
	var all []*gpu.Commands
	var up, down gpu.Commands
	for _, o := range s.operands {
		gpu.Encode(&up, gpu.Upload{Dst: gpu.View{Buf: o.buf}, Src: o.before})
		gpu.Encode(&down, gpu.Download{Src: gpu.View{Buf: o.buf}, Dst: o.after})
	}
	up.Urgent = true // else urgent work might come before it
	all = append(all, &up)
	for i := range steps {
		for _, sum := range []*operand{slow, hasty} {
			c := &gpu.Commands{Urgent: sum == hasty}
			gpu.Encode(c, gpu.Add{A: sum.view(), B: a.view(), Y: sum.view(), N: n})
			if i == steps/2 {
				gpu.Encode(c, gpu.Fill{Dst: sum.view(), Bytes: 4 * n})
			}
			all = append(all, c)
		}
	}
	see := new(gpu.Commands)
	gpu.Encode(see, gpu.Add{A: hasty.view(), B: slow.view(), Y: seen.view(), N: n})
	submit(t, d, append(all, see, &down)...)
	want, twice := make([]float32, n), make([]float32, n)
	for i := range want {
		want[i] = float32(i * (steps - steps/2 - 1))
		twice[i] = 2 * want[i]
	}
	hasty.expectExactly(want)
	slow.expectExactly(want)
	seen.expectExactly(twice)
	for _, o := range s.operands {
		o.check(t)
	}
}

// testRefused submits a list whose last operation does not fit: nothing of it runs.
func testRefused(t *testing.T, d gpu.Device) {
	s := newSetup(t, d, "refused")
	o := s.input("X", s.normal(10))
	q, err := d.NewQueue()
	if err != nil {
		t.Fatal(err)
	}
	var bad gpu.Commands
	gpu.Encode(&bad, gpu.Fill{Dst: o.view(), Bytes: 40})
	gpu.Encode(&bad, gpu.Add{A: o.view(), B: o.view(), Y: o.view(), N: 1 << 40})
	ticket, err := q.Submit(&bad)
	if e := (*gpu.OpError)(nil); !errors.As(err, &e) || e.Op != "add" {
		t.Errorf("Submit of an operation that does not fit: ticket %v, error %v, want an *OpError of add", ticket, err)
	}
	if err := q.Close(); err != nil {
		t.Error(err)
	}
	s.run()
}

func testClosed(t *testing.T, d gpu.Device) {
	q, err := d.NewQueue()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := q.Close(); err != nil {
			t.Errorf("closing the queue: %v", err)
		}
	}
	if _, err := q.Submit(new(gpu.Commands)); !errors.Is(err, gpu.ErrClosed) {
		t.Errorf("Submit after Close: error %v, want ErrClosed", err)
	}
}

// testTickets asks for completion before, while and after the work is done, on several queues at
// once; every callback comes once.
func testTickets(t *testing.T, d gpu.Device) {
	const rounds = 300
	var queues sync.WaitGroup
	for range 3 {
		s := newSetup(t, d, "tickets")
		o := s.inout("X", s.normal(5000))
		queues.Go(func() {
			q, err := d.NewQueue()
			if err != nil {
				t.Error(err)
				return
			}
			var mu sync.Mutex
			calls := make([]int, rounds)
			var askers sync.WaitGroup
			for i := range rounds {
				c := new(gpu.Commands)
				gpu.Encode(c, gpu.Add{A: o.view(), B: o.view(), Y: o.view(), N: 5000})
				ticket, err := q.Submit(c)
				if err != nil {
					t.Error(err)
					break
				}
				called := make(chan struct{}, 1)
				askers.Go(func() {
					ticket.OnDone(func(err error) {
						mu.Lock()
						calls[i]++
						mu.Unlock()
						if err != nil {
							t.Error(err)
						}
						if ns := ticket.DeviceNS(); ns <= 0 {
							t.Errorf("ticket %d is done and took %d ns", i, ns)
						}
						called <- struct{}{}
					})
					<-called
				})
				if i%7 == 0 {
					askers.Wait()
				}
			}
			askers.Wait()
			if err := q.Close(); err != nil {
				t.Error(err)
			}
			for i, n := range calls {
				if n != 1 {
					t.Errorf("ticket %d: %d callbacks, want 1", i, n)
				}
			}
		})
	}
	queues.Wait()
}
