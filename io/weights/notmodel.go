package weights

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// NotModelError reports a directory that holds no packed model, and what to do.
type NotModelError struct {
	Dir string
	Why string
	Err error // cause, nil if there is none
}

func (e *NotModelError) Error() string { return fmt.Sprintf("%s %s", e.Dir, e.Why) }
func (e *NotModelError) Unwrap() error { return e.Err }

// CheckDir reports a path at which no model can be: there is nothing, or a file. The error is a
// *NotModelError, or comes from the operating system.
func CheckDir(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &NotModelError{Dir: dir, Why: "does not exist; make a model directory with moeflux-actor convert", Err: err}
	case err != nil:
		return err
	case !info.IsDir():
		return &NotModelError{Dir: dir, Why: "is a file, not a packed model directory as moeflux-actor convert makes one"}
	}
	return nil
}

// Explain says for people why the model in a directory does not open, for whatever reason that has.
// A directory without a model is told from a checkpoint that was not converted; of both the error
// is a *NotModelError.
func Explain(dir string, err error) error {
	switch {
	case errors.As(err, new(*NoConfigError)):
		return &NotModelError{Dir: dir, Err: err,
			Why: "holds no model: it has no config.json, nor a manifest of weights with one; make one with moeflux-actor convert"}
	case !IsPacked(dir):
		return &NotModelError{Dir: dir, Err: err, Why: fmt.Sprintf("is not a packed model directory: it has no %s; "+
			"if it is a checkpoint, pack it with moeflux-actor convert %s DST", ManifestName, dir)}
	}
	return fmt.Errorf("the model in %s cannot be opened: %w", dir, err)
}
