package recall

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/moeflux/moeflux-actor/snapshot"
	"github.com/moeflux/moeflux-actor/snapshot/store"
)

// seen is a file that was not known.
type seen struct {
	file
	seal *snapshot.Seal
	note note
}

// look brings the index up to date with the folder, where other processes write and remove, too. It
// reads the seals of files that are new.
func (s *Store) look() error {
	all, err := s.files.List()
	if err != nil {
		return err
	}
	there := make(map[string]bool, len(all))
	var unknown []store.Entry
	s.mu.Lock()
	for _, e := range all {
		there[e.Name] = true
		if !s.found.knows(e.Name) {
			unknown = append(unknown, e)
		}
	}
	for _, name := range s.found.names() {
		if !there[name] {
			s.found.drop(name)
		}
	}
	s.mu.Unlock()
	return s.learn(unknown)
}

// learn adds files to the index, those first from which others go on.
func (s *Store) learn(unknown []store.Entry) error {
	var news []seen
	for _, e := range unknown {
		n := seen{file: file{e.Name, e.Bytes, e.Used}}
		err := e.Err
		if err == nil {
			n.seal, n.note, err = s.readNote(e.Name)
		}
		if err != nil {
			s.cfg.Log.Warn("a file with the state of a text cannot be used", "error", err)
		}
		news = append(news, n)
	}
	slices.SortStableFunc(news, func(a, b seen) int {
		return cmp.Or(cmp.Compare(len(a.note.Of), len(b.note.Of)), cmp.Compare(a.note.At, b.note.At))
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range news {
		if n.seal == nil {
			s.found.strays[n.name] = &n.file
			s.found.bytes += n.bytes
			continue
		}
		s.found.add(n.file, place{n.seal.Fingerprint, n.note.Scope}, n.seal.Tokens, n.note)
	}
	return nil
}

// readNote returns what a file says of itself. That is no use of it.
func (s *Store) readNote(name string) (*snapshot.Seal, note, error) {
	var n note
	got, err := s.files.Peek(name)
	if err != nil {
		return nil, n, err
	}
	defer got.Close()
	if err := json.Unmarshal(got.Seal.Note, &n); err != nil {
		return nil, note{}, err
	}
	return got.Seal, n, nil
}
