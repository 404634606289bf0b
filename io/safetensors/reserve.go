package safetensors

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Reserve describes a file of size bytes that may not be there yet, from its JSON header. Its
// tensors have their names, types, shapes and views at once, but the views can be read only from
// Attach to Detach: at other times reading them faults. The error is a *FormatError if the header
// is invalid.
func Reserve(path string, header []byte, size int64) (*File, error) {
	if size < 8+int64(len(header)) || int64(int(size)) != size {
		return nil, &FormatError{Path: path, Why: fmt.Sprintf("%d bytes are too few for a header of %d", size, len(header))}
	}
	f := &File{path: path, header: bytes.Clone(header), reserved: true}
	entries, metadata, err := parseHeader(path, f.header, int(size)-8-len(header))
	if err != nil {
		return nil, err
	}
	at, err := unix.MmapPtr(-1, 0, nil, uintptr(size), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, fmt.Errorf("safetensors: reserve %d bytes for %s: %w", size, path, err)
	}
	f.mapping = unsafe.Slice((*byte)(at), size)
	f.index(entries, metadata, f.mapping[8+len(header):])
	return f, nil
}

// Attach makes the views of a reserved file readable. The file must have the reserved size and
// begin with the reserved header, and must be left as it is until Detach.
func (f *File) Attach() error {
	if !f.reserved || f.mapping == nil {
		return fmt.Errorf("safetensors: %s was not reserved", f.path)
	}
	file, err := os.Open(f.path)
	if err != nil {
		return fmt.Errorf("safetensors: %w", err)
	}
	defer file.Close() // the mapping outlives the descriptor
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("safetensors: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() != int64(len(f.mapping)) {
		return &FormatError{Path: f.path, Why: fmt.Sprintf("%d bytes, but %d were announced", info.Size(), len(f.mapping))}
	}
	begin := make([]byte, 8+len(f.header))
	if _, err := file.ReadAt(begin, 0); err != nil {
		return fmt.Errorf("safetensors: %w", err)
	}
	if binary.LittleEndian.Uint64(begin) != uint64(len(f.header)) || !bytes.Equal(begin[8:], f.header) {
		return &FormatError{Path: f.path, Why: "its header is not the one that was announced"}
	}
	return f.remap(int(file.Fd()), unix.PROT_READ, unix.MAP_PRIVATE)
}

// Detach makes the views of a reserved file unreadable again, so that the file may be removed.
func (f *File) Detach() error {
	if !f.reserved || f.mapping == nil {
		return fmt.Errorf("safetensors: %s was not reserved", f.path)
	}
	return f.remap(-1, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON)
}

// remap replaces what the file's addresses show, in one step.
func (f *File) remap(fd, prot, flags int) error {
	at := unsafe.Pointer(unsafe.SliceData(f.mapping))
	if _, err := unix.MmapPtr(fd, 0, at, uintptr(len(f.mapping)), prot, flags|unix.MAP_FIXED); err != nil {
		return fmt.Errorf("safetensors: map %s: %w", f.path, err)
	}
	return nil
}

// unmap gives up the file's addresses. Unlike those that Mmap chose, reserved ones are not known to
// Munmap.
func (f *File) unmap(mapping []byte) error {
	if f.reserved {
		return unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(mapping)), uintptr(len(mapping)))
	}
	return unix.Munmap(mapping)
}
