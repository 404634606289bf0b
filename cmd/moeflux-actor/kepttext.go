package main

import (
	"context"
	"errors"
	"fmt"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/internal/flags"
	"github.com/moeflux/moeflux-actor/internal/process"
)

// keptText is a text or a conversation that is kept under a name from run to run. A nil one stands
// for a text that is not kept.
type keptText struct {
	session *moeflux.Session
	name    string
	path    string // of its file
	stored  bool   // there is something under the name
}

// open opens the session, which holds its name.
func (k *keptText) open(sessions *moeflux.Sessions, chat bool) (err error) {
	k.path = sessions.Path(k.name)
	k.session, err = sessions.Open(k.name)
	switch {
	case errors.Is(err, moeflux.ErrSessionHeld):
		return fmt.Errorf("session %q is in use by another run; wait until it ends, or choose another name", k.name)
	case errors.Is(err, moeflux.ErrSessionDamaged):
		return k.damaged(err)
	case err != nil:
		return err
	}
	k.stored = k.session.IsChat() || k.session.IsText()
	switch {
	case k.session.IsChat() && !chat:
		err = process.Usagef("session %q is a conversation; continue it with --chat, or choose another name", k.name)
	case k.session.IsText() && chat:
		err = process.Usagef("session %q is a text, not a conversation; leave --chat out, or choose another name", k.name)
	}
	if err != nil {
		k.close()
	}
	return err
}

// damaged says what to do with a session that cannot be used.
func (k *keptText) damaged(err error) error {
	return fmt.Errorf("session %q cannot be used, remove %s or choose another name: %w", k.name, k.path, err)
}

// goesOn reports whether there is a text to continue.
func (k *keptText) goesOn() bool { return k != nil && k.stored }

// close lets others go on with the session.
func (k *keptText) close() {
	if k != nil {
		_ = k.session.Close() // nothing was written
	}
}

// attach gives the session its state.
func (k *keptText) attach(ctx context.Context, s *flags.Opened) error {
	err := k.session.Attach(ctx, s.Model)
	former, isFormer := errors.AsType[*moeflux.FormerRuleError](err)
	switch {
	case isFormer:
		return fmt.Errorf("session %q of the model %s was saved by an earlier version, for which every file in a model's directory was part of the model. "+
			"If this is the model, undo what was added, removed or changed in %s since, and run once more; else choose another name, or remove %s",
			k.name, k.session.MadeWith(), former.Dir, k.path)
	case errors.Is(err, moeflux.ErrSessionModel):
		return fmt.Errorf("session %q was made with another model, %s; give that one with --model, choose another name, or remove %s", k.name, k.session.MadeWith(), k.path)
	case errors.Is(err, moeflux.ErrSessionTooLong):
		return fmt.Errorf("session %q has more positions than fit here; allow more with --ctx, or choose another name: %w", k.name, cause(err))
	case errors.Is(err, moeflux.ErrSessionDamaged):
		return k.damaged(cause(err))
	case err != nil:
		return fmt.Errorf("session %q cannot be loaded: %w", k.name, cause(err))
	}
	return nil
}

// cause returns what a session's error wraps: the rest of it names the session once more.
func cause(err error) error {
	if e, ok := errors.AsType[*moeflux.SessionError](err); ok && e.Err != nil {
		return e.Err
	}
	return err
}

// save saves the session.
func (k *keptText) save(ctx context.Context) error {
	err := k.session.Save(ctx)
	if err == nil || errors.Is(err, moeflux.ErrSessionUnsynced) || errors.Is(err, moeflux.ErrSessionNoRoom) {
		k.stored = true
		return err
	}
	return k.notSaved(err)
}

// notSaved says what happened to a session that could not be saved, and what to do.
func (k *keptText) notSaved(err error) error {
	state, advice := "", ""
	if k.stored {
		state = ", what was saved before is still there"
	}
	switch {
	case errors.Is(err, moeflux.ErrSessionTooLarge):
		advice = "; allow more with --session-limit"
	case errors.Is(err, moeflux.ErrSessionDiskFull):
		advice = "; make room, or choose another folder with --session-dir"
	}
	return fmt.Errorf("session %q is not saved%s%s: %w", k.name, state, advice, err)
}
