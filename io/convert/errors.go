package convert

import (
	"errors"
	"fmt"
)

// ErrBusy reports that another process is converting to the same directory.
var ErrBusy = errors.New("another conversion to this directory is running")

// SourceError reports a tensor of the source that is missing, unknown, or not what the architecture
// wants.
type SourceError struct {
	// as named in the source, or as it would be after the usual prefixes are taken off
	Tensor    string
	Want, Got string // "" where there is nothing to say
}

func (e *SourceError) Error() string {
	switch {
	case e.Want == "":
		return fmt.Sprintf("convert: tensor %q: %s", e.Tensor, e.Got)
	default:
		return fmt.Sprintf("convert: tensor %q: got %s, want %s", e.Tensor, e.Got, e.Want)
	}
}

// BitsError reports a packed directory whose codes have other bits than were wished for.
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
	return fmt.Sprintf("convert: %s is packed already and its %s %s: %d bits would not be those that the checkpoint gives; "+
		"leave the bits out to change the layout alone, or convert the checkpoint", e.Dir, e.What, have, e.Want)
}

// SpaceError reports that the target's file system is too small, before anything was written.
type SpaceError struct {
	Dir        string
	Need, Free uint64 // bytes
}

func (e *SpaceError) Error() string {
	return fmt.Sprintf("convert: %s has %s free, the conversion needs %s: free %s more or choose another directory",
		e.Dir, mib(e.Free), mib(e.Need), mib(e.Need-e.Free))
}

// mib prints a number of bytes, rounded up.
func mib(n uint64) string {
	const m = 1 << 20
	return fmt.Sprintf("%d MiB", n/m+min(n%m, 1))
}

// WriteError reports a file of the target that could not be written. What was finished before it is
// kept: run the conversion again to go on from there. Err wraps syscall.ENOSPC where the disk is
// full.
type WriteError struct {
	Path string
	Err  error
}

func (e *WriteError) Error() string {
	if diskFull(e.Err) {
		return fmt.Sprintf("convert: disk full while writing %s: make room and convert again, finished files are kept: %v", e.Path, e.Err)
	}
	return fmt.Sprintf("convert: write %s: %v", e.Path, e.Err)
}

func (e *WriteError) Unwrap() error { return e.Err }

// ExistsError reports a target, or a directory where it is prepared, that the conversion will not
// touch.
type ExistsError struct {
	Path string
	Why  string
}

func (e *ExistsError) Error() string { return fmt.Sprintf("convert: %s: %s", e.Path, e.Why) }

// ChecksumError reports a file whose content is not what the checksum manifest says.
type ChecksumError struct {
	File      string // relative to the model directory
	Want, Got string // SHA-256 in hex, or sizes such as "1024 bytes" where these differ already
}

func (e *ChecksumError) Error() string {
	return fmt.Sprintf("convert: %s: got %s, want %s: the file was changed or damaged", e.File, e.Got, e.Want)
}

// MissingError reports a file that the checksum manifest names and that cannot be opened.
type MissingError struct {
	File string // relative to the model directory
	Err  error
}

func (e *MissingError) Error() string { return fmt.Sprintf("convert: %s: %v", e.File, e.Err) }

func (e *MissingError) Unwrap() error { return e.Err }
