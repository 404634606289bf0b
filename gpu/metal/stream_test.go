//go:build linux && (amd64 || arm64)

package metal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/gpu/launch"
)

// adds returns commands of additions in place, n of them.
func adds(v gpu.View, n int) *gpu.Commands {
	c := new(gpu.Commands)
	for range n {
		gpu.Encode(c, gpu.Add{A: v, B: v, Y: v, N: 4})
	}
	return c
}

// await submits c and waits for it.
func await(t *testing.T, q gpu.Queue, c *gpu.Commands) error {
	t.Helper()
	ticket, err := q.Submit(c)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	ticket.OnDone(func(err error) { done <- err })
	return <-done
}

// openQueue returns a buffer and a queue, which are given back when the test ends.
func openQueue(t *testing.T, d gpu.Device) (gpu.View, gpu.Queue) {
	t.Helper()
	buf, err := d.NewBuffer(64)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(buf.Release)
	q, err := d.NewQueue()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	})
	return gpu.View{Buf: buf}, q
}

// A command buffer that fails fails its ticket with the cause and the names of its kernels, and no
// other.
func TestFailedCommandBuffer(t *testing.T) {
	s := newFake(t, false)
	v, q := openQueue(t, openDevice(t, s))
	s.mu.Lock()
	s.fail = &CommandError{Code: 2, Text: "Caused GPU Timeout Error"}
	s.mu.Unlock()
	c := adds(v, 2)
	gpu.Encode(c, gpu.SwiGLU{Gate: v, Up: v, Y: v, Rows: 1, Dim: 4})
	err := await(t, q, c)
	failed, ok := errors.AsType[*CommandError](err)
	if !ok || failed.Code != 2 || failed.Text != "Caused GPU Timeout Error" {
		t.Fatalf("error %v, want a *CommandError", err)
	}
	if want := "metal: one of the kernels add, swiglu: error 2, timeout: Caused GPU Timeout Error"; err.Error() != want {
		t.Errorf("it says %q, want %q", err, want)
	}
	s.mu.Lock()
	s.fail = nil
	s.mu.Unlock()
	if err := await(t, q, adds(v, 1)); err != nil {
		t.Errorf("after it: %v", err)
	}
}

// Without a command buffer the ticket fails, and the next is none the worse.
func TestNoCommandBuffer(t *testing.T) {
	s := newFake(t, false)
	v, q := openQueue(t, openDevice(t, s))
	call(s.l.refuse, noCommandBuffers)
	err := await(t, q, adds(v, 3))
	call(s.l.refuse, 0)
	if err == nil || !strings.Contains(err.Error(), "no command buffer for 3 launches") {
		t.Errorf("error %v", err)
	}
	if err := await(t, q, adds(v, 1)); err != nil {
		t.Errorf("after it: %v", err)
	}
}

// What Metal, or this GPU, does not take of a kernel is told with the kernel's name.
func TestRefusedKernel(t *testing.T) {
	for _, tc := range []struct {
		name string
		set  func(s *fakeSystem)
		want string
	}{
		{"source", func(s *fakeSystem) { s.refuses = errors.New("program_source:7: error: no") }, `compiling kernel add with "": program_source:7: error: no`},
		{"simdgroup", func(s *fakeSystem) { s.width = 64 }, "simdgroups have 64 threads (threadExecutionWidth), the kernels are written for 32"},
		{"threads", func(s *fakeSystem) { s.most = 64 }, "at most 64 threads in a threadgroup (maxTotalThreadsPerThreadgroup), but it is launched with 256"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newFake(t, false)
			v, q := openQueue(t, openDevice(t, s))
			tc.set(s)
			if err := await(t, q, adds(v, 1)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

// A GPU or a system that is too old says what is needed.
func TestTooOld(t *testing.T) {
	for want, set := range map[string]func(*facts){
		"macOS 15 or later":       func(f *facts) { f.residencySets = 0 },
		"Apple silicon is needed": func(f *facts) { f.metal3 = 0 },
	} {
		s := newFake(t, false)
		set(&s.what)
		if _, err := newDevice(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// What there is no room for is told with how much there is.
func TestOutOfMemory(t *testing.T) {
	s := newFake(t, false)
	d := openDevice(t, s)
	if _, err := d.NewBuffer(1<<32 + 1); !errors.Is(err, gpu.ErrOutOfMemory) || !strings.Contains(err.Error(), "4294967297 bytes asked") {
		t.Errorf("a buffer beyond the largest: %v", err)
	}
	call(s.l.refuse, noBuffers)
	_, err := d.NewBuffer(100)
	_, wrapErr := d.Wrap(make([]byte, 100))
	call(s.l.refuse, 0)
	for _, err := range []error{err, wrapErr} {
		if !errors.Is(err, gpu.ErrOutOfMemory) || !strings.Contains(err.Error(), "100 bytes asked") {
			t.Errorf("no buffer from Metal: %v", err)
		}
	}
	buf, err := d.NewBuffer(100)
	if err != nil {
		t.Fatalf("after it: %v", err)
	}
	buf.Release()
}

// Memory that is wrapped anywhere within pages is found by kernels where it is.
func TestWrap(t *testing.T) {
	s := newFake(t, false)
	b, err := newBackend(s)
	if err != nil {
		t.Fatal(err)
	}
	pages, err := unix.Mmap(-1, 0, 4*s.page, unix.PROT_READ, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(pages)
	for _, at := range [][2]int{{0, 1}, {4, 8}, {s.page - 4, s.page + 4}, {s.page, 2 * s.page}, {s.page + 8, 4 * s.page}} {
		part := pages[at[0]:at[1]]
		m, err := b.Wrap(part)
		if err != nil {
			t.Fatal(err)
		}
		if want := uint64(uintptr(unsafe.Pointer(&part[0]))); m.Address() != want || m.(*memory).offset != at[0]%s.page || len(m.Bytes()) != len(part) {
			t.Errorf("bytes %d to %d: at %#x, offset %d, want %#x", at[0], at[1], m.Address(), m.(*memory).offset, want)
		}
		m.Release()
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

// Copies of every size and alignment bring what they should, and leave alone what lies around it,
// in order with each other.
func TestTransfers(t *testing.T) {
	s := newFake(t, true)
	s.delay = time.Millisecond
	d := openDevice(t, s)
	_, q := openQueue(t, d)
	const size = 1 << 12
	buf, err := d.NewBuffer(size)
	if err != nil {
		t.Fatal(err)
	}
	defer buf.Release()
	rng := rand.New(rand.NewPCG(1, 2))
	want := make([]byte, size)
	var tickets []chan error
	type read struct{ got, want []byte }
	var reads []read
	for range 60 {
		c := new(gpu.Commands)
		for range 3 {
			n := 1 + rng.IntN(100)
			at := rng.IntN(size - n)
			if rng.IntN(2) == 0 {
				n, at = n&^15+16, at&^15
			}
			n = min(n, size-at)
			view := gpu.View{Buf: buf, Offset: at}
			switch rng.IntN(3) {
			case 0:
				src := make([]byte, n)
				for i := range src {
					src[i] = byte(rng.Uint32())
				}
				copy(want[at:], src)
				gpu.Encode(c, gpu.Upload{Dst: view, Src: src})
			case 1:
				clear(want[at : at+n])
				gpu.Encode(c, gpu.Fill{Dst: view, Bytes: n})
			default:
				r := read{make([]byte, n), bytes.Clone(want[at : at+n])}
				reads = append(reads, r)
				gpu.Encode(c, gpu.Download{Src: view, Dst: r.got})
			}
		}
		ticket, err := q.Submit(c)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		ticket.OnDone(func(err error) { done <- err })
		tickets = append(tickets, done)
	}
	for i, done := range tickets {
		if err := <-done; err != nil {
			t.Fatalf("Submit %d: %v", i, err)
		}
	}
	for i, r := range reads {
		if !bytes.Equal(r.got, r.want) {
			t.Errorf("download %d of %d bytes brings something else", i, len(r.want))
		}
	}
	if !bytes.Equal(buf.Bytes(), want) {
		t.Error("the memory is not what was written")
	}
}

// quiet is a system whose command buffers end when the test says so.
type quiet struct {
	*fakeSystem
	next    object
	tickets []uint64
	told    int32
	at      bool // at once
}

func (s *quiet) submit(to *target, _ *table, ticket uint64) object {
	s.tickets, s.told = append(s.tickets, ticket), to.told
	if s.at {
		s.tell(ticket)
	}
	return s.next
}

// tell writes what a handler writes.
func (s *quiet) tell(ticket uint64) {
	var v [8]byte
	binary.NativeEndian.PutUint64(v[:], ticket)
	if _, err := unix.Write(int(s.told), v[:]); err != nil {
		s.t.Error(err)
	}
}

func (s *quiet) finish(object, *result) {}

// openQuiet returns a stream on such a system with a kernel and memory.
func openQuiet(t *testing.T) (*quiet, *stream, *memory) {
	t.Helper()
	s := &quiet{fakeSystem: newFake(t, false)}
	s.next = s.device
	b, err := newBackend(s)
	if err != nil {
		t.Fatal(err)
	}
	made, err := b.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	m, err := b.newMemory(64)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := made.Close(); err != nil {
			t.Error(err)
		}
		m.Release()
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, made.(*stream), m
}

// Tickets are done in the order of the Commits, whatever the order in which handlers run.
func TestOrderOfHandlers(t *testing.T) {
	s, x, m := openQuiet(t)
	var order []string
	all := make(chan string, 100)
	for i := range 6 {
		if i != 3 { // nothing to run in that one, and still its turn
			if err := x.Fill(m, 0, 64); err != nil {
				t.Fatal(err)
			}
		}
		x.Commit(func(int64, error) { all <- fmt.Sprint(i) })
	}
	for i := len(s.tickets) - 1; i >= 0; i-- {
		select {
		case got := <-all:
			t.Fatalf("batch %s is done before the first", got)
		case <-time.After(5 * time.Millisecond):
		}
		s.tell(s.tickets[i])
	}
	for range 6 {
		order = append(order, <-all)
	}
	if got := strings.Join(order, ""); got != "012345" {
		t.Errorf("done in the order %s", got)
	}
}

// In the steady state a Submit allocates nothing on this side of C.
func TestNoAllocations(t *testing.T) {
	s, x, m := openQuiet(t)
	s.at = true
	s.tickets = make([]uint64, 0, 1)
	src, dst := make([]byte, 48), make([]byte, 48)
	done := make(chan error, 1)
	tell := func(_ int64, err error) { done <- err }
	submit := func() {
		s.tickets = s.tickets[:0]
		for _, err := range [3]error{x.CopyIn(m, 0, src), x.Fill(m, 3, 7), x.CopyOut(dst, m, 16)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		x.Commit(tell)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	submit()
	submit()
	if n := testing.AllocsPerRun(50, submit); n > 0 {
		t.Errorf("%v allocations a Submit", n)
	}
}

// TestUploadGivesStagingBack uploads more than a stream keeps: what the copy passed through is the
// system's again when it is done.
func TestUploadGivesStagingBack(t *testing.T) {
	s := newFake(t, false)
	b, err := newBackend(s)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := b.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	const n = launch.MostSpare + 1
	dst, err := b.newMemory(n)
	if err != nil {
		t.Fatal(err)
	}
	before := b.memory
	if err := stream.CopyIn(dst, 0, make([]byte, n)); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	stream.Commit(func(_ int64, err error) { done <- err })
	if err := <-done; err != nil {
		t.Error(err)
	}
	b.mu.Lock()
	pieces := b.memory - before
	b.mu.Unlock()
	if pieces != 0 {
		t.Errorf("%d pieces of staging memory are kept after an upload of %d bytes", pieces, n)
	}
	dst.Release()
	if err := errors.Join(stream.Close(), b.Close()); err != nil {
		t.Error(err)
	}
}
