package safetensors

import (
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// File is an opened safetensors file, mapped read-only, or one that is described by Reserve. It may
// be used from many goroutines until Close.
type File struct {
	path     string
	mapping  []byte // whole file; nil after Close
	header   []byte // the JSON header
	tensors  map[string]Tensor
	names    []string // in the order of their data
	metadata map[string]string
	reserved bool // made by Reserve
}

// Open maps a file and checks its header. The error is a *FormatError if the file is invalid, or
// comes from the operating system.
func Open(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	defer f.Close() // the mapping outlives the descriptor
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, &FormatError{Path: path, Why: "not a regular file"}
	}
	if info.Size() < 8 {
		return nil, &FormatError{Path: path, Why: fmt.Sprintf("%d bytes are too few for the length of the header", info.Size())}
	}
	mapping, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("safetensors: map %s: %w", path, err)
	}
	out := &File{path: path, mapping: mapping}
	if err := out.parse(); err != nil {
		out.Close()
		return nil, err
	}
	return out, nil
}

// parse reads the header of the mapping.
func (f *File) parse() error {
	n := binary.LittleEndian.Uint64(f.mapping)
	rest := uint64(len(f.mapping) - 8)
	if n > maxHeader || n > rest {
		return &FormatError{Path: f.path, Why: fmt.Sprintf(
			"header of %d bytes in a file of %d (at most %d): truncated, or not a safetensors file", n, len(f.mapping), maxHeader)}
	}
	f.header = f.mapping[8 : 8+n]
	data := f.mapping[8+n:]
	entries, metadata, err := parseHeader(f.path, f.header, len(data))
	if err != nil {
		return err
	}
	f.index(entries, metadata, data)
	return nil
}

// index takes what the header says of the data part.
func (f *File) index(entries []entry, metadata map[string]string, data []byte) {
	f.metadata = metadata
	f.tensors = make(map[string]Tensor, len(entries))
	for _, e := range entries {
		f.tensors[e.name] = Tensor{Name: e.name, DType: e.dtype, Shape: e.shape, Data: data[e.begin:e.end:e.end]}
		f.names = append(f.names, e.name)
	}
}

// Path returns the path that the file was opened by.
func (f *File) Path() string { return f.path }

// Header returns the bytes of the JSON header: the names, types, shapes and byte ranges of all
// tensors.
func (f *File) Header() []byte { return f.header }

// Metadata returns the header's __metadata__, or nil.
func (f *File) Metadata() map[string]string { return f.metadata }

// Names returns the names of all tensors in the order of their data.
func (f *File) Names() []string { return slices.Clone(f.names) }

// Tensor returns a tensor by name.
func (f *File) Tensor(name string) (Tensor, bool) {
	t, ok := f.tensors[name]
	return t, ok
}

// dropMargin is how many bytes around a view are dropped too. A fault maps neighbouring pages as
// well, so pages before a chunk that were dropped already would come back and stay, a few percent
// of the file.
const dropMargin = 1 << 20

// Drop tells the operating system that the pages under a view of this file, and some around it,
// will not be read again soon, so that reading through a large file does not fill memory. All views
// stay valid. Drop ignores data that is not from this file.
func (f *File) Drop(data []byte) {
	if len(data) == 0 || len(f.mapping) == 0 {
		return
	}
	base := uintptr(unsafe.Pointer(unsafe.SliceData(f.mapping)))
	at := uintptr(unsafe.Pointer(unsafe.SliceData(data)))
	if at < base || at-base > uintptr(len(f.mapping)) {
		return
	}
	page := os.Getpagesize()
	from := max(int(at-base)-dropMargin, 0) / page * page
	to := min(int(at-base)+len(data)+dropMargin, len(f.mapping))
	// Only advice: if it fails, the pages stay until memory is short.
	_ = unix.Madvise(f.mapping[from:to], unix.MADV_DONTNEED)
}

// Close unmaps the file. Its views must not be used afterwards. A second Close does nothing.
func (f *File) Close() error {
	if f.mapping == nil {
		return nil
	}
	m := f.mapping
	f.mapping, f.header, f.tensors, f.names = nil, nil, nil, nil
	if err := f.unmap(m); err != nil {
		return fmt.Errorf("safetensors: unmap %s: %w", f.path, err)
	}
	return nil
}
