package expertfile

import (
	"bytes"
	"errors"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/moeflux/moeflux-actor/model/quant"
)

// aligned returns n bytes that begin at a multiple of DirectAlign.
func aligned(t testing.TB, n int) []byte {
	t.Helper()
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(b) })
	return b
}

// openDirect opens a model whose records are 48 pages long, for direct reads. If the file system of
// temporary files does not support them, which UseDirect must report in one way only, ok is false
// and reads go through the page cache.
func openDirect(t *testing.T) (x *File, dir string, size int, ok bool) {
	t.Helper()
	cfg := small()
	dir, l := pack(t, cfg, quant.BF16, true)
	x, err := Open(dir, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	if l.Bytes%DirectAlign != 0 {
		t.Fatalf("records of %d bytes, the test wants a multiple of %d", l.Bytes, DirectAlign)
	}
	err = x.UseDirect()
	var refused *DirectError
	if err != nil && (!errors.As(err, &refused) || refused.Path == "" || x.Direct()) {
		t.Fatalf("UseDirect: %v, direct %v; want a *DirectError that names a file", err, x.Direct())
	}
	if err != nil {
		t.Logf("through the page cache: %v", err)
	}
	return x, dir, l.Bytes, err == nil
}

func TestDirect(t *testing.T) {
	x, _, size, ok := openDirect(t)
	got := aligned(t, size+DirectAlign)
	for layer := range 3 {
		m, err := x.Map(layer)
		if err != nil {
			t.Fatal(err)
		}
		for e := range 4 {
			clear(got)
			if err := x.ReadExpert(layer, e, got[:size]); err != nil {
				t.Fatal(err)
			}
			if r := record(layer, e, size); !bytes.Equal(got[:size], r) || !bytes.Equal(m[e*size:(e+1)*size], r) {
				t.Errorf("layer %d expert %d differs", layer, e)
			}
		}
	}
	err := x.ReadExpert(1, 1, got[64:64+size])
	if ok != errors.Is(err, errAlign) {
		t.Errorf("direct %v, into memory that is not aligned: %v", ok, err)
	}
}

// After a short read, direct reads continue at a page. The end of a file is told apart from a short
// read.
func TestDirectShortReads(t *testing.T) {
	x, _, size, _ := openDirect(t)
	x.direct = true // the script below stands for the disk
	for _, c := range []struct {
		name  string
		steps []step
		want  error
		got   int
	}{
		{"pages", []step{{DirectAlign, nil}, {3 * DirectAlign, nil}}, nil, 0},
		{"a page and a half", []step{{DirectAlign * 3 / 2, nil}}, nil, 0},
		{"a signal after a page and a half", []step{{DirectAlign * 3 / 2, unix.EINTR}, {0, unix.EINTR}}, nil, 0},
		{"cut in the second page", []step{{DirectAlign + 10, nil}, {10, nil}}, io.ErrUnexpectedEOF, DirectAlign + 10},
		{"cut between pages", []step{{DirectAlign, nil}, {0, io.EOF}}, io.ErrUnexpectedEOF, DirectAlign},
		{"no progress", make([]step, 200), io.ErrNoProgress, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &script{ReaderAt: x.files[1].file, steps: c.steps}
			if ok := x.files[1].setDirect(false); ok != nil {
				t.Fatal(ok)
			}
			x.files[1].read = readerAt(func(p []byte, at int64) (int, error) {
				if at%DirectAlign != 0 {
					t.Errorf("a read at %d, want a multiple of %d", at, DirectAlign)
				}
				return s.ReadAt(p, at)
			})
			got := aligned(t, size)
			err := x.ReadExpert(1, 2, got)
			if c.want == nil {
				if err != nil || !bytes.Equal(got, record(1, 2, size)) {
					t.Errorf("got %v, or other bytes", err)
				}
				return
			}
			var bad *ReadError
			if !errors.As(err, &bad) || !errors.Is(err, c.want) || bad.GotLen != c.got || bad.Path != x.files[1].path {
				t.Errorf("got %+v, want a *ReadError of %v after %d bytes that names the file", err, c.want, c.got)
			}
		})
	}
}

type readerAt func(p []byte, at int64) (int, error)

func (f readerAt) ReadAt(p []byte, at int64) (int, error) { return f(p, at) }

// If a file is truncated while it is open, the error says how far the read got. A file that is
// replaced can still be read.
func TestDirectFileChanges(t *testing.T) {
	x, dir, size, _ := openDirect(t)
	got := aligned(t, size)
	for _, cut := range []int{size/2 + 10, DirectAlign, 0} {
		if err := os.Truncate(layerPath(dir, 2), int64(3*size+cut)); err != nil {
			t.Fatal(err)
		}
		if err := x.ReadExpert(2, 2, got); err != nil || !bytes.Equal(got, record(2, 2, size)) {
			t.Errorf("cut after 3 records and %d bytes: the third: %v, or other bytes", cut, err)
		}
		err := x.ReadExpert(2, 3, got)
		var bad *ReadError
		if !errors.As(err, &bad) || !errors.Is(err, io.ErrUnexpectedEOF) || bad.GotLen != cut || !strings.Contains(err.Error(), layerPath(dir, 2)) {
			t.Errorf("cut after 3 records and %d bytes: %v, want io.ErrUnexpectedEOF that names the file", cut, err)
		}
	}
	other := layerPath(dir, 1) + ".new"
	write(t, other, make([]byte, 4*size))
	if err := os.Rename(other, layerPath(dir, 1)); err != nil {
		t.Fatal(err)
	}
	if err := x.ReadExpert(1, 3, got); err != nil || !bytes.Equal(got, record(1, 3, size)) {
		t.Errorf("a replaced file: %v, or other bytes", err)
	}
}

// Records whose size is not a multiple of a page are not read directly, and the error says why.
func TestDirectRefused(t *testing.T) {
	cfg := small()
	dir, l := pack(t, cfg, q4, true)
	x, err := Open(dir, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	err = x.UseDirect()
	var refused *DirectError
	if !errors.As(err, &refused) || refused.Path != "" || !strings.Contains(err.Error(), "55296") || x.Direct() {
		t.Fatalf("records of %d bytes: %v, direct %v", l.Bytes, err, x.Direct())
	}
	got := make([]byte, l.Bytes)
	if err := x.ReadExpert(0, 1, got); err != nil || !bytes.Equal(got, record(0, 1, l.Bytes)) {
		t.Errorf("through the page cache: %v, or other bytes", err)
	}
	// One file that cannot keeps all of them as they were.
	cfg = small()
	dir, _ = pack(t, cfg, quant.BF16, true)
	if x, err = Open(dir, cfg); err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	x.files[1].file.Close()
	if err := x.UseDirect(); !errors.As(err, &refused) || refused.Path != x.files[1].path || !errors.Is(err, os.ErrClosed) || x.Direct() {
		t.Errorf("a file that is closed: %v, direct %v", err, x.Direct())
	}
}

// A read allocates nothing in the steady state, direct or through the page cache, even while other
// goroutines produce garbage.
func TestReadAllocatesNothing(t *testing.T) {
	x, _, size, _ := openDirect(t)
	got := aligned(t, size)
	for _, direct := range []bool{x.direct, false} {
		if err := x.files[0].setDirect(direct); err != nil {
			t.Fatal(err)
		}
		x.direct = direct
		if n := testing.AllocsPerRun(50, func() {
			runtime.GC()
			if err := x.ReadExpert(0, 1, got); err != nil {
				t.Fatal(err)
			}
		}); n > 0 {
			t.Errorf("direct %v: %v allocations a read, want none", direct, n)
		}
	}
}
