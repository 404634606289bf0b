package expertfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"

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

// Map returns a read-only mapping of a layer's file: Experts() records of Layout().Bytes. It is
// valid until Close, and the same on every call. Records that are spread over a file are copied to
// memory for that. If the file is truncated meanwhile, reads of the lost part fault.
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
