package expertfile

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// Span says where one projection of a layer's experts lies in a file of another form: that of
// expert e at OffsetBytes + e·Stride.
type Span struct {
	File        int // index among the files
	OffsetBytes int64
	Stride      int64        // bytes from expert to expert
	Bytes       int          // of one
	Block       *quant.Block // how they are stored, as the record has them
}

// Spread says where the records of a model lie in files of another form.
type Spread struct {
	Files   []string
	Spans   map[int][3]Span            // gate, up and down by layer
	Records map[int]model.ExpertLayout // what records are in memory, by layer; all have as many bytes
}

// spread is the opened files of a Spread.
type spread struct {
	Spread
	files []*layerFile

	mu     sync.Mutex
	free   [][]byte       // frames that no read uses, each of frameBytes and aligned for direct reads
	copies map[int][]byte // layers that Map was asked for
}

// OpenSpread opens experts of cfg in files of another form. Each read takes one read of the file
// for each projection. Errors come from the operating system, or name a span that goes past the end
// of its file.
func OpenSpread(cfg *model.Config, of Spread) (*File, error) {
	s := &spread{Spread: of, copies: map[int][]byte{}}
	f := &File{layouts: of.Records, experts: cfg.NumExperts, layers: cfg.MoELayers(), spread: s}
	for i, layer := range f.layers {
		if l := of.Records[layer]; i == 0 {
			f.layout = l
		} else if l.Bytes != f.layout.Bytes {
			return nil, fmt.Errorf("expertfile: records of %d and of %d bytes in one model", f.layout.Bytes, l.Bytes)
		}
	}
	var sizes []int64
	for _, path := range of.Files {
		l, size, err := f.openFile(path)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("expertfile: %w", err), f.Close())
		}
		s.files, sizes = append(s.files, l), append(sizes, size)
	}
	for _, layer := range f.layers {
		for i, span := range of.Spans[layer] {
			if err := s.check(span, f.part(layer, i), f.experts, sizes); err != nil {
				return nil, errors.Join(fmt.Errorf("expertfile: layer %d: %s: %w", layer, projections[i], err), f.Close())
			}
		}
	}
	return f, nil
}

// check compares a span with what the record wants of it, and with the size of its file.
func (s *spread) check(x Span, p model.ExpertPart, experts int, sizes []int64) error {
	switch {
	case x.Block == nil || x.File < 0 || x.File >= len(sizes):
		return errors.New("it lies nowhere")
	case x.Bytes != x.Block.Bytes(p.Rows, p.Cols):
		return fmt.Errorf("%d bytes of %s, expected %d", x.Bytes, x.Block, x.Block.Bytes(p.Rows, p.Cols))
	case p.Format != quant.InBlock(x.Block):
		return fmt.Errorf("%s is not %v", x.Block, p.Format)
	case x.OffsetBytes < 0 || x.Stride < int64(x.Bytes) || x.OffsetBytes > sizes[x.File]-x.Stride*int64(experts-1)-int64(x.Bytes):
		return fmt.Errorf("%d experts at byte %d go past the end of %s", experts, x.OffsetBytes, s.Files[x.File])
	}
	return nil
}

// part returns gate, up or down of a layer's records.
func (f *File) part(layer, i int) model.ExpertPart {
	l := f.LayoutOf(layer)
	return [3]model.ExpertPart{l.Gate, l.Up, l.Down}[i]
}

// Spread reports whether records are gathered from files of another form.
func (f *File) Spread() bool { return f.spread != nil }

// path returns the file that has a layer's gates.
func (s *spread) path(layer int) string {
	if spans, ok := s.Spans[layer]; ok {
		return s.Files[spans[0].File]
	}
	return ""
}

// gather is ReadExpert.
func (f *File) gather(layer, expert int, dst []byte) error {
	spans, ok := f.spread.Spans[layer]
	fail := func(i, got int, err error) error {
		x := spans[i]
		path := ""
		if ok {
			path = f.spread.Files[x.File]
		}
		return &ReadError{Path: path, Layer: layer, Expert: expert, OffsetBytes: x.OffsetBytes + int64(expert)*x.Stride, WantLen: x.Bytes, GotLen: got, Err: err}
	}
	switch {
	case !ok:
		return fail(0, 0, errNoLayer)
	case expert < 0 || expert >= f.experts:
		return fail(0, 0, errNoExpert)
	case len(dst) != f.layout.Bytes:
		return fail(0, 0, fmt.Errorf("%w: %d bytes", errLength, len(dst)))
	}
	for i := range spans {
		to := dst[f.part(layer, i).WeightOffset:][:spans[i].Bytes]
		if got, err := f.readSpan(&spans[i], expert, to); err != nil {
			return fail(i, got, err)
		}
	}
	return nil
}

// readSpan reads one projection of an expert. Its bytes go to their place, unless the page cache is
// passed: then a frame around them is read, since they begin anywhere.
func (f *File) readSpan(x *Span, expert int, dst []byte) (int, error) {
	at, file := x.OffsetBytes+int64(expert)*x.Stride, f.spread.files[x.File]
	if !f.direct {
		return readFull(file.read, dst, at, 1)
	}
	frame, err := f.spread.frame()
	if err != nil {
		return 0, err
	}
	defer f.spread.put(frame)
	skip := int(at % DirectAlign)
	whole := (skip + x.Bytes + DirectAlign - 1) / DirectAlign * DirectAlign
	got, err := readFull(file.read, frame[:whole], at-int64(skip), DirectAlign)
	if got >= skip+x.Bytes { // the file may end within the last page
		err = nil
	} else if err == nil {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return max(0, got-skip), err
	}
	return copy(dst, frame[skip:][:x.Bytes]), nil
}

// frameBytes is the size of a frame around any span.
func (s *spread) frameBytes() int {
	most := 0
	for _, spans := range s.Spans {
		for _, x := range spans {
			most = max(most, x.Bytes)
		}
	}
	return (most+DirectAlign-1)/DirectAlign*DirectAlign + DirectAlign
}

// frame returns memory for a read. As many frames are kept as were ever in use at once.
func (s *spread) frame() ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.free); n > 0 {
		out := s.free[n-1]
		s.free = s.free[:n-1]
		return out, nil
	}
	return unix.Mmap(-1, 0, s.frameBytes(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
}

func (s *spread) put(frame []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, frame)
}

// copyLayer is Map: it reads all records of a layer.
func (f *File) copyLayer(layer int) ([]byte, error) {
	s := f.spread
	s.mu.Lock()
	done := s.copies[layer]
	s.mu.Unlock()
	if done != nil {
		return done, nil
	}
	n := f.layout.Bytes
	all, err := unix.Mmap(-1, 0, n*f.experts, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("expertfile: memory for layer %d: %w", layer, err)
	}
	for e := 0; e < f.experts && err == nil; e++ {
		err = f.ReadExpert(layer, e, all[e*n:(e+1)*n:(e+1)*n])
	}
	if err != nil {
		return nil, errors.Join(err, unix.Munmap(all))
	}
	s.mu.Lock()
	s.copies[layer] = all
	s.mu.Unlock()
	return all, nil
}

// spreadDirect is UseDirect. Records may lie anywhere, since frames around them are read.
func (f *File) spreadDirect() error {
	for i, l := range f.spread.files {
		err := l.setDirect(true)
		if err == nil {
			err = l.tryDirect(DirectAlign)
		}
		if err == nil {
			continue
		}
		for _, back := range f.spread.files[:i+1] {
			_ = back.setDirect(false) // refused where it was never set
		}
		return &DirectError{Path: l.path, Why: fmt.Sprintf("the file system refuses: %v", err), Err: err}
	}
	f.direct = true
	return nil
}

// close closes the files and gives all memory back.
func (s *spread) close() error {
	var errs []error
	for _, l := range s.files {
		errs = append(errs, l.close())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.free {
		errs = append(errs, unix.Munmap(m))
	}
	for _, m := range s.copies {
		errs = append(errs, unix.Munmap(m))
	}
	s.free, s.copies = nil, nil
	return errors.Join(errs...)
}
