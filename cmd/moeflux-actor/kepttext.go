package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/snapshot"
	"github.com/moeflux/moeflux-actor/snapshot/store"
	"github.com/moeflux/moeflux-actor/tokenizer/chat"
)

// keptText is a text or a conversation that is kept under a name from run to run. A nil one stands
// for a text that is not kept.
type keptText struct {
	sessions *store.Store
	name     string

	release func() // lets others have the session

	file   *store.Session // as it was at the start; nil if the name is new
	stored bool           // there is something under the name
	tokens []int32        // that its state holds
	note   keptNote
}

// keptNote is stored beside a state in the session's file, for what the state does not say.
type keptNote struct {
	Model string `json:"model"` // directory, for people
	Chat  bool   `json:"chat"`
	// Rest is the tokens of a text that the state does not hold yet: usually the last one that was
	// generated.
	Rest []int32 `json:"rest,omitempty"`
	// The conversation.
	System   string         `json:"system,omitempty"`
	Messages []chat.Message `json:"messages,omitempty"`
}

// open opens the file, if there is one, and reads its note.
func (k *keptText) open(chat bool) error {
	file, err := k.sessions.Get(k.name)
	switch {
	case errors.Is(err, store.ErrNone):
		return nil
	case errors.Is(err, store.ErrDamaged):
		return k.damaged(err)
	case err != nil:
		return err
	}
	k.file, k.tokens, k.stored = file, file.Seal.Tokens, true
	if err := json.Unmarshal(file.Seal.Note, &k.note); err != nil {
		return k.damaged(fmt.Errorf("its note: %w", err))
	}
	switch {
	case k.note.Chat && !chat:
		return usagef("session %q is a conversation; continue it with --chat, or choose another name", k.name)
	case !k.note.Chat && chat:
		return usagef("session %q is a text, not a conversation; leave --chat out, or choose another name", k.name)
	}
	return nil
}

// damaged says what to do with a session that cannot be used.
func (k *keptText) damaged(err error) error {
	return fmt.Errorf("session %q cannot be used, remove %s or choose another name: %w", k.name, k.sessions.Path(k.name), err)
}

// goesOn reports whether there is a text to continue.
func (k *keptText) goesOn() bool { return k != nil && k.file != nil }

// close closes the file and lets others go on with the session.
func (k *keptText) close() {
	if k.goesOn() {
		_ = k.file.Close() // nothing was written
	}
	if k != nil {
		k.release()
	}
}

// load gives a sequence the kept state.
func (k *keptText) load(ctx context.Context, s *session, seq *actors.Sequence) error {
	if !k.goesOn() {
		return nil
	}
	err := seq.Load(ctx, k.file, k.file.Bytes, actors.LoadOptions{InPlace: true})
	switch {
	case errors.Is(err, snapshot.ErrFingerprint), errors.Is(err, snapshot.ErrShape):
		return fmt.Errorf("session %q was made with another model, %s; give that one with --model, choose another name, or remove %s", k.name, k.note.Model, k.sessions.Path(k.name))
	case errors.Is(err, snapshot.ErrTooLong):
		return fmt.Errorf("session %q has %d positions, more than fit here; allow more with --ctx, or choose another name: %w", k.name, len(k.tokens), err)
	case errors.As(err, new(*snapshot.Error)):
		return k.damaged(err)
	case err != nil:
		return fmt.Errorf("session %q cannot be loaded: %w", k.name, err)
	}
	return nil
}

// prime returns a function that gives a sequence the longest stored beginning of a text, under any
// name. If that cannot be loaded, the text is read instead.
func (k *keptText) prime(s *session, seq *actors.Sequence) func(context.Context, []int32) (bool, error) {
	return func(ctx context.Context, ids []int32) (bool, error) {
		of, err := s.engine.Fingerprint(ctx)
		if err != nil {
			return false, err
		}
		found, err := k.sessions.Longest(of, ids[:len(ids)-1])
		if errors.Is(err, store.ErrNone) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		defer found.Close()
		if err := seq.Load(ctx, found, found.Bytes, actors.LoadOptions{}); err != nil {
			s.say("session %q begins like this text, but cannot be loaded: %v", found.Name, err)
			return false, ctx.Err()
		}
		return true, nil
	}
}

// save saves the state of a sequence with a note.
func (k *keptText) save(ctx context.Context, s *session, seq *actors.Sequence, note keptNote) error {
	note.Chat = k.note.Chat
	if dir, err := filepath.Abs(s.dir); err == nil {
		note.Model = dir
	}
	text, err := json.Marshal(note)
	if err != nil {
		return err
	}
	err = k.sessions.Put(ctx, k.name, func(w io.Writer) error {
		_, err := seq.Save(ctx, w, actors.SaveOptions{Note: text})
		return err
	})
	if err == nil || errors.Is(err, store.ErrUnsettled) || errors.Is(err, store.ErrNoRoom) {
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
	case errors.Is(err, store.ErrTooLarge):
		advice = "; allow more with --session-limit"
	case errors.Is(err, store.ErrDiskFull):
		advice = "; make room, or choose another folder with --session-dir"
	}
	return fmt.Errorf("session %q is not saved%s%s: %w", k.name, state, advice, err)
}
