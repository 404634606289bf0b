package recall

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/moeflux/moeflux-actor/snapshot"
	"github.com/moeflux/moeflux-actor/snapshot/store"
	"github.com/moeflux/moeflux-actor/stages"
)

// A state that is not to be had now may be a little later: the device still copies it, or texts
// wait for memory.
const (
	freezeTries = 8
	freezeWait  = 10 * time.Millisecond // and twice as long each further time
)

// write writes what is new of a text.
func (s *Store) write(ctx context.Context, t Text) error {
	if err := s.look(); err != nil {
		return err
	}
	in := place{s.cfg.Identity, s.scope(t.Scope)}
	if s.has(in, t.Tokens) {
		return nil
	}
	f, err := s.freeze(ctx, t)
	switch {
	case errors.Is(err, stages.ErrUnknownState), errors.Is(err, stages.ErrClosed), errors.As(err, new(*stages.StateMemoryError)):
		s.cfg.Log.Debug("a text is not kept on disk", "positions", len(t.Tokens), "why", err)
		return nil
	case err != nil:
		return err
	}
	l := newLease(f)
	defer l.end()
	if s.has(in, f.Tokens) { // there was less of it
		return nil
	}
	last, err := s.writeRows(ctx, in, f.Tokens, l)
	if err == nil && s.parts.recurrent() {
		err = s.writeTip(ctx, last, f.Tokens, l)
	}
	if err == nil {
		s.mu.Lock()
		s.count.stored++
		s.mu.Unlock()
	}
	return err
}

// freeze returns the state of a text, or of as much as there is in the end.
func (s *Store) freeze(ctx context.Context, t Text) (f Frozen, err error) {
	wait := freezeWait
	for n := 1; ; n++ {
		f, err = s.cfg.Freeze(ctx, t)
		less := err == nil && len(f.Tokens) < len(t.Tokens)
		later := less || errors.Is(err, stages.ErrUnknownState) || errors.As(err, new(*stages.StateMemoryError))
		if !later || n == freezeTries {
			return f, err
		}
		if less {
			f.Release()
		}
		select {
		case <-ctx.Done():
			return Frozen{}, context.Cause(ctx)
		case <-time.After(wait):
		}
		wait *= 2
	}
}

// has reports whether a text could go on from its end, and if so, that it was used.
func (s *Store) has(in place, text []int32) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	last, n := s.found.root(in).covered(text)
	if n < len(text) {
		return false
	}
	if !s.parts.recurrent() {
		last.used = time.Now()
		return true
	}
	t := last.tip(n)
	if t != nil {
		t.used = time.Now()
	}
	return t != nil
}

// writeRows writes a stretch of what is new of a text, if anything is, and returns that with the
// text's last position.
func (s *Store) writeRows(ctx context.Context, in place, text []int32, l *lease) (*stretch, error) {
	s.mu.Lock()
	last, n := s.found.root(in).covered(text)
	s.mu.Unlock()
	if n == len(text) {
		return last, nil
	}
	name, rest := s.name(stretchName, in, text), slices.Clone(text[n:])
	about := note{Scope: in.scope, After: last.name, At: n}
	c := content{shape: &s.parts.rows, rows: rowsFrom{l, s.parts.rowsLayers, n}, tokens: rest, about: about}
	if err := s.put(ctx, name, c, last); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.found.stretches[name], nil
}

// writeTip writes the recurrent state at the end of a text, of which a stretch has the last
// position.
func (s *Store) writeTip(ctx context.Context, last *stretch, text []int32, l *lease) error {
	about := note{Scope: last.in.scope, Of: last.name, At: len(text)}
	c := content{shape: &s.parts.state, rows: rowsFrom{l, s.parts.stateLayers, 0}, tokens: s.parts.ofTip(text), about: about}
	return s.put(ctx, s.name(tipName, last.in, text), c, last)
}

// content is what a file is made of.
type content struct {
	shape  *snapshot.Shape
	rows   rowsFrom
	tokens []int32
	about  note
}

// put writes a file, for which keep must stay.
func (s *Store) put(ctx context.Context, name string, c content, keep *stretch) error {
	raw, err := json.Marshal(c.about)
	if err != nil {
		return err
	}
	how := snapshot.WriteOptions{Positions: len(c.tokens), Seal: &snapshot.Seal{Fingerprint: s.cfg.Identity, Tokens: c.tokens, Note: raw}}
	size, err := snapshot.Size(c.shape, how)
	if err != nil {
		return err
	}
	if err := s.makeRoom(ctx, size, keep); err != nil {
		return err
	}
	write := func(w io.Writer) error {
		_, err := snapshot.Write(w, c.shape, c.rows, how)
		return err
	}
	err = s.files.Put(ctx, name, write)
	if errors.Is(err, store.ErrDiskFull) { // a quota, perhaps: older texts give way
		if gone := s.giveUp(ctx, size, keep); gone == nil {
			err = s.files.Put(ctx, name, write)
		}
	}
	if err != nil && !errors.Is(err, store.ErrUnsettled) {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found.drop(name) // a file of no use that had the name
	s.found.add(file{name, size, time.Now()}, place{s.cfg.Identity, c.about.Scope}, c.tokens, c.about)
	return nil
}
