package gguf

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"github.com/moeflux/moeflux-actor/internal/mapfault"
	"golang.org/x/sys/unix"
)

// File is one opened file, mapped read-only. It may be used from many goroutines until Close.
type File struct {
	Header
	path    string
	mapping []byte // the whole file; nil after Close
}

// OpenFile maps one file and checks its header; OpenModel does so for all parts of a model. The
// error is a *FormatError if the file is at fault, or comes from the operating system.
func OpenFile(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("gguf: %w", err)
	}
	defer f.Close() // the mapping outlives the descriptor
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, fmt.Errorf("gguf: %w", err)
	case !info.Mode().IsRegular():
		return nil, &FormatError{Path: path, Why: "it is not a regular file", Err: ErrNotGGUF}
	case info.Size() == 0: // cannot be mapped
		return nil, &FormatError{Path: path, Why: "the file is empty", Err: ErrTruncated}
	}
	mapping, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("gguf: map %s: %w", path, err)
	}
	out := &File{path: path, mapping: mapping}
	err = mapfault.Guard(func() error {
		h, err := Parse(path, mapping)
		if err == nil {
			out.Header = *h
		}
		return err
	})
	if lost := mapfault.In(path, mapping, err); lost != nil {
		err = fmt.Errorf("gguf: %w", lost)
	}
	if err != nil {
		out.Close()
		return nil, err
	}
	return out, nil
}

// Is reports whether path is a GGUF file, by its first bytes or else by its name.
func Is(path string) bool {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	begin := make([]byte, 4)
	_, err = io.ReadFull(f, begin)
	return err == nil && IsGGUF(begin) || strings.EqualFold(filepath.Ext(path), ".gguf")
}

// Begin returns what is before the data: the whole of what the file says of itself.
func (f *File) Begin() []byte {
	end := int64(len(f.mapping))
	for i := range f.Tensors {
		end = min(end, f.Tensors[i].OffsetBytes)
	}
	return f.mapping[:end]
}

// Path returns the path that the file was opened by.
func (f *File) Path() string { return f.path }

// Bytes returns the size of the file.
func (f *File) Bytes() int64 { return int64(len(f.mapping)) }

// drop tells the system that the whole pages of a view of this file will not be read again soon. It
// ignores views of other files.
func (f *File) drop(data []byte) {
	if len(data) == 0 || len(f.mapping) == 0 {
		return
	}
	base, at := uintptr(unsafe.Pointer(unsafe.SliceData(f.mapping))), uintptr(unsafe.Pointer(unsafe.SliceData(data)))
	if at < base || at-base >= uintptr(len(f.mapping)) {
		return
	}
	page := os.Getpagesize()
	from, to := int(at-base)/page*page, (int(at-base)+len(data))/page*page
	if from < to {
		_ = unix.Madvise(f.mapping[from:to], unix.MADV_DONTNEED) // only advice
	}
}

// Close unmaps the file. Its views must not be used afterwards. A second Close does nothing.
func (f *File) Close() error {
	if f.mapping == nil {
		return nil
	}
	m := f.mapping
	f.mapping, f.Header = nil, Header{}
	if err := unix.Munmap(m); err != nil {
		return fmt.Errorf("gguf: unmap %s: %w", f.path, err)
	}
	return nil
}
