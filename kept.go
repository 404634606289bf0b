package moeflux

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/snapshot"
	"github.com/moeflux/moeflux-actor/snapshot/store"
)

// Sessions is a folder of sessions that outlive their process. It may be used by many goroutines,
// and the folder by many processes.
type Sessions struct{ store *store.Store }

// OpenSessions opens a folder of sessions, which is made for this user alone if it does not exist.
// maxBytes bounds all of them together: those used least recently are removed, never the one being
// saved; 0 means no bound. There is nothing to close. The error is a *SessionError.
func OpenSessions(ctx context.Context, dir string, maxBytes int64) (*Sessions, error) {
	folder, err := store.Dir(dir)
	if err != nil {
		return nil, err
	}
	s, err := store.Open(ctx, folder, store.Options{MaxBytes: maxBytes})
	if err != nil {
		return nil, err
	}
	return &Sessions{s}, nil
}

// Open opens the session of a name, or begins one, and holds the name until it is closed. No model
// is needed for that: what was said is there at once, the state comes with the first request. A
// name is any text that can be printed on a line; in the file's name it is escaped.
// Session.Save saves it. The error is a *SessionError, of kind ErrSessionName, ErrSessionHeld or
// ErrSessionDamaged.
func (s *Sessions) Open(name string) (*Session, error) {
	if err := store.CheckName(name); err != nil {
		return nil, err
	}
	release, err := s.store.Hold(name)
	if err != nil {
		return nil, err
	}
	session := &Session{kept: kept{sessions: s.store, name: name, release: release}}
	if err := session.open(); err != nil {
		return nil, errors.Join(err, session.Close())
	}
	return session, nil
}

// Path returns where the file of a session lies.
func (s *Sessions) Path(name string) string { return s.store.Path(name) }

// kept is what a session has on disk; the zero value is of one that is kept in memory.
type kept struct {
	sessions *store.Store
	name     string
	release  func()         // lets others have the name
	file     *store.Session // as it was at the start; nil if the name is new
	madeWith string         // directory of the model, for people
}

// note is stored beside a state in a session's file, for what the state does not say.
type note struct {
	Model string `json:"model"` // directory, for people
	Chat  bool   `json:"chat"`
	// Rest is the tokens of a text that the state does not hold yet: usually the last one that was
	// generated.
	Rest []int32 `json:"rest,omitempty"`
	// The conversation.
	System   string    `json:"system,omitempty"`
	Messages []Message `json:"messages,omitempty"`
}

// open opens the file, if there is one, and reads its note.
func (s *Session) open() error {
	file, err := s.sessions.Get(s.name)
	if errors.Is(err, store.ErrNone) {
		return nil
	}
	if err != nil {
		return err
	}
	s.file = file
	var n note
	if err := json.Unmarshal(file.Seal.Note, &n); err != nil {
		return &store.Error{Op: "read", Session: s.name, Path: s.sessions.Path(s.name), Kind: ErrSessionDamaged, Err: fmt.Errorf("its note: %w", err)}
	}
	s.madeWith = n.Model
	if !n.Chat {
		s.kind, s.text = sessionText, slices.Concat(file.Seal.Tokens, n.Rest)
		return nil
	}
	s.kind = sessionChat
	if n.System != "" {
		s.messages = []Message{{Role: System, Content: n.System}}
	}
	s.messages = append(s.messages, n.Messages...)
	return nil
}

// MadeWith returns the directory of the model with which a kept session was saved last; "" if it
// was not.
func (s *Session) MadeWith() string { return s.madeWith }

// load gives a sequence the kept state.
func (k *kept) load(ctx context.Context, seq *actors.Sequence) error {
	if k.file == nil {
		return nil
	}
	if err := seq.Load(ctx, k.file, k.file.Bytes, actors.LoadOptions{InPlace: true}); err != nil {
		return loadError(k, err)
	}
	return nil
}

// prime gives the session's sequence the longest stored beginning of a text, under any name. If
// that cannot be loaded, the text is read instead.
func (s *Session) prime(ctx context.Context, ids []int32) (bool, error) {
	if s.sessions == nil {
		return false, nil
	}
	of, err := s.model.engine.Fingerprint(ctx)
	if err != nil {
		return false, err
	}
	former, err := s.model.engine.FormerFingerprint(ctx)
	if err != nil {
		return false, err
	}
	found, err := s.sessions.Longest([]snapshot.Fingerprint{of, former}, ids[:len(ids)-1])
	if errors.Is(err, store.ErrNone) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer found.Close()
	if err := s.seq.Load(ctx, found, found.Bytes, actors.LoadOptions{}); err != nil {
		s.model.log.Warn("a session begins like this text, but cannot be loaded", "session", found.Name, "why", err)
		return false, ctx.Err()
	}
	return true, nil
}

// Save saves the session under its name, once there was a request since Open. Whatever fails, the
// file is completely the old one or the new one. The error is a *SessionError; of kinds
// ErrSessionNoRoom and ErrSessionUnsynced the session is saved.
func (s *Session) Save(ctx context.Context) error {
	switch {
	case s.sessions == nil:
		return &store.Error{Op: "save", Kind: ErrSessionName, Err: errors.New("this session is kept in memory alone")}
	case s.seq == nil:
		return &store.Error{Op: "save", Session: s.name, Err: errors.New("there was no request since it was opened")}
	case !s.busy.TryLock():
		return ErrBusy
	}
	defer s.busy.Unlock()
	if err := s.settle(ctx); err != nil {
		return err
	}
	text, err := json.Marshal(s.note())
	if err != nil {
		return err
	}
	return s.sessions.Put(ctx, s.name, func(w io.Writer) error {
		_, err := s.seq.Save(ctx, w, actors.SaveOptions{Note: text})
		return err
	})
}

// note returns what the state does not say.
func (s *Session) note() note {
	n := note{Model: s.model.dir, Chat: s.kind == sessionChat}
	if dir, err := filepath.Abs(s.model.dir); err == nil {
		n.Model = dir
	}
	if !n.Chat {
		n.Rest = s.text[min(s.seq.Len(), len(s.text)):]
		return n
	}
	n.Messages = s.messages
	if len(n.Messages) > 0 && n.Messages[0].Equal(Message{Role: System, Content: n.Messages[0].Content}) {
		n.System, n.Messages = n.Messages[0].Content, n.Messages[1:]
	}
	return n
}

// close closes the file and lets others go on with the session.
func (k *kept) close() error {
	if k.file != nil {
		_ = k.file.Close() // nothing was written
	}
	if k.release != nil {
		k.release()
	}
	return nil
}
