package convert

import (
	"errors"
	"fmt"
)

// ErrBusy reports that another process is converting to the same directory.
var ErrBusy = errors.New("another conversion to this directory is running")

// SourceError reports a tensor of the source that is missing, unknown, or not what the architecture
// needs.
type SourceError struct {
	// as named in the source, or as it would be named without the usual prefixes
	Tensor    string
	Want, Got string // either may be ""
}

func (e *SourceError) Error() string {
	switch {
	case e.Want == "":
		return fmt.Sprintf("convert: tensor %q: %s", e.Tensor, e.Got)
	default:
		return fmt.Sprintf("convert: tensor %q: found %s, expected %s", e.Tensor, e.Got, e.Want)
	}
}

// BitsError reports a packed directory whose codes do not have the number of bits asked for.
type BitsError struct {
	Dir        string
	What       string // which matrices
	Have, Want int    // bits of a code; Have is 0 for matrices that are not quantised
}

func (e *BitsError) Error() string {
	have := fmt.Sprintf("are stored with %d bits", e.Have)
	if e.Have == 0 {
		have = "are not quantised"
	}
	return fmt.Sprintf("convert: %s is packed already and its %s %s: requantising to %d bits would differ from converting the checkpoint; "+
		"leave out the bits to change only the layout, or convert the checkpoint", e.Dir, e.What, have, e.Want)
}

// SpaceError reports that the target's file system is too small, before anything was written.
type SpaceError struct {
	Dir        string
	Need, Free uint64 // bytes
}

func (e *SpaceError) Error() string {
	return fmt.Sprintf("convert: %s has %s free, but the conversion needs %s: free another %s or choose another directory",
		e.Dir, mib(e.Free), mib(e.Need), mib(e.Need-e.Free))
}

// mib prints a number of bytes, rounded up.
func mib(n uint64) string {
	const m = 1 << 20
	return fmt.Sprintf("%d MiB", n/m+min(n%m, 1))
}

// WriteError reports a file of the target that could not be written. Files finished before it are
// kept: running the conversion again continues from there. Err wraps syscall.ENOSPC if the disk is
// full.
type WriteError struct {
	Path string
	Err  error
}

func (e *WriteError) Error() string {
	if diskFull(e.Err) {
		return fmt.Sprintf("convert: the disk is full while writing %s: make room and convert again, finished files are kept: %v", e.Path, e.Err)
	}
	return fmt.Sprintf("convert: write %s: %v", e.Path, e.Err)
}

func (e *WriteError) Unwrap() error { return e.Err }

// ExistsError reports that the target, or the directory where it is prepared, already exists.
type ExistsError struct {
	Path     string
	Why      string
	Complete bool // the target holds a converted model
}

func (e *ExistsError) Error() string { return fmt.Sprintf("convert: %s: %s", e.Path, e.Why) }

// ChecksumError reports a file whose content does not match its checksum.
type ChecksumError struct {
	File      string // relative to the model directory
	Want, Got string // SHA-256 in hex, or sizes such as "1024 bytes" if these differ
}

func (e *ChecksumError) Error() string {
	return fmt.Sprintf("convert: %s was changed or damaged: found %s, expected %s", e.File, e.Got, e.Want)
}

// MissingError reports a file that is listed in checksums.json and cannot be opened.
type MissingError struct {
	File string // relative to the model directory
	Err  error
}

func (e *MissingError) Error() string { return fmt.Sprintf("convert: %s: %v", e.File, e.Err) }

func (e *MissingError) Unwrap() error { return e.Err }
