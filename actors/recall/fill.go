package recall

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/moeflux/moeflux-actor/snapshot"
	"github.com/moeflux/moeflux-actor/snapshot/store"
)

// Found is a state on disk.
type Found struct {
	Tokens []int32 // of all positions; read-only
	chain  []span
	tip    *tip // nil without recurrent state
}

// Find returns the state that has most of the beginning of a text, nil if there is none. It looks
// in memory alone.
func (s *Store) Find(t Text) *Found {
	if s == nil {
		return nil
	}
	in := place{s.cfg.Identity, s.scope(t.Scope)}
	s.mu.Lock()
	defer s.mu.Unlock()
	root := s.found.roots[in]
	if root == nil {
		return nil
	}
	if !s.parts.recurrent() {
		last, n := root.covered(t.Tokens)
		if n == 0 {
			return nil
		}
		return &Found{Tokens: t.Tokens[:n], chain: last.chain(n)}
	}
	if last := root.tipped(t.Tokens); last != nil {
		return &Found{Tokens: t.Tokens[:last.at], chain: last.of.chain(last.at), tip: last}
	}
	return nil
}

// LostError says that a state that was found is not there any more, or is damaged. It is not found
// again; less of the text may be.
type LostError struct{ Err error }

func (e *LostError) Error() string { return fmt.Sprintf("a text's state on disk is lost: %v", e.Err) }
func (e *LostError) Unwrap() error { return e.Err }

// Fill fills a state of as many positions as were found. After an error it must be thrown away. The
// error is a *LostError, that of the target, or that of a disk.
func (s *Store) Fill(f *Found, t snapshot.Target) error {
	to := &watched{Target: t}
	for _, of := range f.chain {
		rows := rowsTo{to, s.parts.rowsLayers, of.from, of.upTo, s.parts.rowBytes}
		if err := s.fill(&of.file, &s.parts.rows, of.tokens, rows, to); err != nil {
			return err
		}
	}
	if f.tip != nil {
		if err := s.fill(&f.tip.file, &s.parts.state, s.parts.ofTip(f.Tokens), rowsTo{Target: to, layers: s.parts.stateLayers}, to); err != nil {
			return err
		}
	}
	s.used(f)
	return nil
}

// fill hands a file to a target.
func (s *Store) fill(f *file, shape *snapshot.Shape, tokens []int32, t snapshot.Target, to *watched) error {
	err := s.read(f.name, shape, tokens, t)
	_, damaged := errors.AsType[*snapshot.Error](err)
	switch {
	case err == nil || to.err != nil:
		return err
	case errors.Is(err, store.ErrNone):
	case damaged || errors.Is(err, store.ErrDamaged):
		s.cfg.Log.Warn("a file with the state of a text is damaged and removed", "file", s.files.Path(f.name), "error", err)
		_ = s.files.Remove(s.ctx, f.name) // else it is found again, and is damaged still
	default:
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found.drop(f.name)
	return &LostError{err}
}

func (s *Store) read(name string, shape *snapshot.Shape, tokens []int32, t snapshot.Target) error {
	got, err := s.files.Get(name)
	if err != nil {
		return err
	}
	defer got.Close()
	in, err := snapshot.Open(got, got.Bytes, shape, snapshot.ReadOptions{Fingerprint: s.cfg.Identity})
	if err != nil {
		return err
	}
	if !slices.Equal(got.Seal.Tokens, tokens) {
		return &snapshot.Error{Kind: snapshot.ErrSeal, Field: "seal tokens", Layer: -1, Detail: "they are those of another text"}
	}
	return in.Fill(t)
}

// used notes the use of a state.
func (s *Store) used(f *Found) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for _, of := range f.chain {
		of.used = now
	}
	if f.tip != nil {
		f.tip.used = now
	}
	s.count.recalled++
}

// watched is a target that tells its own failure from a file's.
type watched struct {
	snapshot.Target
	err error
}

func (w *watched) WriteRows(layer int, p snapshot.Part, first int, src []byte) error {
	w.err = w.Target.WriteRows(layer, p, first, src)
	return w.err
}
