//go:build linux && (amd64 || arm64)

package metal

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"
)

// expected is what a command buffer has to be sent for a table: the definition of metal_submit, in
// the words of testdata/fake.c.
func (s *fakeSystem) expected(to *target, t *table) string {
	var b strings.Builder
	id := func(o uintptr) int { return number(call(s.l.number, o)) }
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	say("encoder")
	if to.wait != 0 {
		say("wait %d", id(to.fence))
	}
	for i, l := range t.launches {
		if i > 0 {
			say("barrier")
		}
		if i == 0 || l.pipeline != t.launches[i-1].pipeline {
			say("pipeline %d", id(l.pipeline))
		}
		for j, a := range t.args[l.first : l.first+l.count] {
			if a.buffer != 0 {
				say("buffer %d at %d as %d", id(a.buffer), a.offset, j)
				continue
			}
			var sum uint32
			for _, c := range t.constants[a.offset : a.offset+a.length] {
				sum = sum*31 + uint32(c)
			}
			say("bytes %d sum %d as %d", a.length, sum, j)
		}
		say("dispatch %d %d %d of %d", l.groups[0], l.groups[1], l.groups[2], l.threads)
	}
	say("update %d", id(to.fence))
	say("end")
	say("handler")
	say("commit")
	return b.String()
}

// randomTable makes a table of launches of the pipelines, with arguments of all kinds.
func randomTable(rng *rand.Rand, pipelines, buffers []object) *table {
	t := &table{}
	for range rng.IntN(40) {
		l := launchEntry{pipeline: uintptr(pipelines[rng.IntN(len(pipelines))]), threads: uint32(32 * (1 + rng.IntN(32))), first: uint32(len(t.args))}
		for d := range l.groups {
			l.groups[d] = rng.Uint32N(1<<31-1) + 1
		}
		for range rng.IntN(maxArgs + 1) {
			if rng.IntN(3) > 0 {
				t.args = append(t.args, argEntry{buffer: uintptr(buffers[rng.IntN(len(buffers))]), offset: uint64(rng.IntN(4096))})
			} else {
				a := argEntry{offset: uint64(len(t.constants)), length: uint64(1 + rng.IntN(200))}
				for range a.length {
					t.constants = append(t.constants, byte(rng.Uint32()))
				}
				t.args = append(t.args, a)
			}
			l.count++
		}
		t.launches = append(t.launches, l)
	}
	return t
}

// The messages that encode.c sends are those that the table asks for, one after the other, with
// every argument.
func TestEncoding(t *testing.T) {
	s := newFake(t, false)
	b, err := newBackend(s)
	if err != nil {
		t.Fatal(err)
	}
	var buffers, pipelines []object
	for range 5 {
		m, err := b.newMemory(4096)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		defer m.Release()
		buffers, pipelines = append(buffers, m.buffer), append(pipelines, s.newObject("MTLComputePipelineState"))
	}
	made, err := b.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	x := made.(*stream)
	rng := rand.New(rand.NewPCG(7, 9))
	var want []string
	for i := range 50 {
		tab := randomTable(rng, pipelines, buffers)
		if len(tab.launches) == 0 {
			continue
		}
		want = append(want, s.expected(&x.target, tab))
		batch := x.record()
		batch.table = *tab
		done := make(chan error, 1)
		x.Commit(func(ns int64, err error) {
			if ns != 1000 && ns != 999 && ns != 1001 {
				t.Errorf("it took %d ns, want 1000", ns)
			}
			done <- err
		})
		if err := <-done; err != nil {
			t.Fatalf("table %d: %v", i, err)
		}
	}
	if err := made.Close(); err != nil {
		t.Error(err)
	}
	for _, p := range pipelines {
		s.release(p)
	}
	if len(s.traces) != len(want) {
		t.Fatalf("%d command buffers, want %d", len(s.traces), len(want))
	}
	for i := range want {
		if s.traces[i] != want[i] {
			t.Errorf("command buffer %d was sent\n%swant\n%s", i, s.traces[i], want[i])
		}
	}
	if !strings.Contains(want[1], "wait") || strings.Contains(want[0], "wait") {
		t.Error("only the first command buffer of a stream does without waiting for the fence")
	}
}

// Where there is no default device the first of all is taken, and what encode.c says of a device is
// what the device says.
func TestFindDevice(t *testing.T) {
	s := newFake(t, false)
	defer s.close()
	defer call(s.l.refuse, 0)
	call(s.l.refuse, noDefaultDevice)
	d := call(s.l.device)
	if d == nil {
		t.Fatal("no device")
	}
	var what facts
	call(s.l.describe, uintptr(d), uintptr(unsafe.Pointer(&what)))
	if want := (facts{metal3: 1, residencySets: 1, maxBuffer: 1 << 32, workingSet: 3 << 30}); what != want {
		t.Errorf("it is %+v, want %+v", what, want)
	}
	s.release(d)
	call(s.l.refuse, noDevice)
	if d := call(s.l.device); d != nil {
		t.Errorf("a device where there is none")
	}
}
