package synth

import (
	"fmt"
	"strings"
)

// UnknownShapeError reports a name that is not one of the published shapes.
type UnknownShapeError struct {
	Name  string
	Known []string
}

func (e *UnknownShapeError) Error() string {
	return fmt.Sprintf("synth: unknown shape %q; known: %s", e.Name, strings.Join(e.Known, ", "))
}

// OptionError reports an option, or a size in the shape's configuration, that the laws do not
// cover.
type OptionError struct {
	What string // e.g. "hidden_size 200"
	Want string
}

func (e *OptionError) Error() string { return fmt.Sprintf("synth: %s: must be %s", e.What, e.Want) }

// ExistsError reports that the target, or the directory where it is prepared, already exists.
// Nothing is ever replaced.
type ExistsError struct {
	Path string
	Why  string
}

func (e *ExistsError) Error() string { return fmt.Sprintf("synth: %s: %s", e.Path, e.Why) }

// SpaceError reports that the target's file system is too small, before anything was written.
type SpaceError struct {
	Dir        string
	Need, Free uint64 // bytes
}

func (e *SpaceError) Error() string {
	return fmt.Sprintf("synth: %s has %d MB free, but the model takes %d MB: make room, choose another directory, or write fewer layers",
		e.Dir, e.Free/1e6, e.Need/1e6)
}

// FormatError reports a directory that does not hold a model written by this version of the
// package.
type FormatError struct {
	Path string
	Why  string
	Err  error // cause, if another error is one
}

func (e *FormatError) Error() string { return fmt.Sprintf("synth: %s: %s", e.Path, e.Why) }

func (e *FormatError) Unwrap() error { return e.Err }
