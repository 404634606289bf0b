package expertfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// small is a model of three layers with four experts.
func small() *model.Config {
	return &model.Config{NumHiddenLayers: 3, HiddenSize: 128, MoEIntermediateSize: 256, NumExperts: 4, Layers: make([]model.Layer, 3)}
}

var q4 = quant.Affine(4, 64)

// record returns the bytes that expert e of a layer must have.
func record(layer, e, size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(i*7 + i>>8 + 31*layer + 101*e)
	}
	return b
}

// pack writes the expert files of a model in one format; layout.json too if wanted.
func pack(t testing.TB, cfg *model.Config, f quant.Format, layout bool) (dir string, l model.ExpertLayout) {
	t.Helper()
	dir = t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, DirName), 0o755); err != nil {
		t.Fatal(err)
	}
	l = model.NewExpertLayout(cfg.HiddenSize, cfg.MoEIntermediateSize, f, f, f)
	for _, layer := range cfg.MoELayers() {
		var b []byte
		for e := range cfg.NumExperts {
			b = append(b, record(layer, e, l.Bytes)...)
		}
		write(t, layerPath(dir, layer), b)
	}
	if layout {
		write(t, filepath.Join(dir, DirName, LayoutName), encode(t, Describe(cfg, l)))
	}
	return dir, l
}

func layerPath(dir string, layer int) string { return filepath.Join(dir, DirName, LayerName(layer)) }

func write(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// descriptors counts the open files of this process.
func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func TestReadAndMap(t *testing.T) {
	for _, f := range []quant.Format{q4, quant.BF16, quant.F32, quant.Affine(2, 32), quant.Affine(8, 128),
		quant.Affine(4, 32), quant.Affine(4, 128), quant.Affine(8, 64)} {
		for _, layout := range []bool{true, false} {
			t.Run(fmt.Sprintf("%v layout=%v", f, layout), func(t *testing.T) {
				cfg := small()
				dir, want := pack(t, cfg, f, layout)
				before := descriptors(t)
				x, err := Open(dir, cfg)
				if err != nil {
					t.Fatal(err)
				}
				if x.Layout() != want || x.Experts() != 4 || len(x.Layers()) != 3 {
					t.Errorf("got layout %+v, %d experts, layers %v, want %+v", x.Layout(), x.Experts(), x.Layers(), want)
				}
				got := make([]byte, want.Bytes)
				for layer := range 3 {
					m, err := x.Map(layer)
					if err != nil || len(m) != 4*want.Bytes {
						t.Fatalf("Map(%d): %d bytes, %v", layer, len(m), err)
					}
					for e := range 4 {
						if err := x.ReadExpert(layer, e, got); err != nil {
							t.Fatal(err)
						}
						if r := record(layer, e, want.Bytes); !bytes.Equal(got, r) || !bytes.Equal(m[e*want.Bytes:(e+1)*want.Bytes], r) {
							t.Errorf("layer %d expert %d differs", layer, e)
						}
					}
				}
				for range 2 {
					if err := x.Close(); err != nil {
						t.Errorf("Close: %v", err)
					}
				}
				if after := descriptors(t); after != before {
					t.Errorf("%d files open after Close, %d before", after, before)
				}
				if _, err := x.Map(0); !errors.Is(err, os.ErrClosed) {
					t.Errorf("Map after Close: got %v", err)
				}
				var bad *ReadError
				if err := x.ReadExpert(0, 0, got); !errors.As(err, &bad) || !errors.Is(err, os.ErrClosed) {
					t.Errorf("ReadExpert after Close: got %v", err)
				}
			})
		}
	}
}

func TestReadExpertArguments(t *testing.T) {
	cfg := small()
	dir, l := pack(t, cfg, q4, true)
	x, err := Open(dir, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	for _, c := range []struct {
		layer, expert, length int
		want                  error
	}{
		{3, 0, l.Bytes, errNoLayer}, {-1, 0, l.Bytes, errNoLayer}, {0, 4, l.Bytes, errNoExpert}, {0, -1, l.Bytes, errNoExpert},
		{0, 0, l.Bytes - 1, errLength}, {0, 0, l.Bytes + 1, errLength}, {0, 0, 0, errLength},
	} {
		err := x.ReadExpert(c.layer, c.expert, make([]byte, c.length))
		var bad *ReadError
		if !errors.As(err, &bad) || !errors.Is(err, c.want) || bad.Layer != c.layer || bad.Expert != c.expert {
			t.Errorf("ReadExpert(%d, %d, [%d]): got %v, want %v", c.layer, c.expert, c.length, err, c.want)
		}
	}
	if _, err := x.Map(7); !errors.Is(err, errNoLayer) {
		t.Errorf("Map(7): got %v", err)
	}
}

// script is a file whose reads follow a script, one entry for each; afterwards it is a plain file.
type script struct {
	io.ReaderAt
	steps []step
}

type step struct {
	most int // bytes this read returns at most
	err  error
}

func (s *script) ReadAt(p []byte, at int64) (int, error) {
	if len(s.steps) == 0 {
		return s.ReaderAt.ReadAt(p, at)
	}
	now := s.steps[0]
	s.steps = s.steps[1:]
	n, err := s.ReaderAt.ReadAt(p[:min(len(p), now.most)], at)
	if now.err != nil {
		err = now.err
	}
	return n, err
}

func TestReadExpertShortReads(t *testing.T) {
	cfg := small()
	dir, l := pack(t, cfg, q4, true)
	x, err := Open(dir, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	endless := make([]step, 1000)
	broken := errors.New("broken disk")
	for _, c := range []struct {
		name  string
		steps []step
		want  error
		got   int
	}{
		{"short reads", []step{{1, nil}, {100, nil}, {l.Bytes / 2, nil}}, nil, 0},
		{"a signal before and in the middle", []step{{0, unix.EINTR}, {10, unix.EINTR}, {0, unix.EINTR}}, nil, 0},
		{"an error with the last byte does not matter", []step{{l.Bytes, io.EOF}}, nil, 0},
		{"end of file", []step{{77, io.EOF}}, io.ErrUnexpectedEOF, 77},
		{"disk error", []step{{5, nil}, {5, broken}}, broken, 10},
		{"no progress", endless, io.ErrNoProgress, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			x.files[1].read = &script{ReaderAt: x.files[1].file, steps: c.steps}
			got := make([]byte, l.Bytes)
			err := x.ReadExpert(1, 2, got)
			if c.want == nil {
				if err != nil || !bytes.Equal(got, record(1, 2, l.Bytes)) {
					t.Errorf("got %v, or other bytes", err)
				}
				return
			}
			var bad *ReadError
			if !errors.As(err, &bad) || !errors.Is(err, c.want) {
				t.Fatalf("got %v, want a *ReadError of %v", err, c.want)
			}
			if bad.GotLen != c.got || bad.WantLen != l.Bytes || bad.OffsetBytes != int64(2*l.Bytes) || bad.Layer != 1 || bad.Expert != 2 {
				t.Errorf("got %+v, want %d bytes read", bad, c.got)
			}
		})
	}
}

// If a file is truncated while it is open, the error says how far the read got.
func TestReadExpertTruncatedMeanwhile(t *testing.T) {
	cfg := small()
	dir, l := pack(t, cfg, q4, true)
	x, err := Open(dir, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if err := os.Truncate(layerPath(dir, 2), int64(3*l.Bytes+10)); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, l.Bytes)
	if err := x.ReadExpert(2, 2, got); err != nil {
		t.Errorf("the third expert is whole: %v", err)
	}
	err = x.ReadExpert(2, 3, got)
	var bad *ReadError
	if !errors.As(err, &bad) || !errors.Is(err, io.ErrUnexpectedEOF) || bad.GotLen != 10 {
		t.Errorf("got %v, want 10 bytes and io.ErrUnexpectedEOF", err)
	}
}

func TestOpenReportsAllFiles(t *testing.T) {
	for _, layout := range []bool{true, false} {
		cfg := small()
		dir, l := pack(t, cfg, q4, layout)
		if err := os.Truncate(layerPath(dir, 0), int64(4*l.Bytes-1)); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(layerPath(dir, 1)); err != nil {
			t.Fatal(err)
		}
		before := descriptors(t)
		x, err := Open(dir, cfg)
		if x != nil || err == nil {
			t.Fatalf("layout=%v: got %v, %v", layout, x, err)
		}
		var size *SizeError
		if !errors.As(err, &size) || size.Layer != 0 || size.Want != int64(4*l.Bytes) || size.Got != size.Want-1 {
			t.Errorf("layout=%v: got %+v in %v, want layer 0 short by one byte", layout, size, err)
		}
		var missing *MissingError
		if !errors.As(err, &missing) || missing.Layer != 1 || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("layout=%v: got %v, want layer 1 missing", layout, err)
		}
		if after := descriptors(t); after != before {
			t.Errorf("layout=%v: %d files open after a failed Open, %d before", layout, after, before)
		}
	}
}

func TestOpenUnknownFormat(t *testing.T) {
	cfg := small()
	dir, _ := pack(t, cfg, q4, false)
	for layer := range 3 {
		write(t, layerPath(dir, layer), make([]byte, 12345))
	}
	_, err := Open(dir, cfg)
	var size *SizeError
	if !errors.As(err, &size) || size.Want != 0 || size.Got != 12345 || !strings.Contains(err.Error(), LayoutName) {
		t.Errorf("got %v, want a *SizeError without a wanted size", err)
	}
	if _, err := Open(t.TempDir(), cfg); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("empty directory: got %v", err)
	}
	if err := os.Remove(layerPath(dir, 1)); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(layerPath(dir, 1), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, cfg); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a directory in place of a layer: got %v", err)
	}
}

// Many goroutines read and map, and Close runs meanwhile: every read is right or fails.
func TestConcurrentReads(t *testing.T) {
	cfg := small()
	dir, l := pack(t, cfg, q4, true)
	x, err := Open(dir, cfg)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			got := make([]byte, l.Bytes)
			for i := range 200 {
				layer, e := (i+worker)%3, (i*worker)%4
				err := x.ReadExpert(layer, e, got)
				if err != nil {
					if !errors.Is(err, os.ErrClosed) {
						t.Errorf("ReadExpert: %v", err)
					}
					return
				}
				if !bytes.Equal(got, record(layer, e, l.Bytes)) {
					t.Errorf("layer %d expert %d differs", layer, e)
				}
				if _, err := x.Map(layer); err != nil && !errors.Is(err, os.ErrClosed) {
					t.Errorf("Map: %v", err)
				}
				runtime.Gosched()
			}
		})
	}
	wg.Go(func() {
		for range 100 {
			runtime.Gosched()
		}
		if err := x.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	wg.Wait()
}
