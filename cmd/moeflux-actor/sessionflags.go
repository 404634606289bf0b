package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/internal/flags"
	"github.com/moeflux/moeflux-actor/internal/process"
	"github.com/moeflux/moeflux-actor/snapshot/store"
)

// sessionFlags say under which name run keeps a text, and where.
type sessionFlags struct {
	Session      *string    `placeholder:"NAME" help:"Go on with the text, or with --chat the conversation, of this name, without reading it again, and save it at the end of each turn. A new name begins one."`
	SessionDir   string     `placeholder:"DIR" help:"The folder of sessions. Default: moeflux-actor/sessions in the user's state folder, which is XDG_STATE_HOME or .local/state."`
	SessionLimit flags.Size `placeholder:"SIZE" help:"The most bytes of all sessions together; those used least recently are removed, never the one being saved. Default: 16GiB."`
}

// defaultSessionLimit is what all sessions together may take on disk: a few long conversations with
// a large model.
const defaultSessionLimit = 16 << 30

// checkSession reports flags that no session can change.
func (f *sessionFlags) checkSession() error {
	switch {
	case f.Session == nil && f.SessionDir != "":
		return process.Usagef("--session-dir does nothing without --session")
	case f.Session == nil && f.SessionLimit != flags.Size{}:
		return process.Usagef("--session-limit does nothing without --session")
	case f.SessionLimit.Percent != 0:
		return process.Usagef("--session-limit is a size on disk, like 8GiB")
	case f.Session == nil:
		return nil
	}
	if e, ok := errors.AsType[*store.Error](store.CheckName(*f.Session)); ok {
		return process.Usagef("--session %q: %v", *f.Session, e.Err)
	}
	return nil
}

// openKept opens the session that the flags name, nil if they name none. A conversation is not
// taken for a text, nor the other way round.
func (f *sessionFlags) openKept(ctx context.Context, inv *process.Invocation, chat bool) (*keptText, error) {
	if f.Session == nil {
		return nil, nil
	}
	dir, err := sessionDir(inv, f.SessionDir)
	if err != nil {
		return nil, err
	}
	limit := f.SessionLimit.Bytes
	if limit == 0 {
		limit = defaultSessionLimit
	}
	sessions, err := moeflux.OpenSessions(ctx, dir, limit)
	if err != nil {
		return nil, cannotKeep(dir, err)
	}
	k := &keptText{name: *f.Session}
	if err := k.open(sessions, chat); err != nil {
		if e, ok := errors.AsType[*moeflux.SessionError](err); ok && e.Kind == moeflux.ErrSessionFolder {
			err = cannotKeep(dir, err)
		}
		return nil, err
	}
	return k, nil
}

func cannotKeep(dir string, err error) error {
	return fmt.Errorf("sessions cannot be kept in %s, choose another folder with --session-dir: %w", dir, err)
}

// sessionDir returns the folder of sessions: the one given, or that of this user.
func sessionDir(inv *process.Invocation, given string) (string, error) {
	if given != "" {
		return given, nil
	}
	dir, err := inv.Env.StateDir()
	if err != nil {
		return "", fmt.Errorf("this user has no folder for sessions, name one with --session-dir: %w", err)
	}
	return filepath.Join(dir, process.Program, "sessions"), nil
}
