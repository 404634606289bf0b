package store

import (
	"errors"
	"fmt"
	"syscall"
)

// What can be wrong: the kinds of [Error].
var (
	ErrName      = errors.New("not a name for a session")
	ErrNone      = errors.New("no such session")
	ErrDamaged   = errors.New("not a sealed snapshot with token ids")
	ErrDiskFull  = errors.New("the disk is full")
	ErrTooLarge  = errors.New("larger than the limit for all sessions")
	ErrUnsettled = errors.New("stored, but a loss of power may undo it")
	ErrNoRoom    = errors.New("stored, but older sessions could not be removed to make room")
	ErrHeld      = errors.New("in use by another process")
	ErrFolder    = errors.New("the folder cannot be used")
)

// ErrLocked is what an FS answers when another file handle has the lock.
var ErrLocked = errors.New("locked by another")

// Error reports what could not be done with a session. Unless its Kind says "stored", all sessions
// are what they were. errors.Is finds its Kind and its cause.
type Error struct {
	Op      string // what was tried
	Session string // its name, "" if it is about the folder
	Path    string // of its file or the folder
	Kind    error  // one of the Err values of this package; nil if the cause says it all
	Err     error  // cause, nil if there is none
}

func (e *Error) Error() string {
	text := e.Op
	if e.Session != "" {
		text += fmt.Sprintf(" session %q", e.Session)
	}
	if e.Path != "" {
		text += " (" + e.Path + ")"
	}
	if e.Kind != nil {
		text += ": " + e.Kind.Error()
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the kind and the cause.
func (e *Error) Unwrap() []error {
	var all []error
	for _, err := range []error{e.Kind, e.Err} {
		if err != nil {
			all = append(all, err)
		}
	}
	return all
}

// fail makes an Error about this folder. If the cause is already an Error it adds what that lacks.
// It tells a full disk from other causes.
func (s *Store) fail(op, session string, kind, err error) error {
	if e, ok := err.(*Error); ok && kind == nil {
		kind, err = e.Kind, e.Err
	}
	if kind == nil && (errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)) {
		kind = ErrDiskFull
	}
	path := s.fs.Path()
	if session != "" {
		path = s.Path(session)
	}
	return &Error{Op: op, Session: session, Path: path, Kind: kind, Err: err}
}
