package readpool

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// ErrClosed is the error of every read that had not begun when its pool was closed.
var ErrClosed = errors.New("readpool: closed")

// ErrRecalled is the error of a read that was recalled before it had begun.
var ErrRecalled = errors.New("readpool: recalled")

// TimeoutError reports a read that has not ended. It still may.
type TimeoutError struct {
	Layer, Expert int
	// since the read began, or since it was asked for if no worker was free
	Waited time.Duration
	Begun  bool
}

func (e *TimeoutError) Error() string {
	why := "the disk does not answer"
	if !e.Begun {
		why = "no reader is free, since the disk does not answer them"
	}
	return fmt.Sprintf("readpool: layer %d expert %d has not been read after %v: %s; look at the disk, or raise the read timeout if it is only slow",
		e.Layer, e.Expert, e.Waited.Round(time.Millisecond), why)
}

// Unwrap returns os.ErrDeadlineExceeded.
func (e *TimeoutError) Unwrap() error { return os.ErrDeadlineExceeded }

// PanicError reports a Source that panicked. Dst is undefined then.
type PanicError struct {
	Layer, Expert int
	Value         any    // what was panicked with
	Stack         []byte // of the worker, for the log
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("readpool: reading layer %d expert %d panicked: %v", e.Layer, e.Expert, e.Value)
}

// Unwrap returns the value of the panic where that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
