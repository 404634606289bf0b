package convert

import (
	"errors"
	"runtime/debug"
)

// errFault reports that reading a mapped source file failed.
var errFault = errors.New("convert: a source file could not be read: it was cut short, or its disk failed")

// guard runs fn, which reads mapped files, and turns a memory fault into an error: the system
// raises one where a mapped file has lost its end or a disk does not answer. Other panics go on. It
// holds for the calling goroutine alone.
func guard(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		// Faults at an address carry it; a nil pointer, which would be our mistake, does not.
		if _, fault := r.(interface{ Addr() uintptr }); !fault {
			panic(r)
		}
		err = errFault
	}()
	return fn()
}
