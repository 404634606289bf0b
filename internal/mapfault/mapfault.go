// Package mapfault turns the faults of mapped files into errors. The system raises a fault where a
// file that is mapped has lost its end, or where its disk does not answer; without this package it
// ends the process or looks like a nil pointer.
package mapfault

import (
	"errors"
	"fmt"
	"runtime/debug"
	"unsafe"
)

// Fault reports mapped memory that could not be read.
type Fault struct{ Addr uintptr }

func (e *Fault) Error() string {
	return fmt.Sprintf("mapped memory at %#x cannot be read: its file was truncated, or its disk failed", e.Addr)
}

// FileError reports a mapped file that could not be read.
type FileError struct {
	Path        string
	OffsetBytes int64
	Err         error // wraps a *Fault
}

func (e *FileError) Error() string {
	return fmt.Sprintf("%s cannot be read at byte %d: the file was truncated or changed while it was in use, or its disk failed; restore it and open the model again",
		e.Path, e.OffsetBytes)
}

// Unwrap returns the cause.
func (e *FileError) Unwrap() error { return e.Err }

// In returns the error of a fault in the mapping of the file at path, or nil if it is elsewhere.
func In(path string, mapping []byte, err error) error {
	var f *Fault
	if !errors.As(err, &f) || len(mapping) == 0 {
		return nil
	}
	at := f.Addr - uintptr(unsafe.Pointer(unsafe.SliceData(mapping)))
	if at >= uintptr(len(mapping)) {
		return nil
	}
	return &FileError{Path: path, OffsetBytes: int64(at), Err: err}
}

// Of returns the fault that a panic came from, or nil. Only a goroutine with
// debug.SetPanicOnFault panics for a fault. A nil pointer is not a fault.
func Of(recovered any) *Fault {
	if f, ok := recovered.(interface{ Addr() uintptr }); ok {
		return &Fault{Addr: f.Addr()}
	}
	return nil
}

// Guard runs fn, which reads mapped files, and returns a *Fault if that faults. It holds for the
// calling goroutine alone.
func Guard(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		f := Of(r)
		if f == nil {
			panic(r)
		}
		err = f
	}()
	return fn()
}
