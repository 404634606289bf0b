package expertfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ReadAt reads once. Unlike os.File's it does not continue after a short read: a direct read could
// not begin there.
func (l *layerFile) ReadAt(p []byte, at int64) (n int, err error) {
	c := l.calls.take()
	c.p, c.at = p, at
	err = l.control(c.run)
	if err == nil {
		n, err = c.n, c.err
	}
	c.p, c.err = nil, nil
	l.calls.put(c)
	switch {
	case err != nil:
		return 0, err
	case n == 0 && len(p) > 0:
		return 0, io.EOF
	}
	return n, nil
}

// pread is one call of pread(2).
type pread struct {
	p   []byte
	at  int64
	n   int
	err error
	run func(fd uintptr) // do
}

// preads keeps calls of pread, as many as were ever in progress at once, so that a read allocates
// nothing. A sync.Pool would lose them, and its own lists, at garbage collections.
type preads struct {
	mu   sync.Mutex
	free []*pread
}

func (f *preads) take() *pread {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.free); n > 0 {
		c := f.free[n-1]
		f.free = f.free[:n-1]
		return c
	}
	c := new(pread)
	c.run = c.do
	return c
}

func (f *preads) put(c *pread) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.free = append(f.free, c)
}

func (c *pread) do(fd uintptr) { c.n, c.err = unix.Pread(int(fd), c.p, c.at) }

// control runs f with the file's descriptor and keeps it open meanwhile.
func (l *layerFile) control(f func(fd uintptr)) error {
	if l.raw.Control(f) != nil {
		return os.ErrClosed // the only possible error
	}
	return nil
}

var (
	errNoLayer  = errors.New("the layer has no experts")
	errNoExpert = errors.New("no such expert")
	errLength   = errors.New("the buffer does not have the size of a record")
	errAlign    = errors.New("the buffer is not aligned for direct reads")
)

// ReadExpert fills dst with the record of one expert, all or nothing. len(dst) must be
// Layout().Bytes. It may be called from many goroutines. The error is a *ReadError; dst is
// undefined then.
func (f *File) ReadExpert(layer, expert int, dst []byte) error {
	size := f.layout.Bytes
	at := int64(expert) * int64(size)
	fail := func(got int, err error) error {
		path := ""
		if l := f.files[layer]; l != nil {
			path = l.path
		}
		return &ReadError{Path: path, Layer: layer, Expert: expert, OffsetBytes: at, WantLen: size, GotLen: got, Err: err}
	}
	if f.spread != nil {
		return f.gather(layer, expert, dst)
	}
	l := f.files[layer]
	switch {
	case l == nil:
		return fail(0, f.noLayer(layer))
	case expert < 0 || expert >= f.experts:
		return fail(0, errNoExpert)
	case len(dst) != size:
		return fail(0, fmt.Errorf("%w: %d bytes", errLength, len(dst)))
	}
	unit := 1
	if f.direct {
		unit = DirectAlign
		if p := uintptr(unsafe.Pointer(unsafe.SliceData(dst))); p%DirectAlign != 0 {
			return fail(0, fmt.Errorf("%w: it begins at %#x", errAlign, p))
		}
	}
	if got, err := readFull(l.read, dst, at, unit); err != nil {
		return fail(got, err)
	}
	return nil
}

// noLayer says why a layer has no file.
func (f *File) noLayer(layer int) error {
	for _, m := range f.missing {
		if m.Layer == layer {
			return m
		}
	}
	return errNoLayer
}

// readFull reads until dst is full. Every read begins at a multiple of unit after at. An
// interrupted or short read is not an error as long as bytes arrive; the end of the file is.
func readFull(r io.ReaderAt, dst []byte, at int64, unit int) (int, error) {
	got, idle := 0, 0
	for got < len(dst) {
		from := got / unit * unit // an incomplete unit is read again
		n, err := r.ReadAt(dst[from:], at+int64(from))
		n, got = from+n-got, max(got, from+n)
		switch {
		case got == len(dst):
			return got, nil // an error along with the last bytes does not matter
		case errors.Is(err, io.EOF):
			return got, io.ErrUnexpectedEOF
		case err != nil && !errors.Is(err, unix.EINTR):
			return got, err
		}
		if n > 0 {
			idle = 0
		} else if err == nil && got%unit != 0 { // only the end of a file cuts off a unit
			return got, io.ErrUnexpectedEOF
		} else if idle++; idle == 100 {
			return got, io.ErrNoProgress
		}
	}
	return got, nil
}
