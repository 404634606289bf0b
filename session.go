package moeflux

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/snapshot"
	"github.com/moeflux/moeflux-actor/snapshot/store"
)

// Session is a text or a conversation that goes on from request to request (Request.Session): what
// was said before need not be sent or read again. The zero value is a new one, kept in memory; one
// of Sessions.Open is kept on disk as well. It has memory of the model's for its state until it is
// closed or reset. It is for one request at a time, and for one goroutine.
//
// After a request that failed, or whose answer had not begun when it was interrupted, a
// conversation is as it was before. If the loop is left later, it has the message and the answer so
// far.
type Session struct {
	busy sync.Mutex // held by the request under way

	kind     sessionKind
	messages []Message // of a conversation
	text     []int32   // of a text: all tokens; if opaque, those that the state does not hold yet
	opaque   bool      // the state is of a text that nobody knows
	ahead    bool      // the state holds tokens that the text does not
	asked    *Request  // the last one of a conversation

	model  *Model // since the first request
	seq    *actors.Sequence
	closed bool

	kept // on disk
}

type sessionKind int

const (
	sessionNew sessionKind = iota
	sessionText
	sessionChat
)

// may reports a session of another kind.
func (s *Session) may(kind sessionKind) error {
	if s.kind != sessionNew && s.kind != kind {
		return ErrSessionKind
	}
	return nil
}

// Messages returns the conversation, that of the system included; none of a text.
func (s *Session) Messages() []Message { return slices.Clone(s.messages) }

// SetMessages replaces the conversation: what the model has read of its beginning is not read
// again. With no messages it begins anew.
func (s *Session) SetMessages(messages []Message) error {
	if err := s.may(sessionChat); err != nil {
		return err
	}
	s.kind, s.messages = sessionChat, slices.Clone(messages)
	return nil
}

// IsChat reports whether the session is a conversation, and IsText whether it is a text; a new one
// is neither.
func (s *Session) IsChat() bool { return s.kind == sessionChat }

// IsText: see IsChat.
func (s *Session) IsText() bool { return s.kind == sessionText }

// Positions returns how many positions of the context the session takes.
func (s *Session) Positions() int {
	if s.seq == nil {
		return 0
	}
	return s.seq.Len()
}

// Attach gives the session its memory and loads what is kept on disk, as the first request does
// otherwise. Errors: *SessionError of kind ErrSessionModel, ErrSessionTooLong or ErrSessionDamaged.
func (s *Session) Attach(ctx context.Context, m *Model) error {
	_, err := s.sequence(ctx, m, &Request{})
	return err
}

// sequence returns the session's sequence, which the first request makes.
func (s *Session) sequence(ctx context.Context, m *Model, r *Request) (*actors.Sequence, error) {
	switch {
	case s.closed:
		return nil, ErrClosed
	case s.seq != nil && s.model != m:
		return nil, errOtherModel
	case s.seq != nil:
		return s.seq, nil
	}
	seq, err := m.engine.NewSequenceFor(ctx, actors.SequenceOptions{Class: r.Class, Key: r.Key, Weight: r.Weight, Scope: r.Scope})
	if err != nil {
		return nil, err
	}
	if err := s.load(ctx, seq); err != nil {
		return nil, errors.Join(err, seq.Close())
	}
	s.model, s.seq = m, seq
	return seq, nil
}

// spent returns the account of the session's sequence, with what requests took that failed or were
// left.
func (s *Session) spent(ctx context.Context) (Account, error) {
	d, err := s.seq.Describe(ctx)
	return d.Account, err
}

// add adds what a request has brought.
func (s *Session) add(g *generation) {
	if g.kind == sessionChat {
		if len(g.newIDs) > 0 || g.reason != StopInterrupted {
			s.kind, s.asked = sessionChat, g.r
			s.messages = append(slices.Concat(s.messages, g.r.Messages), g.answer.Message())
		}
		return
	}
	s.kind = sessionText
	if s.opaque {
		all := slices.Concat(g.prompt.IDs, g.newIDs)
		s.text = all[min(s.seq.Len()-g.before, len(all)):]
		return
	}
	s.text = slices.Concat(g.prompt.IDs, g.shown())
	s.ahead = g.stop.Found() != ""
}

// shown returns the tokens of the text without the stop string that ended it and what came with
// that. If the string began within a token, what is left of the token becomes others.
func (g *generation) shown() []int32 {
	if g.stop.Found() == "" {
		return g.newIDs
	}
	said := g.answer.Message().Content
	for n := len(g.newIDs); n >= 0; n-- {
		text := g.m.text.Decode(g.newIDs[:n], true)
		if len(text) > len(said) || said[:len(text)] != text {
			continue
		}
		rest, err := g.m.text.Encode(said[len(text):], false)
		if err != nil {
			break
		}
		return slices.Concat(g.newIDs[:n], rest)
	}
	return g.newIDs // cannot be: the empty text is a beginning of every one
}

// settle takes the state back to where the next request can go on from. Many templates write an
// answer otherwise once it is an earlier one, without its reasoning: what the state has of it then
// is of no use, and where it is recurrent nothing before it is, either.
func (s *Session) settle(ctx context.Context) error {
	ids := s.text
	switch {
	case s.kind == sessionChat && s.asked != nil:
		d, err := s.model.chat()
		if err != nil {
			return err
		}
		next := append(s.Messages(), Message{Role: User, Content: "?"})
		p, err := s.model.render(d, s.asked, next)
		if err != nil {
			return nil // a template that refuses this may take what is really said
		}
		ids = p.IDs
	case !s.ahead:
		return nil
	}
	_, err := s.seq.Resume(ctx, ids)
	s.ahead = s.ahead && err != nil
	return err
}

// Reset empties the session and gives its memory back. It may be used again, for a text or a
// conversation.
func (s *Session) Reset(ctx context.Context) error {
	s.kind, s.messages, s.text, s.opaque, s.ahead, s.asked = sessionNew, nil, nil, false, false, nil
	if s.seq == nil {
		return nil
	}
	return s.seq.Reset(ctx)
}

// Close gives back the session's memory, and lets others have its name. What was not saved is lost.
func (s *Session) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	err := s.kept.close()
	if s.seq != nil {
		err = errors.Join(err, s.seq.Close())
	}
	return err
}

// LoadSession begins a session with the state in a snapshot of size bytes, as Sequence.Save of the
// engine or "moeflux-actor state save" writes it: Generate goes on from its text. A file that does
// not tell its tokens is taken, too, where the options say so.
func (m *Model) LoadSession(ctx context.Context, r io.ReaderAt, size int64, o LoadOptions) (*Session, error) {
	s := &Session{kind: sessionText}
	seq, err := s.sequence(ctx, m, &Request{})
	if err != nil {
		return nil, err
	}
	o.InPlace = true
	if err := seq.Load(ctx, r, size, o); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	d, err := seq.Describe(ctx)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.opaque = slices.ContainsFunc(d.Tokens, func(id int32) bool { return id < 0 })
	if !s.opaque {
		s.text = d.Tokens
	}
	return s, nil
}

// LoadOptions say how much a snapshot must prove; see package actors.
type LoadOptions = actors.LoadOptions

// loadError says what is wrong with a session's file.
func loadError(k *kept, err error) error {
	kind := error(nil)
	switch {
	case errors.Is(err, snapshot.ErrFingerprint), errors.Is(err, snapshot.ErrShape):
		kind = ErrSessionModel
	case errors.Is(err, snapshot.ErrTooLong):
		kind = ErrSessionTooLong
	case errors.As(err, new(*snapshot.Error)):
		kind = ErrSessionDamaged
	}
	return &store.Error{Op: "load", Session: k.name, Path: k.sessions.Path(k.name), Kind: kind, Err: err}
}
