package gguf

import (
	"errors"
	"fmt"
)

// The kinds of faults that callers tell apart. A *FormatError wraps one of them, or none.
var (
	ErrNotGGUF   = errors.New("not a GGUF file")
	ErrBigEndian = errors.New("a GGUF file in big-endian order, of which only those in little-endian order are read")
	ErrVersion   = errors.New("a version of GGUF that is not read")
	// ErrTruncated says that a file claims more than it holds.
	ErrTruncated = errors.New("the file is cut short or damaged; fetch it again")
	// ErrType says that a tensor has a type whose size is unknown.
	ErrType = errors.New("a type of tensors that is not read")
	// ErrParts says that the parts of a model are not all there, or do not belong together.
	ErrParts = errors.New("every part of a model must lie beside the others under its own name")
)

// FormatError reports a file that is not as a GGUF file must be, or that is of a kind that is not
// read.
type FormatError struct {
	Path        string
	OffsetBytes int64  // where reading stopped; 0 if no place is at fault
	Name        string // the key or the tensor; "" if neither is at fault
	Why         string
	Err         error // the kind of fault, if it is one of those above
}

func (e *FormatError) Error() string {
	s := "gguf: " + e.Path
	if e.Name != "" {
		s += fmt.Sprintf(": %q", e.Name)
	}
	s += ": " + e.Why
	if e.Err != nil && e.Why != e.Err.Error() {
		s += " (" + e.Err.Error() + ")"
	}
	return s
}

// Unwrap returns the kind of fault.
func (e *FormatError) Unwrap() error { return e.Err }
