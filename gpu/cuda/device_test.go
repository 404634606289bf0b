//go:build linux && (amd64 || arm64)

package cuda

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/gpu/launch"
)

// openFakeDevice returns a device on a fake driver, which is closed and looked through when the
// test ends.
func openFakeDevice(t *testing.T) (*Device, *fake) {
	t.Helper()
	f := newFake(t)
	b, err := newBackend(Config{}, f.driver(), func(int) (*compiler, error) { return fakeCompiler(new(int)), nil })
	if err != nil {
		t.Fatal(err)
	}
	l, err := launch.New(b)
	if err != nil {
		t.Fatal(err)
	}
	d := &Device{l, b}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		f.rest()
	})
	return d, f
}

func newBuffer(t *testing.T, b gpu.Buffer, err error) gpu.Buffer {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Release)
	return b
}

func newQueue(t *testing.T, d gpu.Device) gpu.Queue {
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

// wait submits and waits.
func (x *submission) wait(t *testing.T, q gpu.Queue) error {
	t.Helper()
	ticket, err := q.Submit(&x.Commands)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	ticket.OnDone(func(err error) { x.ns = ticket.DeviceNS(); done <- err })
	return <-done
}

type submission struct {
	gpu.Commands
	ns int64
}

// Uploads of every size, from memory that is pinned and that is not, come back as they were.
func TestTransfers(t *testing.T) {
	d, f := openFakeDevice(t)
	f.total = 256 << 20
	buf, err := d.NewBuffer(greatestBlock + 100)
	b := newBuffer(t, buf, err)
	buf, err = d.NewPinned(3 * launch.LeastBlock)
	pinned := newBuffer(t, buf, err)
	q := newQueue(t, d)
	for _, src := range [][]byte{make([]byte, 5), make([]byte, launch.LeastBlock), make([]byte, directBytes+1), make([]byte, greatestBlock+64), pinned.Bytes(), pinned.Bytes()[7 : 7+launch.LeastBlock]} {
		for i := range src {
			src[i] = byte(i*7 + i>>8)
		}
		got := make([]byte, len(src))
		var x submission
		gpu.Encode(&x.Commands, gpu.Upload{Dst: gpu.View{Buf: b, Offset: 3}, Src: src})
		gpu.Encode(&x.Commands, gpu.Download{Src: gpu.View{Buf: b, Offset: 3}, Dst: got})
		if err := x.wait(t, q); err != nil || x.ns <= 0 {
			t.Errorf("%d bytes: %v, %d ns", len(src), err, x.ns)
		}
		if !bytes.Equal(got, src) {
			t.Errorf("%d bytes came back as others", len(src))
		}
	}
	if b.Bytes() != nil || len(pinned.Bytes()) != 3*launch.LeastBlock {
		t.Errorf("the host sees %d bytes of the device's and %d of its own", len(b.Bytes()), len(pinned.Bytes()))
	}
	free, total, err := d.Memory()
	if err != nil || total != 256<<20 || free >= total-greatestBlock {
		t.Errorf("%d of %d bytes are free, %v", free, total, err)
	}
	f.fail("cuMemHostAlloc", outOfMemory)
	if _, err := d.NewPinned(100); !errors.Is(err, gpu.ErrOutOfMemory) || !strings.Contains(err.Error(), "100 bytes of pinned host memory") {
		t.Errorf("nothing can be pinned: %v", err)
	}
}

// A device that has failed gives every ticket its cause, once, and can be closed.
func TestFailedDevice(t *testing.T) {
	d, f := openFakeDevice(t)
	buf, err := d.NewBuffer(100)
	b := newBuffer(t, buf, err)
	q := newQueue(t, d)
	f.mu.Lock()
	f.spoiled = launchFailed
	f.mu.Unlock()
	for range 3 {
		var x submission
		gpu.Encode(&x.Commands, gpu.Fill{Dst: gpu.View{Buf: b}, Bytes: 100})
		err := x.wait(t, q)
		if e := (*Error)(nil); !errors.As(err, &e) || e.Code != int(launchFailed) {
			t.Errorf("work of a device that failed: %v", err)
		}
	}
	if _, err := d.NewBuffer(10); err == nil {
		t.Error("a device that failed gives memory")
	}
}

func TestAbsent(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{&LibraryError{Variable: DriverVariable}, true}, {&LibraryError{Variable: CompilerVariable}, false}, {&Error{Code: int(noDevice)}, true},
		{&Error{Code: int(outOfMemory)}, false}, {errors.Join(ErrUnsupported), true}, {errors.New("something else"), false},
	} {
		if got := Absent(c.err); got != c.want {
			t.Errorf("%v: absent %v, want %v", c.err, got, c.want)
		}
	}
}
