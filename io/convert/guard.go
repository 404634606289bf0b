package convert

import (
	"errors"
	"fmt"

	"github.com/moeflux/moeflux-actor/internal/mapfault"
)

// errFault reports that reading a mapped source file failed.
var errFault = errors.New("convert: a source file could not be read: it was truncated, or its disk failed")

// guard runs fn, which reads mapped files, and turns a fault into an error. It covers the calling
// goroutine only.
func guard(fn func() error) error {
	err := mapfault.Guard(fn)
	if f := (*mapfault.Fault)(nil); errors.As(err, &f) {
		return fmt.Errorf("%w (%w)", errFault, err)
	}
	return err
}
