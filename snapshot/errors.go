package snapshot

import (
	"errors"
	"fmt"
	"strings"
)

// What can be wrong with a snapshot: the kinds of [Error]. A text says what the file has or is.
var (
	ErrNotSnapshot    = errors.New("not a snapshot")
	ErrVersion        = errors.New("unsupported version")
	ErrTruncated      = errors.New("ends too soon")
	ErrShape          = errors.New("the state of a model of another shape")
	ErrNegativeLen    = errors.New("a negative number of positions")
	ErrLenOverflow    = errors.New("more positions than the format allows")
	ErrUnequalLen     = errors.New("another number of positions than in the layers before")
	ErrTooLong        = errors.New("more positions than there is room for")
	ErrTrailing       = errors.New("bytes after the end")
	ErrUnsealed       = errors.New("no seal, so damage would not be noticed; to load another program's file, accept unsealed ones")
	ErrSeal           = errors.New("a damaged seal")
	ErrChecksum       = errors.New("damaged: the checksum does not match")
	ErrFingerprint    = errors.New("the state of another model, or of the same model quantised differently")
	ErrUnsupported    = errors.New("a state that this form of file cannot hold")
	ErrBufferTooSmall = errors.New("the buffer is too small")
)

// Error reports a snapshot that cannot be loaded, shown or written. errors.Is finds its Kind and
// its cause.
type Error struct {
	Kind error // one of the Err values of this package
	// what is wrong: a header's field by its name in docs/snapshots.md, or a part of the file
	Field string
	Layer int // where; -1 if it is not about a layer
	// Got and Want are what the file has and what is asked for: bytes of ErrTruncated, ErrTrailing
	// and ErrBufferTooSmall, the most that is accepted as Want of ErrTooLong and ErrLenOverflow, 0
	// as that of ErrNegativeLen, else the field's values.
	Got, Want int64
	Detail    string // more, for people; may be empty
	Err       error  // cause, nil if there is none
}

func (e *Error) Error() string {
	var b strings.Builder
	if e.Layer >= 0 {
		fmt.Fprintf(&b, "layer %d: ", e.Layer)
	}
	fmt.Fprintf(&b, "%s: %v", e.Field, e.Kind)
	switch {
	case e.Kind == ErrNegativeLen:
		fmt.Fprintf(&b, ": %d", e.Got)
	case e.Got == e.Want: // not a matter of numbers
	case e.Kind == ErrTooLong || e.Kind == ErrLenOverflow:
		fmt.Fprintf(&b, ": %d, at most %d", e.Got, e.Want)
	case e.Kind == ErrNotSnapshot || e.Kind == ErrChecksum:
		fmt.Fprintf(&b, ": %#x, expected %#x", uint64(e.Got), uint64(e.Want)) // bits, not amounts
	case e.Kind == ErrTruncated || e.Kind == ErrBufferTooSmall:
		fmt.Fprintf(&b, ": %d bytes, %d needed", e.Got, e.Want)
	default:
		fmt.Fprintf(&b, ": %d, expected %d", e.Got, e.Want)
	}
	if e.Detail != "" {
		fmt.Fprintf(&b, " (%s)", e.Detail)
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	return b.String()
}

// Unwrap returns the kind and the cause.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}

// wrong makes an Error about no particular layer.
func wrong(kind error, field string, got, want int64) *Error {
	return &Error{Kind: kind, Field: field, Layer: -1, Got: got, Want: want}
}
