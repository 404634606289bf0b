package store

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"slices"

	"github.com/moeflux/moeflux-actor/snapshot"
)

// tokenHash is the hash of a list of token ids; that of each prefix comes up on the way. It need
// not be good: what it finds is compared.
type tokenHash uint64

const emptyHash tokenHash = 0xcbf29ce484222325

func (h tokenHash) add(id int32) tokenHash { return (h ^ tokenHash(uint32(id))) * 0x100000001b3 }

func hashOf(tokens []int32) tokenHash {
	h := emptyHash
	for _, id := range tokens {
		h = h.add(id)
	}
	return h
}

// known is what is remembered about a file, valid as long as nothing that tells files apart
// changes.
type known struct {
	Entry
	hash tokenHash
}

// sealOf reads the seal of a session. The error is an *Error of Kind ErrDamaged if the file is not
// one.
func sealOf(r io.ReaderAt, size int64) (*snapshot.Seal, error) {
	f, err := snapshot.Inspect(r, size)
	if err == nil {
		err = complete(f.Info())
	}
	if _, ok := errors.AsType[*snapshot.Error](err); ok {
		return nil, &Error{Kind: ErrDamaged, Err: err}
	}
	if err != nil {
		return nil, err
	}
	return f.Seal(), nil
}

// complete reports what keeps a snapshot from being a session.
func complete(i snapshot.Info) error {
	switch {
	case i.Damage != nil:
		return i.Damage
	case i.Seal == nil:
		return &snapshot.Error{Kind: snapshot.ErrUnsealed, Field: "seal", Layer: -1}
	case len(i.Seal.Tokens) != i.Positions:
		return &snapshot.Error{Kind: snapshot.ErrSeal, Field: "seal tokens", Layer: -1, Got: int64(len(i.Seal.Tokens)), Want: int64(i.Positions)}
	}
	return nil
}

// recall returns what is known about all sessions, most recently used first. It reads only files
// that are new or have changed.
func (s *Store) recall() ([]known, error) {
	sessions, err := s.sessions()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	all, now := make([]known, 0, len(sessions)), make(map[string]known, len(sessions))
	for _, e := range sessions {
		k, ok := s.known[e.file.Name]
		if !ok || k.file != e.file {
			k, err = s.learn(e)
			if errors.Is(err, fs.ErrNotExist) {
				continue // removed meanwhile
			}
		}
		all = append(all, k)
		if k.Err == nil { // what could not be read may be readable next time
			now[k.file.Name] = k
		}
	}
	s.known = now
	return all, nil
}

// learn reads the seal of a session. What goes wrong is in the entry too.
func (s *Store) learn(e Entry) (known, error) {
	got, err := s.open(e.Name)
	if err != nil {
		e.Err = s.fail("read", e.Name, nil, err)
		return known{Entry: e}, err
	}
	_ = got.Close() // nothing was written
	return known{got.Entry, hashOf(got.Seal.Tokens)}, nil
}

// Longest opens the session of a model that holds the most of the first tokens of a list, and
// nothing else: all of its tokens are the list's first ones. of has the model's fingerprints. This
// counts as use. To leave a position to compute logits from, leave out the last token. The error is
// that of a failed listing, or has Kind ErrNone. Longest passes over files that it cannot read;
// List shows them.
func (s *Store) Longest(of []snapshot.Fingerprint, tokens []int32) (*Session, error) {
	all, err := s.recall()
	if err != nil {
		return nil, s.fail("search", "", nil, err)
	}
	for _, name := range candidates(all, of, tokens) {
		got, err := s.open(name)
		if err != nil {
			continue // it has gone, or changed, since it was listed
		}
		if n := len(got.Seal.Tokens); slices.Contains(of, got.Fingerprint) && n <= len(tokens) && slices.Equal(got.Seal.Tokens, tokens[:n]) {
			_ = got.content.Touch() // as in Get
			return got, nil
		}
		_ = got.Close()
	}
	return nil, s.fail("search", "", ErrNone, nil)
}

// candidates returns the names of sessions whose tokens have the hash of as many first tokens of a
// list, the longest first. It goes over the list once.
func candidates(all []known, of []snapshot.Fingerprint, tokens []int32) []string {
	all = slices.DeleteFunc(slices.Clone(all), func(k known) bool {
		return k.Err != nil || !slices.Contains(of, k.Fingerprint) || k.Positions == 0 || k.Positions > len(tokens)
	})
	slices.SortStableFunc(all, func(a, b known) int { return cmp.Compare(a.Positions, b.Positions) })
	var names []string
	h, at := emptyHash, 0
	for _, k := range all {
		for ; at < k.Positions; at++ {
			h = h.add(tokens[at])
		}
		if k.hash == h {
			names = append(names, k.Name)
		}
	}
	slices.Reverse(names)
	return names
}
