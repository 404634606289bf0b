package expertfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/moeflux/moeflux-actor/internal/mapfault"
	"github.com/moeflux/moeflux-actor/model"
)

// File is the opened experts of a packed model. All methods except Close may be called from many
// goroutines.
type File struct {
	dir     string                     // of the layer files
	layout  model.ExpertLayout         // of the first layer
	layouts map[int]model.ExpertLayout // by layer; nil if all are alike
	experts int
	layers  []int // that have experts, ascending
	files   map[int]*layerFile
	direct  bool // reads bypass the page cache
	calls   preads
	sums    Sums            // nil if records are not checked
	missing []*MissingError // of OpenPartial
	spread  *spread         // where records lie in files of another form, nil for layer files
}

// layerFile is one layer's file. The mapping is made on the first call of Map.
type layerFile struct {
	path string
	file *os.File
	read io.ReaderAt // the file; tests put a failing one in front
	raw  syscall.RawConn
	// calls is shared by all files.
	calls *preads

	mu      sync.Mutex
	closed  bool
	mapping []byte
}

// Open opens the expert files of every layer that has experts: in dir/packed_experts; in
// packed_experts_2bit beside it, if only that exists; or in dir/root, where moeflux puts both. If
// there is a layout.json beside them, it gives the layout of records and must agree with the model;
// otherwise the format follows from the size of the files. The error joins a *MissingError or
// *SizeError for every file at fault, or is a *LayoutError.
func Open(dir string, cfg *model.Config) (*File, error) { return open(Find(dir, cfg), cfg, false) }

// OpenPartial is Open, or with in OpenIn, where files may be missing, but not all: reading an
// expert of a layer without a file fails with a *MissingError.
func OpenPartial(dir string, cfg *model.Config, in bool) (*File, error) {
	if in {
		return open(FindIn(dir, cfg), cfg, true)
	}
	return open(Find(dir, cfg), cfg, true)
}

// OpenIn is Open with the expert files of another place than the model's own: dir itself, if the
// layer files are in it, or the folders below it that Open looks into. It chooses among packs of
// two and of four bits where a model has both.
func OpenIn(dir string, cfg *model.Config) (*File, error) {
	return open(FindIn(dir, cfg), cfg, false)
}

// FindIn returns the folder whose layer files OpenIn opens.
func FindIn(dir string, cfg *model.Config) string {
	if layers := cfg.MoELayers(); len(layers) > 0 {
		if _, err := os.Stat(filepath.Join(dir, LayerName(layers[0]))); err == nil {
			return dir
		}
	}
	return Find(dir, cfg)
}

func open(packed string, cfg *model.Config, partial bool) (*File, error) {
	layout, layouts, known, err := readLayout(filepath.Join(packed, LayoutName), cfg)
	if err != nil {
		return nil, err
	}
	f := &File{dir: packed, layout: layout, layouts: layouts, experts: cfg.NumExperts, layers: cfg.MoELayers(), files: map[int]*layerFile{}}
	var errs []error
	var sizes []int64 // of each layer, -1 for a file that could not be opened
	for _, layer := range f.layers {
		size, err := f.open(layer, filepath.Join(packed, LayerName(layer)))
		if missing, ok := errors.AsType[*MissingError](err); ok && partial {
			f.missing = append(f.missing, missing)
		} else if err != nil {
			errs = append(errs, err)
		}
		sizes = append(sizes, size)
	}
	for _, size := range sizes {
		if known {
			break
		}
		f.layout, known = guessLayout(cfg, size)
	}
	for i, layer := range f.layers {
		want := int64(f.layout.Bytes) * int64(f.experts) // 0 if no layout is known
		if sizes[i] >= 0 && (sizes[i] != want || !known) {
			errs = append(errs, &SizeError{Path: f.files[layer].path, Layer: layer, Want: want, Got: sizes[i]})
		}
	}
	if n := len(f.missing); n > 0 && n == len(f.layers) {
		errs = append(errs, f.missing[0])
	}
	if len(f.layers) == 0 {
		errs = append(errs, errors.New("expertfile: the model has no layer with experts"))
	}
	if len(errs) > 0 {
		f.Close()
		return nil, errors.Join(errs...)
	}
	return f, nil
}

// Find returns the folder whose layer files Open opens: the first of those it knows that has the
// file of the first layer with experts.
func Find(dir string, cfg *model.Config) string {
	usual := filepath.Join(dir, DirName)
	layers := cfg.MoELayers()
	if len(layers) == 0 {
		return usual
	}
	for _, d := range []string{usual, filepath.Join(dir, dirName2Bit), filepath.Join(dir, rootDir, DirName), filepath.Join(dir, rootDir, dirName2Bit)} {
		if _, err := os.Stat(filepath.Join(d, LayerName(layers[0]))); err == nil {
			return d
		}
	}
	return usual
}

// open opens one layer's file and returns its size.
func (f *File) open(layer int, path string) (int64, error) {
	l, size, err := f.openFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return -1, &MissingError{Path: path, Layer: layer, Err: err}
	}
	if err != nil {
		return -1, fmt.Errorf("expertfile: %w", err)
	}
	f.files[layer] = l
	return size, nil
}

// openFile opens a regular file and returns its size.
func (f *File) openFile(path string) (*layerFile, int64, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, -1, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	var raw syscall.RawConn
	if err == nil {
		raw, err = file.SyscallConn()
	}
	if err != nil {
		file.Close()
		return nil, -1, err
	}
	l := &layerFile{path: path, file: file, raw: raw, calls: &f.calls}
	l.read = l
	return l, info.Size(), nil
}

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

// pread is one call of it.
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

// Layout returns the layout of records of the first layer with experts. Its Bytes are those of
// every record of the model.
func (f *File) Layout() model.ExpertLayout { return f.layout }

// LayoutOf returns the layout of a layer's records.
func (f *File) LayoutOf(layer int) model.ExpertLayout {
	if l, ok := f.layouts[layer]; ok {
		return l
	}
	return f.layout
}

// Mixed reports whether layers have different layouts.
func (f *File) Mixed() bool { return f.layouts != nil }

// Layers returns the indexes of the layers that have experts, ascending. The slice is shared,
// read-only.
func (f *File) Layers() []int { return f.layers }

// Experts returns the number of experts in each of the layers.
func (f *File) Experts() int { return f.experts }

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

// Map returns a read-only mapping of a layer's file: Experts() records of Layout().Bytes. It is
// valid until Close, and the same on every call. Records that are spread over a file are copied to
// memory for that. If the file is truncated meanwhile, reads of the
// lost part fault.
func (f *File) Map(layer int) ([]byte, error) {
	if f.spread != nil {
		return f.copyLayer(layer)
	}
	l := f.files[layer]
	if l == nil {
		return nil, fmt.Errorf("expertfile: map layer %d: %w", layer, errNoLayer)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, fmt.Errorf("expertfile: map %s: %w", l.path, os.ErrClosed)
	}
	if l.mapping == nil {
		m, err := unix.Mmap(int(l.file.Fd()), 0, f.layout.Bytes*f.experts, unix.PROT_READ, unix.MAP_SHARED)
		if err != nil {
			return nil, fmt.Errorf("expertfile: map %s: %w", l.path, err)
		}
		l.mapping = m
	}
	return l.mapping, nil
}

// Lost returns the *mapfault.FileError of a fault, which err wraps, in a mapping of Map, or nil if
// err is something else.
func (f *File) Lost(err error) error {
	for _, l := range f.files {
		if l == nil {
			continue
		}
		l.mu.Lock()
		lost := mapfault.In(l.path, l.mapping, err)
		l.mu.Unlock()
		if lost != nil {
			return lost
		}
	}
	return nil
}

// Close unmaps and closes all files. Reads in progress complete or fail; mappings must not be in
// use. A second Close does nothing.
func (f *File) Close() error {
	var errs []error
	for _, layer := range f.layers {
		if l := f.files[layer]; l != nil {
			errs = append(errs, l.close())
		}
	}
	if f.spread != nil {
		errs = append(errs, f.spread.close())
	}
	return errors.Join(errs...)
}

func (l *layerFile) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	var errs []error
	if l.mapping != nil {
		if err := unix.Munmap(l.mapping); err != nil {
			errs = append(errs, fmt.Errorf("expertfile: unmap %s: %w", l.path, err))
		}
		l.mapping = nil
	}
	if err := l.file.Close(); err != nil {
		errs = append(errs, fmt.Errorf("expertfile: %w", err))
	}
	return errors.Join(errs...)
}
