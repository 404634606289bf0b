package snapshot

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/iotest"
)

var errBroken = errors.New("broken on purpose")

// faulty is a source and a target that fails at the n-th call.
type faulty struct {
	*paged
	calls, fail int
}

func (f *faulty) ReadRows(layer int, p Part, first int, dst []byte) error {
	if f.calls++; f.calls == f.fail {
		return errBroken
	}
	return f.paged.ReadRows(layer, p, first, dst)
}

func (f *faulty) WriteRows(layer int, p Part, first int, src []byte) error {
	if f.calls++; f.calls == f.fail {
		return errBroken
	}
	return f.paged.WriteRows(layer, p, first, src)
}

// faultyWriter fails after n bytes.
type faultyWriter struct {
	bytes.Buffer
	left  int
	short bool // says so by a short count only
}

func (w *faultyWriter) Write(p []byte) (int, error) {
	n := min(len(p), w.left)
	w.Buffer.Write(p[:n])
	if w.left -= n; n < len(p) && !w.short {
		return n, errBroken
	}
	return n, nil
}

// faultyReader fails at the n-th call, by an error or by a short read.
type faultyReader struct {
	*bytes.Reader
	calls, fail int
	short       bool
}

func (r *faultyReader) ReadAt(p []byte, at int64) (int, error) {
	if r.calls++; r.calls == r.fail {
		if !r.short {
			return 0, errBroken
		}
		n, _ := r.Reader.ReadAt(p[:len(p)-1], at)
		return n, io.EOF
	}
	return r.Reader.ReadAt(p, at)
}

// TestFaults lets every call of a source, writer, reader and target fail once.
func TestFaults(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for name, s := range shapes {
		st := randomState(rng, s, 8, 20)
		o := WriteOptions{Positions: 20, Seal: &Seal{Tokens: tokens(20)}}
		file := mustWrite(t, st, o)
		whole := &faulty{paged: st}
		if _, err := Write(io.Discard, s, whole, o); err != nil {
			t.Fatal(err)
		}
		for n := 1; n <= whole.calls; n++ {
			if _, err := Write(io.Discard, s, &faulty{paged: st, fail: n}, o); !errors.Is(err, errBroken) {
				t.Fatalf("%s: source fails at call %d: %v", name, n, err)
			}
			f, err := Open(bytes.NewReader(file), int64(len(file)), s, ReadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if err := f.Fill(&faulty{paged: newPaged(s, 8, 20), fail: n}); !errors.Is(err, errBroken) {
				t.Fatalf("%s: target fails at call %d: %v", name, n, err)
			}
		}
		for n := range len(file) {
			w := &faultyWriter{left: n}
			wrote, err := Write(w, s, st, o)
			if !errors.Is(err, errBroken) || wrote != int64(n) || !bytes.Equal(w.Bytes(), file[:n]) {
				t.Fatalf("%s: writer fails after %d bytes: %d, %v", name, n, wrote, err)
			}
			if _, err := Write(&faultyWriter{left: n, short: true}, s, st, o); !errors.Is(err, io.ErrShortWrite) {
				t.Fatalf("%s: writer stops after %d bytes: %v", name, n, err)
			}
			// What it left behind is not taken for a snapshot.
			if _, _, err := load(w.Bytes(), s, ReadOptions{}, 8); !errors.As(err, new(*Error)) {
				t.Fatalf("%s: %d bytes of a file: %v", name, n, err)
			}
		}
		testReaderFaults(t, name, file, st)
	}
}

func testReaderFaults(t *testing.T, name string, file []byte, st *paged) {
	size := int64(len(file))
	for _, short := range []bool{false, true} {
		for n := 1; ; n++ {
			r := &faultyReader{Reader: bytes.NewReader(file), fail: n, short: short}
			f, err := Open(r, size, st.s, ReadOptions{})
			if err == nil {
				err = f.Fill(newPaged(st.s, 8, st.positions))
			}
			if r.calls < n {
				if err != nil {
					t.Fatalf("%s: without a fault: %v", name, err)
				}
				break
			}
			if e := (*Error)(nil); short && (!errors.Is(err, ErrTruncated) || !errors.Is(err, io.ErrUnexpectedEOF) || !errors.As(err, &e)) || !short && !errors.Is(err, errBroken) {
				t.Fatalf("%s: reader fails at call %d, short %v: %v", name, n, short, err)
			}
		}
		for n := 1; ; n++ {
			r := &faultyReader{Reader: bytes.NewReader(file), fail: n, short: short}
			f, err := Inspect(r, size)
			if err == nil {
				err = f.Verify()
			}
			if r.calls < n {
				break
			}
			if err == nil {
				t.Fatalf("%s: inspected in spite of a fault at call %d, short %v", name, n, short)
			}
		}
	}
}

// TestReaderForms reads through readers that return io.EOF with the last bytes, or are files cut
// since.
func TestReaderForms(t *testing.T) {
	_, s, st := version1()
	file := mustWrite(t, st, WriteOptions{Seal: &Seal{}})
	eager := readerAt(func(p []byte, at int64) (int, error) {
		return io.ReadFull(iotest.DataErrReader(bytes.NewReader(file[at:])), p)
	})
	f, err := Open(eager, int64(len(file)), s, ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := newPaged(s, 64, 2); f.Fill(got) != nil || !got.equal(st) {
		t.Error("another state came out")
	}
	// A file that changes between Open and Fill.
	for _, change := range []func([]byte) []byte{
		func(b []byte) []byte { return b[:200] },
		func(b []byte) []byte { return put(b, 8, 3) },
		func(b []byte) []byte { return put(b, 156, 1) },
		func(b []byte) []byte { return put(b, 100, 1) },
	} {
		now := slices.Clone(file)
		f, err := Open(readerAt(func(p []byte, at int64) (int, error) { return bytes.NewReader(now).ReadAt(p, at) }), int64(len(file)), s, ReadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		now = change(now)
		if err := f.Fill(newPaged(s, 64, 2)); !errors.As(err, new(*Error)) {
			t.Errorf("a changed file: %v", err)
		}
	}
	// Without a seal only what can be seen is.
	plain := slices.Clone(file[:256])
	if f, err = Open(readerAt(func(p []byte, at int64) (int, error) { return bytes.NewReader(plain).ReadAt(p, at) }), 256, s, ReadOptions{Accept: Plain}); err != nil {
		t.Fatal(err)
	}
	whole := plain
	for _, at := range []int{16, 156} {
		plain = put(whole, at, 1)
		if err := f.Fill(newPaged(s, 64, 2)); !errors.Is(err, ErrChecksum) {
			t.Errorf("a plain file that changed at %d: %v", at, err)
		}
	}
	if f.Fill(nil) == nil {
		t.Error("no target was filled in")
	}
}

type readerAt func([]byte, int64) (int, error)

func (f readerAt) ReadAt(p []byte, at int64) (int, error) { return f(p, at) }

// TestOneBuffer checks that a state goes through in pieces of at most BufferBytes, in the promised
// order, and each row once.
func TestOneBuffer(t *testing.T) {
	s := &Shape{Layers: regular(4, 2, ful), KVHeads: 2, HeadDim: 256, ConvRows: 3, ConvDim: 8192, ValueHeads: 32, ValueDim: 128, KeyDim: 128}
	const positions = 700
	order := &ordered{t: t, s: s, positions: positions}
	var b bytes.Buffer
	if _, err := Write(&b, s, order, WriteOptions{Positions: positions}); err != nil {
		t.Fatal(err)
	}
	order.end()
	f, err := Open(bytes.NewReader(b.Bytes()), int64(b.Len()), s, ReadOptions{Accept: Plain})
	if err != nil {
		t.Fatal(err)
	}
	order = &ordered{t: t, s: s, positions: positions}
	if err := f.Fill(order); err != nil {
		t.Fatal(err)
	}
	order.end()
}

// ordered checks the order of calls.
type ordered struct {
	t         *testing.T
	s         *Shape
	positions int
	layer, at int // block at of the layer
	row       int
}

func (o *ordered) call(layer int, p Part, first int, b []byte) error {
	want := o.s.blocks(o.layer, o.positions)[o.at]
	n := len(b) / want.rowBytes
	if layer != o.layer || p != want.part || first != o.row || len(b) == 0 || len(b)%want.rowBytes != 0 || len(b) > BufferBytes || first+n > want.rows {
		o.t.Fatalf("layer %d, %v, row %d, %d bytes; want layer %d, %v, row %d of %d", layer, p, first, len(b), o.layer, want.part, o.row, want.rows)
	}
	if o.row += n; o.row == want.rows {
		o.row = 0
		if o.at++; o.at == 3 || o.s.blocks(o.layer, o.positions)[o.at].rows == 0 {
			o.layer, o.at = o.layer+1, 0
		}
	}
	return nil
}

func (o *ordered) end() {
	if o.layer != len(o.s.Layers) {
		o.t.Errorf("ended in layer %d", o.layer)
	}
}

func (o *ordered) ReadRows(layer int, p Part, first int, dst []byte) error {
	return o.call(layer, p, first, dst)
}

func (o *ordered) WriteRows(layer int, p Part, first int, src []byte) error {
	return o.call(layer, p, first, src)
}

// TestNothingAfterAFault checks that a writer that has failed is left alone.
func TestNothingAfterAFault(t *testing.T) {
	s := &Shape{Layers: regular(1, 1, ful), KVHeads: 4, HeadDim: 256}
	for fail := 1; fail <= 4; fail++ {
		calls := 0
		w := writer(func(p []byte) (int, error) {
			if calls++; calls == fail {
				return 0, errBroken
			}
			return len(p), nil
		})
		src := newPaged(s, 64, 300) // 2.4 MB: five buffers
		if _, err := Write(w, s, src, WriteOptions{Positions: 300}); !errors.Is(err, errBroken) || calls != fail {
			t.Errorf("failed at call %d: %d calls, %v", fail, calls, err)
		}
	}
}

type writer func([]byte) (int, error)

func (f writer) Write(p []byte) (int, error) { return f(p) }
